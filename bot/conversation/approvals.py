"""The owner's word on a call: he is asked in private by a number, `#A3`, and what he answers lets
the run go on.

A run that waits is data, and so is what it waits for: the numbers are in it (`PendingCall`),
written down before anybody is asked, so that they mean the same after a restart. An answer is taken
before any lane sees it and never reaches the model. Only the owners' answers count, in private or
in the group it was asked in; the first word decides. What is older than the request, or was missed
and found in a history, decides nothing. In the chat of a terminal, the terminal stands in for the
owners.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from cachetools import LRUCache
from msgspec.structs import replace

from bot.conversation.ages import Ages
from bot.domain.actions import Receipt, Refused
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock
from bot.domain.run import PendingCall, SuspendedRun
from bot.domain.suspension import Allow, ApprovalRequest, Decision, Deny, Pending
from bot.memory.history import History
from bot.policy.apologies import is_quoted
from bot.policy.approval import (
    AGAIN,
    ALLOWED,
    BUSY,
    DECIDED,
    DENIED,
    DONE,
    EXPIRED,
    FILE,
    MAX_OPEN,
    TOO_LONG,
    TOO_MANY,
    UNKNOWN,
    WITHDRAWN,
    Answer,
    answer_in,
    flat,
    how,
    in_full,
    mentions_the_bot,
    notice,
    number_in,
    quote_in,
    read_answer,
    what,
    who,
    words_of,
)
from bot.policy.reach import WAIT
from bot.prompt.frame import label
from bot.prompt.render import MAX_NAME, excerpt, speaker
from bot.speaking.outbox import Outbox
from bot.speaking.postbox import Postbox

logger = logging.getLogger(__name__)

MAX_PAST = 500  # requests that are over, and still known by their number

NOBODY = "the bot has no owner who could be asked (BOT_OWNERS is empty)"
UNREACHABLE = "no owner of the bot could be reached"
SAID_NO = "the owner said no"

Say: TypeAlias = Callable[[str], None]
Resume: TypeAlias = Callable[[Conversation, str, Mapping[str, Decision]], bool]


@dataclass(slots=True)
class Request:
    """A call that waits. `text` is what people are asked, but for the line that says how to answer.

    `full` is all of it where `text` is shortened, `since` when it was first asked. `asked` are the
    owners who may have read it or will.
    """

    number: int
    run_id: str
    call_id: str
    where: Conversation
    expires: float
    text: str
    asker: int
    since: float
    full: str = ""
    asked: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Past:
    """A request that is over: where it was asked, and what is said about it now."""

    where: Conversation
    words: str


class Approvals:
    """The `Approver` of the service, and who listens for the owners' answers."""

    def __init__(
        self, *, owners: frozenset[int], outbox: Outbox, history: History, clock: Clock
    ) -> None:
        self._owners = owners
        self._postbox = Postbox(outbox=outbox, history=history, clock=clock)
        self._history = history
        self._clock = clock
        self._open: dict[int, Request] = {}
        self._past: LRUCache[int, Past] = LRUCache(MAX_PAST)
        self._noticed: LRUCache[str, None] = LRUCache(MAX_PAST)
        self.ages = Ages(clock)
        self._last = 0
        self._resume: Resume = _resume_nothing
        self._terminal: Say | None = None

    def resume_with(self, resume: Resume) -> None:
        """From now on let runs go on by this; it says False where it cannot now."""
        self._resume = resume

    def ask_on(self, terminal: Say) -> None:
        """From now on whoever reads this is asked, in the owners' place; what he answers comes
        through `answer`.
        """
        self._terminal = terminal

    # --- asking -----------------------------------------------------------------------------------

    async def approve(self, request: ApprovalRequest) -> Deny | Pending:
        """Nobody can say at once: the run is to wait, unless there is nobody to ask."""
        if not self._owners and self._terminal is None:
            logger.warning(
                "run %s: %s must be allowed, but %s", request.run_id, request.name, NOBODY
            )
            return Deny(NOBODY)
        return Pending(WAIT)

    def number(self, run: SuspendedRun) -> SuspendedRun:
        """The run with a number for each of its waits; one that has a number keeps it."""
        return self._numbered(run, taken=())

    def ask(self, run: SuspendedRun, question: MessageReceived) -> None:
        """Ask about what waits in a run, unless that was done; the run with its numbers must be
        written down.

        What is too much of one asker is denied, and no owner is asked.
        """
        known = {*self._open, *self._past}
        self._send(self._register(run, question, but=known), question)
        surplus = [
            pending for pending in run.pending if pending.number not in {*self._open, *self._past}
        ]
        if surplus:
            logger.warning(
                "run %s: %d requests are denied: too many of %d",
                run.run_id,
                len(surplus),
                run.asker.user_id,
            )
            self._resume(
                run.conversation,
                run.run_id,
                {pending.call.id: Deny(TOO_MANY) for pending in surplus},
            )

    def restore(self, run: SuspendedRun, question: MessageReceived) -> SuspendedRun:
        """Wait for what an earlier process waited for, and ask once more: nobody knows whether it
        came to that.

        The run with its numbers, which are others only where this process has given them away
        meanwhile.
        """
        before = {pending.number for pending in run.pending}
        run = self._numbered(run, taken={*self._open, *self._past})
        self._noticed[run.run_id] = None
        requests, now = self._register(run, question, asked_before=before), self._clock.now()
        if (
            self._owners or self._terminal is not None
        ):  # who is not there yet may come, until the time is over
            self._send([request for request in requests if request.expires > now], question)
        return run

    def _numbered(self, run: SuspendedRun, *, taken: Collection[int]) -> SuspendedRun:
        answers = list(run.answers)
        for index, answer in enumerate(answers):
            if isinstance(answer, PendingCall):
                number = self._last + 1 if answer.number in {0, *taken} else answer.number
                self._last = max(self._last, number)
                answers[index] = replace(answer, number=number)
        return replace(run, answers=tuple(answers))

    def _register(
        self,
        run: SuspendedRun,
        question: MessageReceived,
        *,
        but: Collection[int] = (),
        asked_before: Collection[int] = (),
    ) -> list[Request]:
        asker = replace(run.asker, name=label(run.asker.name, MAX_NAME))
        asked_by = who(asker, run.conversation, excerpt(question))
        room = MAX_OPEN - sum(request.asker == asker.user_id for request in self._open.values())
        new = [
            Request(
                number=pending.number,
                run_id=run.run_id,
                call_id=pending.call.id,
                where=run.conversation,
                expires=pending.expires,
                text=f"{what(pending)}\n{asked_by}",
                asker=asker.user_id,
                since=pending.since if pending.number in asked_before else self._clock.now(),
                full=in_full(pending),
            )
            for pending in run.pending
            if pending.number not in but
        ][: max(0, room)]
        self._open |= {request.number: request for request in new}
        return new

    def _send(self, requests: Iterable[Request], question: MessageReceived) -> None:
        for request in requests:
            logger.info("run %s waits for the owner: A%d", request.run_id, request.number)
            if self._terminal is not None:
                first, _, _ = request.text.partition("\n")
                self._terminal(
                    f"{request.full or first}  同意 A{request.number} / 拒绝 A{request.number}"
                )
                continue
            said = [request.text, how(request.number, request.expires - self._clock.now())]
            words = "\n".join([*said, FILE.format(number=request.number)] if request.full else said)
            for owner in sorted(self._owners):
                where = Conversation(request.where.platform_id, "private", owner)
                if self._postbox.post(
                    where, words, then=partial(self._learn, request, owner, question)
                ):
                    request.asked.add(owner)
                    if request.full:
                        unshown = partial(self._give_up, request, TOO_LONG)
                        self._postbox.show(
                            where, request.full, name=f"A{request.number}", unshown=unshown
                        )
            if not request.asked:
                self._give_up(request)

    def _learn(
        self, request: Request, owner: int, question: MessageReceived, receipt: Receipt
    ) -> None:
        """What became of a line to an owner; where no owner gets one, the call is not to wait."""
        if self._open.get(request.number) is not request:
            return
        if not isinstance(receipt, Refused):
            self._notice(request, question)
            return
        request.asked.discard(owner)
        if not request.asked:
            self._give_up(request)

    def _give_up(self, request: Request, reason: str = "") -> None:
        """Nobody can be asked. Where the run cannot go on now, it does when its time is over."""
        if self._open.get(request.number) is not request:
            return
        reason = reason or (UNREACHABLE if self._owners else NOBODY)
        logger.warning("run %s: A%d is denied: %s", request.run_id, request.number, reason)
        if self._resume(request.where, request.run_id, {request.call_id: Deny(reason)}):
            self._end(request, WITHDRAWN)

    def _notice(self, request: Request, question: MessageReceived) -> None:
        """Tell the asker once that the owner is asked; an owner in private has just been asked
        himself.
        """
        if request.run_id in self._noticed:
            return
        self._noticed[request.run_id] = None
        if not question.conversation.is_group and question.sender.user_id in self._owners:
            return
        numbers = [number for number, other in self._open.items() if other.run_id == request.run_id]
        quote = question.message_id if is_quoted(question) else ""
        self._postbox.post(question.conversation, notice(numbers), quote=quote)

    # --- answers ----------------------------------------------------------------------------------

    def take(self, message: MessageReceived) -> bool:
        """Whether this is an owner's answer to a request, which he names or quotes; then it is done
        with.

        A quote of what is not in memory is none here: see `take_later`.
        """
        self.ages.hear(message)
        answer = self._read(message)
        if answer is None:
            return False
        quoted = self._history.known(message.conversation, quote_in(message))
        return self._take(answer, message, quoted)

    async def take_later(self, message: MessageReceived) -> bool:
        """The same, where there is time to look up what is quoted."""
        answer = self._read(message)
        if answer is None:
            return False
        quote = quote_in(message)
        quoted = (
            await self._history.find(message.conversation, quote)
            if quote and not answer.number
            else None
        )
        return self._take(answer, message, quoted)

    def answer(self, line: str) -> bool:
        """Whether this line of the terminal that is asked is an answer to a request; then it is
        done with.
        """
        answer = read_answer(line)
        if self._terminal is None or answer is None or not answer.number:
            return False
        return self._decide(answer, answer.number, reply=self._terminal)

    def _read(self, message: MessageReceived) -> Answer | None:
        if message.sender.user_id not in self._owners or message.is_own:
            return None
        return answer_in(message)

    def _take(
        self, answer: Answer, message: MessageReceived, quoted: MessageReceived | None
    ) -> bool:
        number = answer.number or (self._number_of(quoted) if quoted else self._only_one(message))
        here = message.conversation
        quote = message.message_id if is_quoted(message) else ""
        reply = partial(self._postbox.post, here, quote=quote)
        return bool(number) and self._decide(answer, number, message=message, reply=reply)

    def _only_one(self, message: MessageReceived) -> int:
        """The request that an owner means who names none: the only one that he was asked, or in a
        group, that is his own; there he must speak to the bot. 0 where there are more, or he quotes
        something else."""
        here, owner = message.conversation, message.sender.user_id
        if quote_in(message) or (here.is_group and not mentions_the_bot(message)):
            return 0
        meant = [
            request.number
            for request in self._open.values()
            if (
                request.where == here and request.asker == owner
                if here.is_group
                else owner in request.asked
            )
        ]
        return meant[0] if len(meant) == 1 else 0

    def _number_of(self, quoted: MessageReceived) -> int:
        """The request that a message asks about; 0 for one of somebody else, or one that only looks
        like ours.
        """
        text = words_of(quoted) if quoted.is_own else ""
        if number := number_in(text):
            request = self._open.get(number)
            return number if request is None or flat(text).startswith(flat(request.text)) else 0
        return next((number for number in self._open if flat(text) == flat(notice([number]))), 0)

    def _decide(
        self,
        answer: Answer,
        number: int,
        *,
        message: MessageReceived | None = None,
        reply: Callable[[str], object],
    ) -> bool:
        """Take the answer; False where it is talk: a group is no place for requests that were asked
        elsewhere.

        `message` is what says it, None in the terminal.
        """
        here = message.conversation if message else None
        request, past = self._open.get(number), self._past.get(number)
        asked_in = request.where if request else past.where if past else None
        if here is not None and here.is_group and here != asked_in:
            return False
        if message and request and self.ages.is_older(message, request.since):
            reply(AGAIN.format(number=number))
        elif message and request is None and self.ages.is_missed(message):
            logger.info("A%d: an answer that was missed decides nothing", number)
        elif request is None:
            reply(past.words if past else UNKNOWN.format(number=number))
        elif self._clock.now() >= request.expires:
            self._end(request, EXPIRED)
            reply(EXPIRED.format(number=number))
        else:
            word = ALLOWED if answer.allows else DENIED
            decision = (
                Allow()
                if answer.allows
                else Deny(f"{SAID_NO}: {answer.reason}" if answer.reason else SAID_NO)
            )
            if not self._resume(request.where, request.run_id, {request.call_id: decision}):
                reply(BUSY.format(number=number))
                return True
            by = speaker(message.sender) if message else "你"
            logger.info("A%d of run %s: %s by %s", number, request.run_id, decision.type, by)
            self._end(request, DECIDED, by=by, word=word)
            reply(DONE.format(number=number, word=word))
        return True

    # --- the end of a request ---------------------------------------------------------------------

    def expire(self, run_id: str) -> None:
        """Tell the owners what nobody answered in time; the run goes on without it."""
        now = self._clock.now()
        for request in self._of(run_id):
            if request.expires <= now:
                self._end(request, EXPIRED)
                self._tell(request, EXPIRED.format(number=request.number))

    def close(self, run_id: str) -> None:
        """The run is over: what still waited in it, because its question was recalled, waits no
        more.
        """
        for request in self._of(run_id):
            self._end(request, WITHDRAWN)
            self._tell(request, WITHDRAWN.format(number=request.number))

    def _of(self, run_id: str) -> list[Request]:
        return [request for request in self._open.values() if request.run_id == run_id]

    def _end(self, request: Request, words: str, **more: str) -> None:
        del self._open[request.number]
        self._past[request.number] = Past(
            request.where, words.format(number=request.number, **more)
        )

    def _tell(self, request: Request, words: str) -> None:
        if self._terminal is not None:
            self._terminal(words)
        for owner in sorted(request.asked):
            self._postbox.post(Conversation(request.where.platform_id, "private", owner), words)


def _resume_nothing(where: Conversation, run_id: str, decisions: Mapping[str, Decision]) -> bool:
    logger.warning(
        "run %s in %s cannot go on: %d decisions are lost", run_id, where, len(decisions)
    )
    return False
