"""Running turns, and what may be done to one from outside: add a line to it, stop it, or recall a
line of it.

An added line waits until the engine reads it: as part of the question as long as nothing was said
or begun, else after a whole step. It is in the journal before the model reads it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import reduce
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from bot.chat.cancellation import CONSEQUENCES, Fate, Reason
from bot.chat.context_builder import Turn
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import Entry, TurnSteered, UsageAdded
from bot.core.ports import Store
from bot.core.redaction import (
    OwnWords,
    lines_of_messages,
    redact_messages,
    redact_own,
    redact_own_anywhere,
    sources_of,
)
from bot.core.segments import Picture
from bot.policy.wake import Why
from bot.prompt.compose import without_summary
from bot.prompt.wording import Wording
from frostagent.engine.engine import Run, RunState
from frostagent.types.messages import Message, Usage, UserMessage, joined
from frostagent.types.ports import Clock

MAX_ENDED = 200  # turns whose words may still wait to be sent

Unread: TypeAlias = Callable[[Why], None]
"""Called for a line that no model read in its turn, with the reason if the turn was stopped, else
empty.
"""


See: TypeAlias = Callable[[Turn], Awaitable[Run]]
"""Returns the run of a turn with the pictures of its question."""


class Line(Struct, frozen=True):
    """A line added to a turn; `user` is its form for the model."""

    message: MessageReceived
    user: UserMessage
    unread: Unread


class Ended(Struct, frozen=True):
    """A turn that is over."""

    turn_id: str
    where: Conversation
    asker: int
    message_id: str


class Gone(Struct, eq=False):
    """The messages recalled during a turn, `own` being those of the bot. `judged` are the ids for
    which it is known whether the summary before the run contains one: then it `is_summed_up`.
    """

    ids: frozenset[str] = frozenset()
    own: tuple[OwnWords, ...] = ()
    judged: frozenset[str] = frozenset()
    is_summed_up: bool = False

    def out_of(self, run: Run, words: Wording) -> Run:
        """The run with these removed from earlier rounds, at the cost of one cache miss."""
        *rounds, last = run.transcript
        left = redact_messages(tuple(rounds), self.ids, lines_of_messages(rounds, self.ids))
        kept = (*reduce(redact_own_anywhere, self.own, left), last)
        return replace(run, transcript=without_summary(kept, words) if self.is_summed_up else kept)

    async def judge(
        self,
        run: Run,
        since: Iterable[Message],
        words: Wording,
        *,
        store: Store,
        where: Conversation,
    ) -> bool:
        """Whether the summary must be dropped from now on: it contains a recalled message without a
        line in the run or `since`, so that the store has dropped it. If the store cannot be read,
        it is dropped, too.
        """
        before = self.is_summed_up
        while gone := self.ids - self.judged:
            self.judged |= gone
            read = (*run.transcript, *since)
            told = {id_ for one in read if isinstance(one, UserMessage) for id_ in one.sources}
            if gone <= told or without_summary(run.transcript, words) == run.transcript:
                continue
            kept = await store.remember(where) if await store.commit() else None
            self.is_summed_up |= kept is None or not kept.summary
        return self.is_summed_up and not before


class ActiveTurn(Struct, eq=False):
    """A running turn; an `Inbox`. `turn` is None while it is prepared.

    `before` are the lines that belonged to its question when preparation began, `lines` those read
    since, `waiting` those not read yet. `first` is the original text of the question, `asked` that
    in the run. `see` adds pictures to the run; unless it `is_seen`, they have changed. `gone` are
    messages recalled meanwhile. No line is added once it is not `is_open`; its words are being sent
    once it is not `is_thinking`.
    """

    message: MessageReceived
    store: Store
    clock: Clock
    state: RunState = field(default_factory=RunState)
    turn: Turn | None = None
    before: tuple[MessageReceived, ...] = ()
    task: asyncio.Task[object] | None = field(default_factory=asyncio.current_task)
    waiting: list[Line] = []
    lines: list[Line] = []
    first: str = ""
    asked: str = ""
    see: See | None = None
    gone: Gone = field(default_factory=Gone)
    is_seen: bool = True
    is_open: bool = True
    cancelled: Reason | None = None
    is_thinking: bool = True

    @property
    def asker(self) -> int:
        return self.message.sender.user_id

    @property
    def user(self) -> UserMessage:
        """The question as the model reads it now."""
        return self._turn.user

    @property
    def said(self) -> tuple[MessageReceived, ...]:
        """All of the asker's lines in it, oldest first."""
        asked = self.turn.question.said if self.turn else (*self.before, self.message)
        later = [line.message for line in (*self.lines, *self.waiting)]
        return (*(line for line in asked if line not in later), *later)

    @property
    def latest(self) -> MessageReceived:
        lines = self.waiting or self.lines
        return lines[-1].message if lines else self.message

    def begin(self, turn: Turn, see: See | None = None) -> Turn:
        """Begin the prepared turn, and return it with this inbox."""
        self.turn, self.see = replace(turn, run=replace(turn.run, inbox=self)), see
        self.first = self.asked = turn.user.text
        if self.gone.ids:  # during preparation
            self._redact(self.turn)
        return self._turn

    def say(self, line: Line) -> None:
        self.waiting.append(line)
        self.state.steer(line.user)
        self.state.ask_anew()

    async def read(self, run: Run, state: RunState) -> Run:
        """Take in the lines added so far, before the model reads; returns the run to ask with."""
        while self.waiting or not self.is_seen:
            step = state.steps if state.messages else 0
            lines, self.waiting = self.waiting, []
            self.lines += lines
            if step:  # some may already follow the results
                state.listen(state.steering)
            else:
                state.steering.clear()
                state.forget_doubts()
                self._rephrase(joined((self._turn.user, *(line.user for line in lines))))
                self._belong((*self._turn.question.lines, *(line.message for line in lines)))
            await self.store.commit(*(self._steered(line, step) for line in lines))
            if not self.is_seen:
                self.is_seen = True
                run = await self._see()
        if self.gone.ids and await self.gone.judge(
            run,
            self.state.messages,
            self._turn.words,
            store=self.store,
            where=self.message.conversation,
        ):
            self.state.forget_doubts()
        return self._asking(run)

    def record_broken_off(self, model: str, usage: Usage, step: int) -> None:
        """Count an interrupted request."""
        turn_id, now = self._turn.run.id, self.clock.now()
        self.store.put(UsageAdded(turn_id=turn_id, model=model, usage=usage, at=now, step=step))

    def recall(self, message_id: str, own: OwnWords | None = None) -> None:
        """Recall a line: the model no longer reads it, and if nothing was said yet the question is
        asked without it. If it is one of the bot's `own` messages, the run does not repeat it.
        """
        if own is not None:
            self.gone.own += (own,)
            if self.turn is not None and self.turn.run.id == own.turn_id:
                self.state.messages[:] = redact_own(tuple(self.state.messages), own)
        if line := _of(self.waiting, message_id):
            self.waiting.remove(line)
            if line.user in self.state.steering:
                self.state.steering.remove(line.user)
        self.gone.ids |= {message_id}
        if self.turn is not None and message_id in self._told(self.turn):
            self.state.forget_doubts()  # they may be about what was said
            self._redact(self.turn)

    def stop(self, reason: Reason) -> None:
        """End it; its words so far stay, unless its question was recalled. One in preparation is
        still a question in its lane, and ends there.
        """
        self.is_open = False
        if self.cancelled is not Reason.RECALLED:
            self.cancelled = reason
        if self.task is not None and self.turn is not None:
            self.task.cancel()

    def close(self) -> None:
        """Accept no more lines. Unread ones become questions of their own, unless they are dropped
        with it.
        """
        then = CONSEQUENCES[self.cancelled] if self.cancelled is not None else None
        self.is_open = False
        lines, self.waiting = self.waiting, []
        self.state.steering.clear()
        for line in lines:
            if then is None:
                line.unread("")
            elif then.run is Fate.LEAVES_NOTHING and self.turn is not None:
                self.store.put(self._steered(line, 0))
            else:
                line.unread(then.unread)

    @property
    def _turn(self) -> Turn:
        if self.turn is None:
            raise AssertionError("no run reads before its turn has begun")
        return self.turn

    def _told(self, turn: Turn) -> Iterator[str]:
        """The ids of messages that it contains or quotes."""
        messages = (*turn.run.transcript, turn.user, *self.state.messages)
        return chain.from_iterable(map(sources_of, messages))

    def _redact(self, turn: Turn) -> None:
        """Remove recalled messages from the question and from later messages, which may quote
        earlier rounds.
        """
        messages, ids = (turn.user, *self.state.messages), self.gone.ids
        words = lines_of_messages((*turn.run.transcript[:-1], *messages), ids)
        user, *rest = redact_messages(messages, ids, words)
        if (user, *rest) != messages and isinstance(user, UserMessage):
            self._rephrase(user)
            self.state.messages[:] = rest
            lines = tuple(one for one in turn.question.lines if one.message_id not in ids)
            if lines != turn.question.lines or turn.message.message_id in ids:
                self._belong(lines)
                self.state.ask_anew(most=self.state.anew + 1)

    def _rephrase(self, user: UserMessage) -> None:
        self.turn = replace(self._turn, user=user)

    def _belong(self, lines: tuple[MessageReceived, ...]) -> None:
        """Set the lines that belong to the question; their pictures are shown with it."""
        before = self._turn.question
        question = replace(before, lines=lines)
        self.turn = replace(self._turn, question=question)
        self.is_seen &= _pictures(question.lines) == _pictures(before.lines)

    def _asking(self, run: Run) -> Run:
        """The run with its present question; the text around it and its pictures stay."""
        user = self._turn.user
        if self.gone.ids:
            run = self.gone.out_of(run, self._turn.words)
        last = run.transcript[-1]
        if self.asked == user.text or not isinstance(last, UserMessage):
            return run
        before, _, after = last.text.rpartition(self.asked)
        self.asked = user.text
        text = f"{before}{user.text}{after}"
        question = replace(last, text=text, sources=user.sources, quotes=user.quotes)
        return replace(run, transcript=(*run.transcript[:-1], question))

    async def _see(self) -> Run:
        """The run with its present question and pictures."""
        turn, self.asked = self._turn, self.first
        run = self._asking(turn.run)
        return run if self.see is None else await self.see(replace(turn, run=run))

    def _steered(self, line: Line, step: int) -> Entry:
        turn_id = self._turn.run.id
        return TurnSteered(turn_id=turn_id, message=line.message, user=line.user, step=step)


class GoingOn(Struct, frozen=True):
    """Registers a turn as running while the block runs, then as `ended`."""

    turns: list[ActiveTurn]
    ended: deque[Ended]
    live: ActiveTurn

    def __enter__(self) -> ActiveTurn:
        self.turns.append(self.live)
        return self.live

    def __exit__(self, *_: object) -> None:
        live = self.live
        self.turns.remove(live)
        live.is_open = False
        if live.turn is not None:
            asked = live.message
            ended = Ended(live.turn.run.id, asked.conversation, live.asker, asked.message_id)
            self.ended.append(ended)
            live.turn = None  # it holds this object: else both wait for the cycle collector


class ActiveTurns:
    """The running turns, and the latest ended ones."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._turns: list[ActiveTurn] = []
        self._ended: deque[Ended] = deque(maxlen=MAX_ENDED)

    def going_on(
        self, message: MessageReceived, lines: tuple[MessageReceived, ...] = ()
    ) -> GoingOn:
        """A turn about this message and the `lines` before it; it runs as long as the block."""
        live = ActiveTurn(message, self._store, self._clock, before=lines)
        return GoingOn(self._turns, self._ended, live)

    def at(self, where: Conversation) -> list[ActiveTurn]:
        return [live for live in self._turns if live.message.conversation == where]

    def of(self, message: MessageReceived) -> ActiveTurn | None:
        """The turn to which the sender of this message may still add lines."""
        asker = message.sender.user_id
        mine = (live for live in self.at(message.conversation) if live.asker == asker)
        return next((live for live in mine if live.is_open), None)

    def question_of(self, where: Conversation, turn_id: str) -> MessageReceived | None:
        turns = (live for live in self.at(where) if live.turn and live.turn.run.id == turn_id)
        return next((live.message for live in turns), None)

    @property
    def ended_places(self) -> tuple[Conversation, ...]:
        return tuple(dict.fromkeys(ended.where for ended in self._ended))

    def ended(self, where: Conversation) -> list[Ended]:
        return [ended for ended in self._ended if ended.where == where]


def _pictures(lines: Iterable[MessageReceived]) -> list[Picture]:
    return [segment for line in lines for segment in line.segments if isinstance(segment, Picture)]


def _of(lines: list[Line], message_id: str) -> Line | None:
    return next((line for line in lines if line.message.message_id == message_id), None)
