"""All pending decisions of owners: matches a reply to one of them, applies decisions made on a
page, and counts what is pending. Only owners decide; the first reply counts. A reply names its
decision by a number, by quoting the request, or by there being only one.

| kind | number | owners reply | expires | stored in | after a restart |
|---|---|---|---|---|---|
| tool call | `A3` | in private, where it was asked | as its tool says | its run | asked again |
| friend, invite | `R3` | in private | after 7 days | a setting of its place | stays open |
| applicant | `R3` | in private; admins, in the group | after 7 days | a setting | stays open |
| draft | `D7` | in private | after a day | a setting of its group | stays open |
| new group | the group's | in private | never | the group's mode | asked if no owner was |
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from bot.approvals.decision import WHICH, Candidate, DecisionHandler, Reply
from bot.approvals.drafts import DraftApprovals
from bot.approvals.join_requests import JoinRequests
from bot.approvals.new_groups import NewGroups
from bot.approvals.tool_calls import ToolApprovals
from bot.core.console_views import DecisionKind
from bot.core.events import MessageReceived, quote_in
from bot.core.language import Language, join_lines
from bot.core.server_clock import ServerClock
from bot.core.settlement import Settled
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.policy.fallback_replies import is_quoted

LookUp: TypeAlias = Callable[[MessageReceived], Awaitable[MessageReceived | None]]
"""Asks the server for the message that a message quotes; None if it is unknown."""


class PendingDecisions:
    """Gives an owner's reply to the first kind of decision that it may mean. A reply without a
    number decides the only candidate; if there are several, the owner is asked which. The model
    never gets such a reply: it would claim to have acted on it.
    """

    def __init__(
        self,
        *,
        calls: ToolApprovals,
        join_requests: JoinRequests,
        drafts: DraftApprovals,
        groups: NewGroups,
        owners: frozenset[int],
        history: History,
        look_up: LookUp,
        server_clock: ServerClock,
        is_finishing: Callable[[], bool],
        postbox: Postbox,
        language: Language = Language.CHINESE,
    ) -> None:
        self.calls = calls
        self.join_requests = join_requests
        self.drafts = drafts
        self.groups = groups
        self._handlers: tuple[DecisionHandler, ...] = (join_requests, groups, drafts, calls)
        self._owners = owners
        self._history = history
        self._look_up = look_up
        self._server_clock = server_clock
        self._is_finishing = is_finishing
        self._postbox = postbox
        self._language = language

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.join_requests.run())
            group.create_task(self.drafts.run())

    def count(self) -> Mapping[str, int]:
        asked = Counter(one.kind for one in self.join_requests.open)
        return {
            "call": len(self.calls.open),
            "friend": asked["friend"],
            "invite": asked["invite"],
            "apply": asked["apply"],
            "group": len(self.groups.open),
            "draft": len(self.drafts.open),
        }

    async def settle(self, kind: DecisionKind, number: int, reply: Reply, *, by: str) -> Settled:
        """Apply a decision made outside a chat; `by` names who made it, for others to read."""
        match kind:
            case "A":
                return self.calls.settle(number, reply, by=by)
            case "R":
                return await self.join_requests.settle(number, reply, by=by)
            case "D":
                return await self.drafts.settle(number, reply, by=by)

    # --- replies ------------------------------------------------------------------------------

    def take_reply(self, message: MessageReceived) -> bool:
        """Handle the message if it is an owner's reply to a pending decision; else return False. If
        it quotes a message that is not in memory, see `take_reply_later`. During shutdown no reply
        is taken: the next process reads it.
        """
        if self._is_finishing():
            return False
        self._server_clock.record_arrival(message)
        if not self._is_owners(message):
            return False
        quote = quote_in(message)
        quoted = self._history.known(message.conversation, quote)
        return self._take_named(message, quoted) or (not quote and self._take_unnamed(message))

    async def take_reply_later(self, message: MessageReceived) -> bool:
        """`take_reply`, but look up the quoted message in the journal and, if it may be a reply, at
        the server. A quote that cannot be found is ignored.
        """
        if not self._is_owners(message):
            return False
        quote = quote_in(message)
        quoted = await self._history.find(message.conversation, quote) if quote else None
        if self._take_named(message, quoted):
            return True
        if not quote or quoted is not None or not self._candidates(message):
            return False
        quoted = await self._look_up(message)
        if quoted is not None:
            return self._take_named(message, quoted)
        return self._take_unnamed(message)

    def _is_owners(self, message: MessageReceived) -> bool:
        return message.sender.user_id in self._owners and not message.is_own

    def _take_named(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Take a reply that names a decision by number or by quoting the bot."""
        for handler in self._handlers:
            if (reply := handler.read_reply(message)) is None:
                continue
            number = reply.number
            if number is None and quoted is not None and quoted.is_own:
                number = handler.find_number(quoted)
            if number is not None and handler.accept(message, number, reply):
                return True
        return False

    def _candidates(
        self, message: MessageReceived
    ) -> list[tuple[DecisionHandler, Reply, Candidate]]:
        return [
            (handler, reply, one)
            for handler in self._handlers
            if (reply := handler.read_reply(message)) is not None and reply.number is None
            for one in handler.list_candidates(message, reply)
        ]

    def _take_unnamed(self, message: MessageReceived) -> bool:
        """Take a reply that names no decision; with several candidates, ask which."""
        match self._candidates(message):
            case []:
                return False
            case [(handler, reply, Candidate(is_sure=True) as only)]:
                return handler.accept(message, only.number, reply)
            case several:
                names = join_lines([one.name for _, _, one in several])
                example = several[0][2].example
                words = WHICH.format(self._language, names=names, example=example)
                quote = message.message_id if is_quoted(message) else ""
                self._postbox.post(message.conversation, words, quote=quote)
                return True
