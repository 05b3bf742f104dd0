from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bot.conversation.approval.pending import PendingDecisions


def test_what_waits_for_an_owner_is_counted_by_kind() -> None:
    calls: Any = SimpleNamespace(open={1: ""})
    petitions: Any = SimpleNamespace(open=[SimpleNamespace(kind="friend"), SimpleNamespace(kind="invite")])
    groups: Any = SimpleNamespace(open={})
    drafts: Any = SimpleNamespace(open={1: "", 2: ""})
    pending = PendingDecisions(calls, petitions, groups, drafts)
    assert pending.count() == {"call": 1, "friend": 1, "invite": 1, "group": 0, "draft": 2}
