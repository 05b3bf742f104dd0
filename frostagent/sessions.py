"""Runs of an agent: each starts from its session's history, adds to it, and becomes a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, cast
from weakref import WeakValueDictionary

from cachetools import LRUCache
from msgspec.structs import replace as replace_fields

from frostagent.callbacks import HookSpeaker
from frostagent.engine.budget import Budget
from frostagent.engine.engine import Engine, Run, RunState
from frostagent.reply import (
    Reply,
    RunFailed,
    StepLimitReached,
    Waiting,
    ended_reply,
    waiting_reply,
)
from frostagent.types.messages import Message, OnDelta, SystemMessage, UserMessage
from frostagent.types.ports import ChatModel, Ids, Speaker
from frostagent.types.runs import Asker, Outcome, Stop, SuspendedRun
from frostagent.types.suspension import Decision

SESSIONS = 1000
ROUNDS = 50


class Memory(Protocol):
    """Stores sessions. `append` receives a round: a question and all messages after it.

    Any class with these two methods fits, such as `InMemory`.
    """

    async def load(self, session: str) -> Sequence[Message]:
        """The messages of the session, oldest first; a valid transcript."""
        ...

    async def append(self, session: str, messages: Sequence[Message]) -> None:
        """Add a round at the end."""
        ...


class InMemory:
    """Keeps the latest sessions, and the latest rounds of each, in memory.

        agent = Agent(model=model, memory=InMemory(rounds=20))

    A call is never separated from its result.
    """

    def __init__(self, *, rounds: int = ROUNDS, sessions: int = SESSIONS) -> None:
        self._rounds = rounds
        self._sessions: LRUCache[str, tuple[tuple[Message, ...], ...]] = LRUCache(sessions)

    async def load(self, session: str) -> tuple[Message, ...]:
        """The messages of the session, oldest first."""
        return tuple(message for each in self._sessions.get(session, ()) for message in each)

    async def append(self, session: str, messages: Sequence[Message]) -> None:
        """Add a round, dropping the oldest. Raises ValueError for one without a question."""
        if not messages or not isinstance(messages[0], UserMessage):
            raise ValueError("a round begins with what somebody asked")
        self._sessions[session] = (*self._sessions.get(session, ()), tuple(messages))[
            -self._rounds :
        ]


class Sessions:
    """The sessions with active runs; nothing is kept about others."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: dict[str, list[RunState]] = {}

    def turn(self, session: str) -> asyncio.Lock:
        """The lock that a question holds while it is answered."""
        return self._turns.setdefault(session, asyncio.Lock())

    @contextmanager
    def running(self, session: str | None, state: RunState) -> Iterator[None]:
        """Mark the run as active in the session. With None, it cannot be steered."""
        if session is None:
            yield
            return
        states = self._running.setdefault(session, [])
        states.append(state)
        try:
            yield
        finally:
            states[:] = [each for each in states if each is not state]
            if not states:
                self._running.pop(session, None)

    def runs(self, session: str) -> tuple[RunState, ...]:
        """The session's active runs, oldest first."""
        return tuple(self._running.get(session, ()))


CHAT = ""  # the session of `Agent.chat`


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one question was given besides its text: history, capabilities, a budget for all its
    requests, and a model to use instead of the engine's. `on_delta` receives the answers of its run
    as they stream in; `run_id` is the run's id, if set.
    """

    history: tuple[Message, ...] = ()
    deps: Mapping[type, object] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    model: ChatModel | None = None
    on_delta: OnDelta | None = None
    run_id: str = ""


class SessionRuns:
    """Runs questions through an engine, those of one session one after another.

    Without `memory`, sessions are kept in the process. `writer` is an engine without tools. `speak`
    makes the speaker of a run, `ports` its other capabilities.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        writer: Engine,
        memory: Memory | None,
        system: str,
        asker: Asker,
        ids: Ids,
        speak: Callable[[], HookSpeaker],
        ports: Callable[[], Mapping[type, object]],
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._memory = InMemory() if memory is None else memory
        self.of_chat = None if memory is None else CHAT  # the session of a question that names none
        self.system = (SystemMessage(system),) if system else ()
        self._asker = asker
        self._ids = ids
        self._speak = speak
        self._ports = ports
        self._going = Sessions()

    def new_id(self) -> str:
        return self._ids.trace()

    def in_session(self, session: str) -> tuple[RunState, ...]:
        """The session's active runs, oldest first."""
        return self._going.runs(session)

    async def ask(
        self,
        question: UserMessage,
        session: str | None = None,
        *,
        asker: Asker | None = None,
        heard_in: str | None = CHAT,
        given: Given | None = None,
    ) -> Reply:
        """Answer a question, or return early if the run waits for an approval.

        A run without a session can be steered as session `heard_in`. Raises RunFailed.
        """
        if session is None:
            return await self._ask(question, None, asker, heard_in=heard_in, given=given)
        async with self._going.turn(session):
            return await self._ask(question, session, asker, heard_in=session, given=given)

    async def resume(
        self, waiting: Waiting, decisions: Mapping[str, Decision], *, given: Given | None = None
    ) -> Reply:
        """Continue a run that waits. Raises BadSuspension, RunFailed."""
        session = waiting.session
        given = replace(given or Given(), history=waiting.history)
        resume = partial(
            self._ask,
            waiting.question,
            session,
            waiting.suspended.asker,
            going_on=(waiting.suspended, decisions),
            given=given,
        )
        if session is None:
            return await resume(heard_in=CHAT)
        async with self._going.turn(session):
            return await resume(heard_in=session)

    def uses_tools(self, asker: Asker | None = None, given: Given | None = None) -> bool:
        """Whether a question of this asker would be sent with tools now."""
        return self._engine.uses_tools(self._run("", (), None, asker, given))

    async def write(
        self,
        transcript: tuple[Message, ...],
        *,
        schema: Mapping[str, Any],
        asker: Asker | None = None,
        given: Given | None = None,
    ) -> Reply:
        """One answer without tools or session: JSON for the schema. Raises RunFailed."""
        alone = None if given is None else replace(given, on_delta=None)
        run = self._run(self._ids.trace(), transcript, None, asker, alone)
        words = replace(run.words, empty=run.words.empty_json)
        run = replace_fields(run, answer_schema=schema, words=words)
        state = RunState()
        ended = await self._writer.run(run, state)
        return reply_of(run, state, ended, None, transcript)

    async def _ask(
        self,
        question: UserMessage,
        session: str | None,
        asker: Asker | None,
        *,
        heard_in: str | None,
        going_on: tuple[SuspendedRun, Mapping[str, Decision]] | None = None,
        given: Given | None = None,
    ) -> Reply:
        earlier = () if given is None else given.history
        history = earlier if session is None else tuple(await self._memory.load(session))
        transcript = (*self.system, *history, question)
        if going_on is not None:
            run_id = going_on[0].run_id
        else:
            run_id = (given.run_id if given is not None else "") or self.new_id()
        run = self._run(run_id, transcript, session, asker, given)
        state = RunState()
        ended: Outcome | SuspendedRun | None = None
        try:
            with self._going.running(heard_in, state):
                ended = await (
                    self._engine.run(run, state)
                    if going_on is None
                    else self._engine.resume(run, *going_on, state)
                )
        finally:
            is_over = bool(state.messages) and not isinstance(ended, SuspendedRun)
            if session is not None and is_over:
                await self._memory.append(session, (question, *state.messages))
        return reply_of(run, state, ended, session, (*history, question))

    def _run(
        self,
        run_id: str,
        transcript: tuple[Message, ...],
        session: str | None,
        asker: Asker | None,
        given: Given | None = None,
    ) -> Run:
        given = given or Given()
        speaker = self._speak()
        return Run(
            id=run_id,
            conversation=run_id if session is None else session or "chat",
            asker=asker or self._asker,
            transcript=transcript,
            ports={Speaker: speaker, **self._ports(), **given.deps},
            heard=lambda: bool(speaker.said),
            share=given.budget.share(),
            model=given.model,
            on_delta=given.on_delta,
        )


def reply_of(
    run: Run,
    state: RunState,
    ended: Outcome | SuspendedRun,
    session: str | None,
    asked: tuple[Message, ...],
) -> Reply:
    """The reply to `asked`. Raises RunFailed, from the original error, for a failed run."""
    unheard = (*state.steering, *state.follow_ups)
    if isinstance(ended, SuspendedRun):
        *history, question = asked
        waiting = Waiting(
            session=session,
            question=cast("UserMessage", question),
            suspended=ended,
            history=tuple(history) if session is None else (),
        )
        return waiting_reply(waiting, asked=asked, unheard=unheard)
    reply = ended_reply(run.id, ended, asked=asked, unheard=unheard)
    if ended.stop is Stop.FAILED:
        raise (StepLimitReached(reply) if reply.limit else RunFailed(reply)) from state.cause
    is_short = run.share.is_short and bool(state.shown)
    return replace(reply, limit=True) if is_short else reply
