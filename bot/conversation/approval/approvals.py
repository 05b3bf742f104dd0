"""Approval requests: the owners are asked in private about a tool call that waits, by its number,
and told once the request is settled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from cachetools import LRUCache

from bot.conversation.approval.requests import EndedRequest, Request, Requests
from bot.core.actions import send_prefix_of_turn
from bot.core.events import MessageReceived
from bot.outbox.delivery import Postbox
from bot.policy.approval import (
    EXPIRED,
    FILE,
    NO_OWNER,
    TOO_LONG,
    TOO_MANY,
    UNDONE,
    UNREACHABLE,
    WITHDRAWN,
    reply_line,
    waiting_line,
)
from bot.policy.fallback_replies import is_quoted, language_of
from bot.policy.permissions import WAIT
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.runs import SuspendedRun
from frostagent.types.speech import Receipt, Refused
from frostagent.types.suspension import ApprovalRequest, Deny, Pending

logger = logging.getLogger(__name__)

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Approvers:
    """Who may decide: the owners, or, in a terminal chat, the person at the terminal. They are told
    in their `tongue`.
    """

    owners: frozenset[int] = frozenset()
    terminal: Say | None = None
    tongue: Language = Language.CHINESE

    @property
    def are_there(self) -> bool:
        """Whether anybody can be asked at all."""
        return bool(self.owners) or self.terminal is not None

    async def approve(self, request: ApprovalRequest) -> Deny | Pending:
        """Nobody can say at once: the run is to wait, unless there is nobody to ask."""
        if not self.are_there:
            logger.warning(
                "run %s: %s must be allowed, but %s", request.run_id, request.name, NO_OWNER
            )
            return Deny(NO_OWNER)
        return Pending(WAIT)


MAX_NOTICED = 500  # runs whose askers were told
TERMINAL = ("同意 A{number} / 拒绝 A{number}", "approve A{number} / deny A{number}")


class Approvals:
    """Asks the approvers, and tells the askers that an owner was asked."""

    def __init__(
        self, *, approvers: Approvers, requests: Requests, postbox: Postbox, clock: Clock
    ) -> None:
        self._approvers = approvers
        self._requests = requests
        self._postbox = postbox
        self._clock = clock
        self._tongue = approvers.tongue
        self._noticed: LRUCache[str, None] = LRUCache(MAX_NOTICED)

    def ask(self, run: SuspendedRun, question: MessageReceived) -> None:
        """Ask about what waits in a run, unless that was done; the run with its numbers must be
        written down.

        What is too much of one asker is denied, and no owner is asked.
        """
        self._send(self._requests.register(run, question, but=self._requests.known()))
        known = self._requests.known()
        surplus = [pending for pending in run.pending if pending.number not in known]
        if surplus:
            logger.warning(
                "run %s: %d requests are denied: too many of %d",
                run.run_id,
                len(surplus),
                run.asker.user_id,
            )
            denied = {pending.call.id: Deny(TOO_MANY) for pending in surplus}
            self._requests.refuse(run, question, denied)

    def restore(self, run: SuspendedRun, question: MessageReceived) -> SuspendedRun:
        """Wait for what an earlier process waited for, and ask once more: nobody knows whether it
        came to that.

        The run with its numbers, which are others only where this process has given them away
        meanwhile.
        """
        before = {pending.number for pending in run.pending}
        run = self._requests.number(run, taken=self._requests.known())
        self._noticed[run.run_id] = None
        requests = self._requests.register(run, question, asked_before=before)
        now = self._clock.now()
        if self._approvers.are_there:  # who is not there yet may come, until the time is over
            self._send([request for request in requests if request.expires > now])
        return run

    def _send(self, requests: Iterable[Request]) -> None:
        tongue = self._tongue
        for request in requests:
            logger.info("run %s waits for the owner: A%d", request.run_id, request.number)
            if self._approvers.terminal is not None:
                first, _, _ = request.text.partition("\n")
                words = TERMINAL[tongue].format(number=request.number)
                self._approvers.terminal(f"{request.full or first}  {words}")
                continue
            left = request.expires - self._clock.now()
            said = [request.text, reply_line(request.number, left, tongue=tongue)]
            words = "\n".join(
                [*said, FILE[tongue].format(number=request.number)] if request.full else said
            )
            about = send_prefix_of_turn(request.run_id)
            for owner in sorted(self._approvers.owners):
                where = Conversation(request.where.platform_id, "private", owner)
                learn = partial(self._learn, request, owner)
                if self._postbox.post(where, words, about=about, then=learn):
                    request.asked.add(owner)
                    if request.full:
                        unshown = partial(self._give_up, request, TOO_LONG)
                        self._postbox.show(
                            where,
                            request.full,
                            name=f"A{request.number}",
                            unshown=unshown,
                            about=about,
                            tongue=tongue,
                        )
            if not request.asked:
                self._give_up(request)

    def _learn(self, request: Request, owner: int, receipt: Receipt) -> None:
        """Hear what became of a line to an owner; where none gets one, the call is not to wait."""
        if not self._requests.is_open(request):
            return
        if not isinstance(receipt, Refused):
            self._notice(request)
            return
        request.asked.discard(owner)
        if not request.asked:
            self._give_up(request)

    def _give_up(self, request: Request, reason: str = "") -> None:
        """Nobody can be asked. Where the run cannot go on now, it does when its time is over."""
        if not self._requests.is_open(request):
            return
        reason = reason or (UNREACHABLE if self._approvers.owners else NO_OWNER)
        logger.warning("run %s: A%d is denied: %s", request.run_id, request.number, reason)
        self._requests.decide(request, Deny(reason), "withdrawn")

    def _notice(self, request: Request) -> None:
        """Tell the asker once that the owner is asked; an owner in private has just been asked
        himself.
        """
        if request.run_id in self._noticed:
            return
        self._noticed[request.run_id] = None
        question = request.question
        if not question.conversation.is_group and question.sender.user_id in self._approvers.owners:
            return
        numbers = [other.number for other in self._requests.of(request.run_id)]
        quote = question.message_id if is_quoted(question) else ""
        words = waiting_line(numbers, tongue=language_of(question))
        self._postbox.post(question.conversation, words, quote=quote)

    def expire(self, run_id: str) -> None:
        """Tell the owners what nobody answered in time; the run goes on without it."""
        now = self._clock.now()
        for request in self._requests.of(run_id):
            if request.expires <= now:
                self._requests.end(request, "expired")
                self._tell(request, EXPIRED[self._tongue].format(number=request.number))

    def close(self, run_id: str) -> None:
        """The run is over: what still waited in it, because its question was recalled, waits no
        more.
        """
        for request in self._requests.of(run_id):
            self._requests.end(request, "withdrawn")
            self._tell(request, WITHDRAWN[self._tongue].format(number=request.number))

    def undo(self, run: SuspendedRun, *, muted: bool = False) -> None:
        """The run ended before it went on with what was allowed, because the bot is `muted` there
        or nobody wants it any more: it was not done, and the owners hear that.
        """
        words = (UNDONE if muted else WITHDRAWN)[self._tongue]
        for past in self._requests.undo(run, words):
            self._tell(past, past.words)

    def _tell(self, request: Request | EndedRequest, words: str) -> None:
        if self._approvers.terminal is not None:
            self._approvers.terminal(words)
        for owner in sorted(request.asked):
            self._postbox.post(Conversation(request.where.platform_id, "private", owner), words)
