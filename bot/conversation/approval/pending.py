"""Counts what waits for an owner's decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bot.conversation.approval.join_requests import JoinRequests
from bot.conversation.approval.requests import Requests
from bot.memory.drafts import Drafts
from bot.memory.modes import Modes


@dataclass(frozen=True, slots=True)
class PendingDecisions:
    """Tool calls, friend requests, invites, new groups and drafts."""

    requests: Requests
    join_requests: JoinRequests
    modes: Modes
    drafts: Drafts

    def count(self) -> Mapping[str, int]:
        """How many of each kind wait."""
        asked = Counter(one.kind for one in self.join_requests.open)
        return {
            "call": len(self.requests.open),
            "friend": asked["friend"],
            "invite": asked["invite"],
            "group": len(self.modes.open),
            "draft": len(self.drafts.open),
        }
