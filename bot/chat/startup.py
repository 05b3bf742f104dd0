"""Recovery at the start: what an earlier process left is closed, reported, sent or asked again,
each at most once.

- An open turn is interrupted: its calls get results, its round is stored, and nothing in it runs
  again.
- If its question is young and unanswered, its asker gets an answer now: a new run if it had no
  effects yet, else an apology. A second attempt that was interrupted gets an apology, too.
- A send that was never on the wire is sent if it is young, else dropped; one that may have been on
  the wire is only looked for.
- If an answer was refused just before the end, its asker is told, unless that was recorded.
- Work in a restored backup may have been completed since, longer ago than a history reaches. Its
  sends count as possibly on the wire, and its questions are not asked again.

A question may have been received more than once, if it came again while the journal could not be
read: all its effects count, and it is answered once. A store that cannot be read at the start is
asked until it can, but only about what earlier processes wrote; a question that came again
meanwhile is not asked twice. As the process may end during recovery, a turn is closed in the same
commit that records what its asker gets.

Before that, interrupted requests to models are counted. Without a daily limit the first request of
a question is not reserved, which would slow down every message; an open turn without a row for it
shows that it may have been under way, and it counts as much as would have been reserved. All other
requests are reserved (`bot/budget/meter.py`), so that each left a row. The process may have ended
before the request was made, while it looked at pictures or waited to repeat a failed one: that
counts, too. Of a turn that was erased under way nothing is left to estimate, so its first request
is in no sum.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from contextvars import copy_context
from itertools import islice

from msgspec.structs import replace

from bot.chat.backfill import LateMessages
from bot.chat.context_builder import ContextBuilder
from bot.chat.deduplicator import SeenMessages
from bot.chat.perception import MAX_PICTURES
from bot.chat.rate_limiter import RateLimiter
from bot.chat.suspended import SuspendedTurn, SuspendedTurns
from bot.chat.tasks import YOUNG
from bot.chat.turn_journal import TurnJournal
from bot.core.events import MessageReceived
from bot.core.journal import OpenTurn, Recovery, SendState, StoredSend, TurnClosed, UsageAdded
from bot.core.ports import Store
from bot.core.segments import Picture
from bot.memory.history import History
from bot.outbox.outbox import Outbox
from bot.policy.fallback_replies import SORRY, apology
from bot.prompt import render
from bot.prompt.compose import PicturePlace, QuestionPicture, now_line, with_pictures
from bot.prompt.prompt_language import choose_wording
from frostagent.engine.run_state import close_interrupted
from frostagent.engine.toolset import Toolset
from frostagent.models.failover import Failover
from frostagent.types.messages import AssistantMessage, ModelRequest, Usage, UserMessage, joined
from frostagent.types.ports import Clock
from frostagent.types.runs import Asker, Stop, SuspendedRun

logger = logging.getLogger(__name__)

ON_WIRE = (SendState.SENDING, SendState.UNKNOWN, SendState.CONFIRMED)
DRAFTED = (SendState.DRAFT, SendState.PUBLISHED, SendState.REWORDED)
FIRST = 1  # step
SETTLED = (*ON_WIRE, *DRAFTED)  # that a person, an owner at least, has read or will read


class Recoverer:
    """Settles what is left, once. Estimates for `model` unless a persona names another."""

    def __init__(
        self,
        *,
        store: Store,
        history: History,
        context_builder: ContextBuilder,
        model: Failover,
        seen: SeenMessages,
        rate_limiter: RateLimiter,
        late_messages: LateMessages,
        suspensions: SuspendedTurns,
        turn_journal: TurnJournal,
        outbox: Outbox,
        toolset: Toolset,
        clock: Clock,
    ) -> None:
        self._store = store
        self._history = history
        self._context_builder = context_builder
        self._model = model
        self._suspensions = suspensions
        self._turn_journal = turn_journal
        self._seen = seen
        self._rate_limiter = rate_limiter
        self._late_messages = late_messages
        self._outbox = outbox
        self._toolset = toolset
        self._clock = clock
        self._is_late = False

    async def load(self) -> bool:
        """Settle everything. Returns False if the store cannot be read now; then call again: new
        questions are answered meanwhile.
        """
        recovery = await self.read()
        if recovery is None:
            self._is_late = True
            return False
        await self.recover(recovery)
        if self._is_late:
            logger.info("what the earlier process left is settled now")
        return True

    async def read(self) -> Recovery | None:
        """All that was left; None if it cannot be read. Entries that close a turn follow the row of
        its request, so that a process that ends in between counts nothing twice.
        """
        recovery = await self._store.recover()
        if recovery is None:
            return None
        taken = [await self._first_request(turn) for turn in recovery.turns if turn.uncounted]
        if taken:
            recovery = await self._store.recover()  # a recall may have come meanwhile
        if recovery is not None:
            self._store.put(*taken)
        return recovery

    async def recover(self, recovery: Recovery) -> None:
        """Settle everything; the lanes and the outbox must be open."""
        recovery, since = _as_of_backup(recovery), recovery.restored
        # First decide which turn owns each question: a suspended run, or one of the open turns.
        waits = {
            one.turn_id for one in reversed(recovery.suspended) if self._seen.claim(one.question)
        }
        turns = [
            (same, self._seen.claim(same[-1].question)) for same in _by_question(recovery.turns)
        ]
        waking = [one for one in recovery.waking if self._seen.claim(one) and one.time >= since]
        self._rate_limiter.preload(recovery.asked)
        self._late_messages.preload(recovery.seen, recovery.active, whole=recovery.whole)
        coming = {send.send_id for send in recovery.sends if self._settle_send(send)}
        again: list[OpenTurn] = []
        closed: list[TurnClosed] = []
        for same, is_ours in turns:
            if any(turn.recalled for turn in same):
                self._give_up(same)
            elif not is_ours or same[-1].at < since or not self._is_owed_an_answer(same, coming):
                closed += map(self._close, same)
            elif any(turn.retry_of for turn in same) or self._had_effects(same, coming):
                self._apologise(same)
            else:
                self._give_up(same[:-1])
                again.append(_as_asked_last(same[-1]))
        for turn in again:
            logger.info("run %s was interrupted before its answer: asking again", turn.turn_id)
            self._late_messages.ask_again(turn.question, retry=turn)
        for suspended in recovery.suspended:
            if suspended.turn_id in waits:
                self._suspensions.restore(suspended)
            else:
                self._suspensions.supersede(suspended.question.conversation, suspended.turn_id)
        for message in waking:
            self._late_messages.ask_again(message)
        if closed:  # last: a recall during this wait must find all of it recorded
            await self._turn_journal.commit(*closed)
        if recovery.turns or recovery.sends:
            logger.info(
                "after a restart: %d runs interrupted, %d sends",
                len(recovery.turns),
                len(recovery.sends),
            )

    def _give_up(self, turns: Iterable[OpenTurn]) -> None:
        for turn in turns:
            self._turn_journal.give_up(turn.question.conversation, turn.turn_id)

    def _settle_send(self, send: StoredSend) -> bool:
        """Settle a send; True if it will be sent now."""
        if send.state is SendState.REFUSED:
            self._outbox.remember_refused(send)
            return False
        if send.state is not SendState.QUEUED:
            self._outbox.remember_unknown(send)
            return False
        if send.whole and self._is_young(send.at):
            self._outbox.resume(send)
            return True
        reason = (
            "too old after a restart" if send.whole else "its media were not kept over a restart"
        )
        self._outbox.drop(send, reason)
        return False

    def _close(self, turn: OpenTurn) -> TurnClosed:
        messages = close_interrupted(turn.messages)
        drafted = any(send.final and send.state in DRAFTED for send in turn.sends)
        if drafted and isinstance(last := messages[-1], AssistantMessage) and not last.tool_calls:
            messages = messages[:-1]  # it was not read
        if not messages or not isinstance(messages[-1], AssistantMessage):
            words = choose_wording((turn.user,), "")
            messages = (*messages, render.history_note(words, words.about.broken_off))
        return TurnClosed(
            turn_id=turn.turn_id,
            stop=Stop.INTERRUPTED,
            round=(turn.user, *messages),
            usage=Usage(),
            steps=sum(isinstance(message, AssistantMessage) for message in turn.messages),
            at=self._clock.now(),
            error="interrupted: the process ended",
        )

    def _is_owed_an_answer(self, turns: Sequence[OpenTurn], coming: Collection[str]) -> bool:
        answers = [send for turn in turns for send in turn.sends if send.final]
        answered = any(send.state in SETTLED or send.send_id in coming for send in answers)
        handled = any(turn.handled for turn in turns)
        return not (answered or handled) and self._is_young(turns[-1].at)

    def _had_effects(self, turns: Sequence[OpenTurn], coming: Collection[str]) -> bool:
        """Whether words were or will be sent, or a call began that may have had an effect."""
        if any(
            send.state in SETTLED or send.send_id in coming for turn in turns for send in turn.sends
        ):
            return True
        tools = [self._toolset.get(name) for turn in turns for name in turn.started]
        return any(tool is None or not tool.side_effects.is_harmless for tool in tools)

    def _apologise(self, turns: Sequence[OpenTurn]) -> None:
        turn = turns[-1]
        logger.info(
            "run %s was interrupted in the middle of its work: telling the asker", turn.turn_id
        )
        question, closed = turn.question, map(self._close, turns)
        action = apology(question, SORRY)
        self._outbox.post_with(*closed, action=action, turn_id=turn.turn_id, question=question)

    def _is_young(self, time: float) -> bool:
        return self._clock.now() - time < YOUNG

    # --- requests that were cut off ---------------------------------------------------------------

    async def _first_request(self, turn: OpenTurn) -> UsageAdded:
        where = turn.question.conversation
        await self._history.load(where)
        model, usage = copy_context().run(self._estimate, turn)  # not the run of this task
        self._history.doubt(where)  # the turn is not closed yet
        now = self._clock.now()  # not the past time: the sums of that day may be complete
        return UsageAdded(turn_id=turn.turn_id, model=model, usage=usage, at=now, step=FIRST)

    def _estimate(self, turn: OpenTurn) -> tuple[str, Usage]:
        begun = self._context_builder.go_on(turn.turn_id, _as_it_began(turn))
        run = begun.run.as_allowed_now()
        now = now_line(begun.now, begun.words)
        pictures = _pictures_of(turn) if begun.sees else ()
        shown = with_pictures(run.transcript, pictures, words=begun.words, now=now)
        model = run.model if isinstance(run.model, Failover) else self._model
        return model.estimate(ModelRequest(shown, self._toolset.definitions(run.ports, run.terms)))


def _as_of_backup(recovery: Recovery) -> Recovery:
    """Sends that were queued when the backup was made may have been sent since."""

    def doubted(send: StoredSend) -> StoredSend:
        is_old = send.state is SendState.QUEUED and send.at < recovery.restored
        return replace(send, state=SendState.SENDING) if is_old else send

    turns = (replace(turn, sends=tuple(map(doubted, turn.sends))) for turn in recovery.turns)
    return replace(recovery, sends=tuple(map(doubted, recovery.sends)), turns=tuple(turns))


def _by_question(turns: Iterable[OpenTurn]) -> list[list[OpenTurn]]:
    """The turns of each question, oldest first."""
    same: dict[object, list[OpenTurn]] = {}
    for turn in turns:
        same.setdefault(_key(turn.question) or turn.turn_id, []).append(turn)
    return list(same.values())


def _as_asked_last(turn: OpenTurn) -> OpenTurn:
    """The turn with all lines added to it in its question."""
    lines = [message for message in turn.messages if isinstance(message, UserMessage)]
    return replace(turn, user=joined((turn.user, *lines))) if lines else turn


def _key(question: MessageReceived) -> object:
    return question.identity if question.has_identity else None


def _as_it_began(turn: OpenTurn) -> SuspendedTurn:
    run = SuspendedRun(
        run_id=turn.turn_id,
        conversation=str(turn.question.conversation),
        asker=Asker(str(turn.question.sender.user_id)),
        messages=(),
        message=AssistantMessage(""),
        answers=(),
        usage=Usage(),
        steps=0,
    )
    return SuspendedTurn(turn.question, turn.user, run)


def _pictures_of(turn: OpenTurn) -> tuple[QuestionPicture, ...]:
    """Placeholders for its own pictures, as many as the model was shown; only their number affects
    the price.
    """
    said = (segment for line in (*turn.lines, turn.question) for segment in line.segments)
    own = (segment for segment in said if isinstance(segment, Picture))
    return tuple(
        QuestionPicture(PicturePlace.QUESTION, "picture", one.handle)
        for one in islice(own, MAX_PICTURES)
    )
