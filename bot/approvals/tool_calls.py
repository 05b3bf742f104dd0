"""Tool calls that wait for an owner's approval, each with a number such as `A3`.

A suspended run is data that includes its pending calls with their numbers (`PendingCall`), stored
before any owner is asked, so that numbers keep their meaning over a restart. Owners are asked in
private; they reply there, or in the group of the question. The first reply decides. In a terminal
chat the terminal takes the place of the owners.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as renewed
from functools import partial
from typing import Final, Literal, TypeAlias

from cachetools import LRUCache
from msgspec.structs import replace

from bot.approvals.decision import (
    ALLOWED,
    DENIED,
    NO_OWNER,
    WORD_OF,
    Approvers,
    Candidate,
    Reply,
    mentions_the_bot,
    outcome,
    read_answer,
    without_blanks,
    words_in,
)
from bot.approvals.tool_call_wording import (
    AGAIN,
    BUSY,
    DECIDED,
    DONE,
    EXPIRED,
    FILE,
    MAX_OPEN,
    TERMINAL,
    TOO_LONG,
    TOO_MANY,
    UNDONE,
    UNKNOWN,
    UNREACHABLE,
    WITHDRAWN,
    YOU,
    asker_line,
    call_line,
    full_request,
    influence_line,
    number_in,
    reply_line,
    request_parts,
    waiting_line,
)
from bot.core.actions import send_prefix_of_turn
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, message_words, quote_in
from bot.core.language import Language, Phrase
from bot.core.run_ids import number_of
from bot.core.server_clock import ServerClock
from bot.core.settlement import Settled
from bot.outbox.delivery import Postbox
from bot.policy.fallback_replies import is_quoted, language_of
from bot.prompt.render import MAX_NAME, View, account, excerpt, label
from frostagent.types.ports import Clock
from frostagent.types.runs import Led, PendingCall, SuspendedRun
from frostagent.types.speech import Receipt, Refused
from frostagent.types.suspension import Allow, Decision, Deny

logger = logging.getLogger(__name__)

Ending: TypeAlias = Literal["allowed", "denied", "expired", "withdrawn"]

ENDINGS: Final[Mapping[Ending, Phrase]] = {
    "allowed": DECIDED,
    "denied": DECIDED,
    "expired": EXPIRED,
    "withdrawn": WITHDRAWN,
}
WORDS: Final[Mapping[Ending, Phrase]] = {"allowed": ALLOWED, "denied": DENIED}
NOBODYS: Final = Led()
MAX_PAST = 500  # ended requests that are remembered by number
MAX_NOTICED = 500  # runs whose askers were notified
SAID_NO = "the owner said no"

ResumeRun: TypeAlias = Callable[
    [Conversation, str, Mapping[str, Decision], MessageReceived, float], bool
]
"""Resumes the suspended run of this id with decisions by call id, about its question, until a time
of the monotonic clock; False if it cannot now.
"""


@dataclass(slots=True)
class Request:
    """A pending call. `text` is shown to approvers, without the line on how to answer, and `full`
    is the whole action if `text` shortens it. `parts` are the action and the arguments by name
    (`request_parts`), `led` the others whose words influenced the call, `since` when it was first
    asked, `asked` the owners who may have read it or will.
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
    """An ended request: where it was asked, how it ended, and the reply to further decisions.
    `asked` are the owners who may have read it.
    """

    where: Conversation
    words: str
    ending: Ending
    asked: frozenset[int]


class ToolApprovals:
    """The `DecisionHandler` of tool calls: asks approvers, and resumes runs with their decisions.
    `ended` counts requests by outcome since the start. Owners are answered through `reply_postbox`.
    """

    def __init__(
        self,
        *,
        approvers: Approvers,
        resume: ResumeRun,
        postbox: Postbox,
        reply_postbox: Postbox,
        server_clock: ServerClock,
        clock: Clock,
    ) -> None:
        self._approvers = approvers
        self._language = approvers.language
        self._resume = resume
        self._postbox = postbox
        self._reply_postbox = reply_postbox
        self._server_clock = server_clock
        self._clock = clock
        self._open: dict[int, Request] = {}
        self._past: LRUCache[int, EndedRequest] = LRUCache(MAX_PAST)
        self._last = 0
        self._noticed: LRUCache[str, None] = LRUCache(MAX_NOTICED)
        self.ended: Counter[str] = Counter(dict.fromkeys(ENDINGS, 0))

    @property
    def open(self) -> Mapping[int, Request]:
        return self._open

    # --- suspended runs -----------------------------------------------------------------------

    def number(self, run: SuspendedRun, *, taken: Collection[int] = ()) -> SuspendedRun:
        """Number the pending calls of a run; a call keeps its number unless that is `taken`."""
        answers = list(run.answers)
        for index, answer in enumerate(answers):
            if isinstance(answer, PendingCall):
                number = self._last + 1 if answer.number in {0, *taken} else answer.number
                self._last = max(self._last, number)
                answers[index] = replace(answer, number=number)
        return replace(run, answers=tuple(answers))

    def ask(self, run: SuspendedRun, question: MessageReceived) -> None:
        """Ask about the pending calls of a run, each once; the run with its numbers must be stored
        before. Calls beyond the limit of an asker are denied without asking.
        """
        self._send(self._register(run, question, but=self._known()))
        known = self._known()
        surplus = [pending for pending in run.pending if pending.number not in known]
        if surplus:
            logger.warning(
                "run %s: %d requests are denied: too many of %d",
                run.run_id,
                len(surplus),
                number_of(run.asker),
            )
            denied = {pending.call.id: Deny(TOO_MANY) for pending in surplus}
            latest = self._monotonic(run.expires)
            self._resume(question.conversation, run.run_id, denied, question, latest)

    def restore(self, run: SuspendedRun, question: MessageReceived) -> SuspendedRun:
        """Wait again for what an earlier process waited for, and ask again, as it may not have
        asked. Returns the run; a number changes only if this process has used it meanwhile.
        """
        before = {pending.number for pending in run.pending}
        run = self.number(run, taken=self._known())
        self._noticed[run.run_id] = None
        requests = self._register(run, question, asked_before=before)
        now = self._clock.now()
        if self._approvers.are_there:  # an approver who is missing now may come before it expires
            self._send([request for request in requests if request.expires > now])
        return run

    def expire(self, run_id: str) -> None:
        """Notify owners of calls that were not answered in time; the run goes on without them."""
        now = self._clock.now()
        for request in self._of(run_id):
            if request.expires <= now:
                self._end(request, "expired")
                self._tell(request, EXPIRED.format(self._language, number=request.number))

    def close(self, run_id: str) -> None:
        """The run is over: withdraw its pending calls."""
        for request in self._of(run_id):
            self._end(request, "withdrawn")
            self._tell(request, WITHDRAWN.format(self._language, number=request.number))

    def undo(self, run: SuspendedRun, *, muted: bool = False) -> None:
        """The run ended before it used an approval, because the bot is `muted` there or its
        question is over: notify owners that the call was not made.
        """
        words = UNDONE if muted else WITHDRAWN
        for number in (pending.number for pending in run.pending):
            if (past := self._past.get(number)) is not None and past.ending == "allowed":
                past = renewed(
                    past, words=words.format(self._language, number=number), ending="withdrawn"
                )
                self._past[number] = past
                self._tell(past, past.words)

    # --- the requests -------------------------------------------------------------------------

    def _known(self) -> frozenset[int]:
        """The numbers of all open requests and of the latest ended ones."""
        return frozenset((*self._open, *self._past))

    def _of(self, run_id: str) -> list[Request]:
        return [request for request in self._open.values() if request.run_id == run_id]

    def _is_open(self, request: Request) -> bool:
        return self._open.get(request.number) is request

    def _register(
        self,
        run: SuspendedRun,
        question: MessageReceived,
        *,
        but: Collection[int] = (),
        asked_before: Collection[int] = (),
    ) -> list[Request]:
        """The new requests of a run, except the numbers in `but`, up to the limit of its asker."""
        asker = replace(run.asker, name=label(run.asker.name, MAX_NAME))
        words = excerpt(question, View())
        where, user_id = question.conversation, number_of(asker)
        asked_by = asker_line(asker, where, words, language=self._language)
        room = MAX_OPEN - sum(request.asker == user_id for request in self._open.values())
        new = [
            Request(
                number=pending.number,
                run_id=run.run_id,
                call_id=pending.call.id,
                where=where,
                question=question,
                expires=pending.expires,
                text=(
                    f"{call_line(pending)}\n{asked_by}"
                    f"{influence_line(pending, language=self._language)}"
                ),
                asker=user_id,
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

    def _decide(
        self, request: Request, decision: Decision, ending: Ending, *, by: str = ""
    ) -> bool:
        """Resume the run and end the request; False if the run cannot be resumed now. The decision
        holds until the request expires, even if the bot is muted meanwhile.
        """
        latest, decisions = self._monotonic(request.expires), {request.call_id: decision}
        if not self._resume(request.where, request.run_id, decisions, request.question, latest):
            return False
        self._end(request, ending, by=by)
        return True

    def _monotonic(self, time: float) -> float:
        return self._clock.monotonic() + time - self._clock.now()

    def _end(self, request: Request, ending: Ending, *, by: str = "") -> None:
        del self._open[request.number]
        self.ended[ending] += 1
        word = WORDS[ending].format(self._language) if ending in WORDS else ""
        words = ENDINGS[ending].format(self._language, number=request.number, by=by, word=word)
        asked = frozenset(request.asked)
        self._past[request.number] = EndedRequest(request.where, words, ending, asked)

    # --- asking -------------------------------------------------------------------------------

    def _send(self, requests: Iterable[Request]) -> None:
        for request in requests:
            logger.info("run %s waits for the owner: A%d", request.run_id, request.number)
            if self._approvers.terminal is not None:
                first, _, _ = request.text.partition("\n")
                words = TERMINAL.format(self._language, number=request.number)
                self._approvers.terminal(f"{request.full or first}  {words}")
            else:
                self._ask_owners(request)

    def _ask_owners(self, request: Request) -> None:
        language, about = self._language, send_prefix_of_turn(request.run_id)
        left = request.expires - self._clock.now()
        lines = [request.text, reply_line(request.number, left, language=language)]
        if request.full:
            lines.append(FILE.format(language, number=request.number))
        words = "\n".join(lines)
        for owner in sorted(self._approvers.owners):
            where = Conversation(request.where.platform_id, "private", owner)
            learn = partial(self._learn, request, owner)
            if self._postbox.post(where, words, about=about, then=learn):
                request.asked.add(owner)
                if request.full:
                    self._postbox.show(
                        where,
                        request.full,
                        name=f"A{request.number}",
                        unshown=partial(self._give_up, request, TOO_LONG),
                        about=about,
                        language=language,
                    )
        if not request.asked:
            self._give_up(request)

    def _learn(self, request: Request, owner: int, receipt: Receipt) -> None:
        """Handle the receipt of a request to an owner; deny the call if none was delivered."""
        if not self._is_open(request):
            return
        if not isinstance(receipt, Refused):
            self._notice(request)
            return
        request.asked.discard(owner)
        if not request.asked:
            self._give_up(request)

    def _give_up(self, request: Request, reason: str = "") -> None:
        """Deny a call about which no approver can be asked. If the run cannot go on now, it will at
        expiry.
        """
        if not self._is_open(request):
            return
        reason = reason or (UNREACHABLE if self._approvers.owners else NO_OWNER)
        logger.warning("run %s: A%d is denied: %s", request.run_id, request.number, reason)
        self._decide(request, Deny(reason), "withdrawn")

    def _notice(self, request: Request) -> None:
        """Notify the asker once that the owner was asked, unless they are the owner, in private."""
        if request.run_id in self._noticed:
            return
        self._noticed[request.run_id] = None
        question = request.question
        if not question.conversation.is_group and question.sender.user_id in self._approvers.owners:
            return
        numbers = [other.number for other in self._of(request.run_id)]
        quote = question.message_id if is_quoted(question) else ""
        words = waiting_line(numbers, language=language_of(question))
        self._postbox.post(question.conversation, words, quote=quote)

    def _tell(self, request: Request | EndedRequest, words: str) -> None:
        if self._approvers.terminal is not None:
            self._approvers.terminal(words)
        for owner in sorted(request.asked):
            self._postbox.post(Conversation(request.where.platform_id, "private", owner), words)

    # --- replies ------------------------------------------------------------------------------

    def read_reply(self, message: MessageReceived) -> Reply | None:
        return None if (words := words_in(message)) is None else read_answer(words)

    def find_number(self, quoted: MessageReceived) -> int | None:
        """The number in a request or in the notice to its asker; None for a text that only
        resembles one.
        """
        text = message_words(quoted)
        if number := number_in(text):
            request = self._open.get(number)
            is_it = request is None or without_blanks(text).startswith(without_blanks(request.text))
            return number if is_it else None
        said = without_blanks(text)
        notices = (
            (waiting_line([one], language=each), one) for one in self._open for each in Language
        )
        return next((one for line, one in notices if said == without_blanks(line)), None)

    def list_candidates(self, message: MessageReceived, reply: Reply) -> list[Candidate]:
        """In private, all that this account asked the owner. In a group, requests asked there, if
        the reply mentions the bot: the owner's own, and with a quote also others', which are not
        sure.
        """
        here, owner = message.conversation, message.sender.user_id
        if here.is_group and not mentions_the_bot(message):
            return []
        word, has_quote = WORD_OF[reply.choice].format(self._language), bool(quote_in(message))
        return [
            Candidate(
                number=request.number,
                name=f"A{request.number}",
                example=f"{word} A{request.number}",
                is_sure=not here.is_group or request.asker == owner,
            )
            for request in self._open.values()
            if (
                request.where == here and (has_quote or request.asker == owner)
                if here.is_group
                else owner in request.asked and request.where.platform_id == here.platform_id
            )
        ]

    def accept(self, message: MessageReceived, number: int, reply: Reply) -> bool:
        """In a group, a reply about a request asked elsewhere is ordinary chat. A reply that is
        older than the request, or was found later in a history, decides nothing.
        """
        here = message.conversation
        request, past = self._open.get(number), self._past.get(number)
        asked_in = request.where if request else past.where if past else None
        if here.is_group and here != asked_in:
            return False
        if request and self._server_clock.is_older(message, request.since):
            words = AGAIN.format(self._language, number=number)
        elif request is None and self._server_clock.is_missed(message):
            logger.info("A%d: an answer that was missed decides nothing", number)
            return True
        else:
            words = self.settle(number, reply, by=account(message.sender)).words
        quote = message.message_id if is_quoted(message) else ""
        self._reply_postbox.post(here, words, quote=quote)
        return True

    def take_line(self, line: str) -> bool:
        """Handle a line typed in the terminal if it is a reply to a request; else return False."""
        terminal, reply = self._approvers.terminal, read_answer(line)
        if terminal is None or reply is None or reply.number is None:
            return False
        terminal(self.settle(reply.number, reply, by=YOU.format(self._language)).words)
        return True

    def settle(self, number: int, reply: Reply, *, by: str) -> Settled:
        """Apply a decision; the first one counts. `by` names who made it, for others to read."""
        language = self._language
        request, past = self._open.get(number), self._past.get(number)
        if request is None:
            unknown = outcome("unknown", UNKNOWN, language, number=number)
            return Settled("over", past.words) if past else unknown
        if self._clock.now() >= request.expires:
            self._end(request, "expired")
            return outcome("late", EXPIRED, language, number=number)
        decision: Decision
        ending: Ending
        if reply.choice == "approve":
            decision, ending = Allow(), "allowed"
        else:
            decision = Deny(f"{SAID_NO}: {reply.words}" if reply.words else SAID_NO)
            ending = "denied"
        if not self._decide(request, decision, ending, by=by):
            return outcome("busy", BUSY, language, number=number)
        logger.info("A%d of run %s: %s by %s", number, request.run_id, decision.type, by)
        return outcome("done", DONE, language, number=number, word=WORDS[ending])
