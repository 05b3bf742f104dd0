"""Calls that wait for somebody's word, each known by its number, `#A3`; and those that did.

A run that waits is data, and so is what it waits for: the numbers are in it (`PendingCall`),
written down before anybody is asked, so that they mean the same after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as renewed
from typing import Final, Literal, TypeAlias

from cachetools import LRUCache
from msgspec.structs import replace

from bot.conversation.tasks import Resume
from bot.core.events import MessageReceived
from bot.policy.approval import (
    ALLOWED,
    DECIDED,
    DENIED,
    EXPIRED,
    MAX_OPEN,
    WITHDRAWN,
    full_request,
    influence_line,
    request_parts,
    what,
    who,
)
from bot.prompt.render import MAX_NAME, View, excerpt, label
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.runs import Led, PendingCall, SuspendedRun
from frostagent.types.suspension import Decision

Ending: TypeAlias = Literal["allowed", "denied", "expired", "withdrawn"]

ENDINGS: Final[Mapping[Ending, tuple[str, str]]] = {
    "allowed": DECIDED,
    "denied": DECIDED,
    "expired": EXPIRED,
    "withdrawn": WITHDRAWN,
}
NOBODYS: Final = Led()
WORDS: Final[Mapping[Ending, tuple[str, str]]] = {"allowed": ALLOWED, "denied": DENIED}
MAX_PAST = 500  # requests that are over, and still known by their number


@dataclass(slots=True)
class Request:
    """A call that waits. `text` is what people are asked, but for the line that says how to answer.

    `parts` are what is to be done and the arguments by name (`in_parts`). `question` is what its
    run was asked, `led` the others whose words led there. `full` is all of
    it where `text` is shortened, `since` when it was first asked. `asked` are the owners who may
    have read it or will.
    """

    number: int
    run_id: str
    call_id: str
    where: Conversation
    question: MessageReceived
    expires: float
    text: str
    asker: int
    since: float
    full: str = ""
    parts: tuple[str, tuple[tuple[str, str], ...]] = ("", ())
    led: Led | str = NOBODYS
    asked: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """A request that is over: where it was asked, how it ended, and what is said about it now.
    `asked` are the owners who may have read it.
    """

    where: Conversation
    words: str
    ending: Ending
    asked: frozenset[int]


class Requests:
    """All of them, `open` and `past`, by number; `ended` counts by outcome since the start.
    `resume` lets a suspended run go on; False where it cannot now.
    """

    def __init__(
        self,
        *,
        resume: Callable[[Conversation, Resume], bool],
        clock: Clock,
        tongue: Language = Language.CHINESE,
    ) -> None:
        self._resume = resume
        self._clock = clock
        self._tongue = tongue
        self._open: dict[int, Request] = {}
        self._past: LRUCache[int, EndedRequest] = LRUCache(MAX_PAST)
        self._last = 0
        self.ended: Counter[str] = Counter(dict.fromkeys(ENDINGS, 0))

    @property
    def open(self) -> Mapping[int, Request]:
        """Those that wait."""
        return self._open

    @property
    def past(self) -> Mapping[int, EndedRequest]:
        """The latest of those that are over."""
        return self._past

    def known(self) -> frozenset[int]:
        """The numbers of both."""
        return frozenset((*self._open, *self._past))

    def number(self, run: SuspendedRun, *, taken: Collection[int] = ()) -> SuspendedRun:
        """The run with a number for each of its waits; one that has a number keeps it, unless it is
        `taken`.
        """
        answers = list(run.answers)
        for index, answer in enumerate(answers):
            if isinstance(answer, PendingCall):
                number = self._last + 1 if answer.number in {0, *taken} else answer.number
                self._last = max(self._last, number)
                answers[index] = replace(answer, number=number)
        return replace(run, answers=tuple(answers))

    def register(
        self,
        run: SuspendedRun,
        question: MessageReceived,
        *,
        but: Collection[int] = (),
        asked_before: Collection[int] = (),
    ) -> list[Request]:
        """The new requests of a run, `but` those of these numbers, and no more of one asker than
        there is room for.
        """
        asker = replace(run.asker, name=label(run.asker.name, MAX_NAME))
        asked_by = who(asker, run.conversation, excerpt(question, View()), tongue=self._tongue)
        room = MAX_OPEN - sum(request.asker == asker.user_id for request in self._open.values())
        new = [
            Request(
                number=pending.number,
                run_id=run.run_id,
                call_id=pending.call.id,
                where=run.conversation,
                question=question,
                expires=pending.expires,
                text=f"{what(pending)}\n{asked_by}{influence_line(pending, tongue=self._tongue)}",
                asker=asker.user_id,
                since=pending.since if pending.number in asked_before else self._clock.now(),
                full=full_request(pending),
                parts=request_parts(pending),
                led=pending.led,
            )
            for pending in run.pending
            if pending.number not in but
        ][: max(0, room)]
        self._open |= {request.number: request for request in new}
        return new

    def of(self, run_id: str) -> list[Request]:
        """Those of a run that wait."""
        return [request for request in self._open.values() if request.run_id == run_id]

    def is_open(self, request: Request) -> bool:
        """Whether it is this one that waits by its number."""
        return self._open.get(request.number) is request

    def decide(self, request: Request, decision: Decision, ending: Ending, *, by: str = "") -> bool:
        """Let its run go on with this, and end it; False where the run cannot go on now.

        The word counts as long as it could be given, also where the bot is muted meanwhile.
        """
        latest = self._moment(request.expires)
        work = Resume(request.run_id, {request.call_id: decision}, request.question, latest)
        if not self._resume(request.where, work):
            return False
        self.end(request, ending, by=by)
        return True

    def refuse(
        self, run: SuspendedRun, question: MessageReceived, denied: Mapping[str, Decision]
    ) -> None:
        """Let a run go on with what is decided about calls that are no requests."""
        latest = self._moment(run.expires)
        self._resume(run.conversation, Resume(run.run_id, denied, question, latest))

    def _moment(self, time: float) -> float:
        """That time by the monotonic clock."""
        return self._clock.monotonic() + time - self._clock.now()

    def end(self, request: Request, ending: Ending, *, by: str = "") -> None:
        """It waits no more; `by` is who decided."""
        del self._open[request.number]
        self.ended[ending] += 1
        word = WORDS.get(ending, ("", ""))[self._tongue]
        words = ENDINGS[ending][self._tongue].format(number=request.number, by=by, word=word)
        asked = frozenset(request.asked)
        self._past[request.number] = EndedRequest(request.where, words, ending, asked)

    def undo(self, run: SuspendedRun, words: str) -> list[EndedRequest]:
        """What was allowed in a run that did not go on was not done: that is said about it now, in
        these `words` about its `number`. Those requests.
        """
        undone = []
        for number in (pending.number for pending in run.pending):
            if (past := self._past.get(number)) is not None and past.ending == "allowed":
                said = words.format(number=number)
                self._past[number] = renewed(past, words=said, ending="withdrawn")
                undone.append(self._past[number])
        return undone
