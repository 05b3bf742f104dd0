"""The run: step until words.

A step is one model request and its tool calls. State goes in, run events and an outcome come out; nothing here
knows of prompts, of delivery or of stored history.

Invariant: `RunState.messages` is a valid transcript at every moment anyone can look at it: an assistant message
with calls is added together with one result for each call, also when the run is cancelled in the middle. A step with
a call that waits for somebody's word is not part of it: it lives in the `SuspendedRun` until it is whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from bot.domain.chat import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from bot.domain.errors import ContentFiltered, InvalidArguments, ModelError, ToolDenied
from bot.domain.events import Conversation
from bot.domain.ports import ChatModel, Clock, Observer
from bot.domain.run import (
    Asker,
    Outcome,
    PendingCall,
    RunContinued,
    RunFinished,
    RunPaused,
    RunStarted,
    StepFinished,
    Stop,
    SuspendedRun,
    ToolFinished,
    ToolStarted,
)
from bot.domain.suspension import Allow, BadSuspension, Decision, Deny, verify
from bot.domain.tool import ToolContext
from bot.toolset import Batch, Toolset
from bot.transcripts import close_interrupted

MAX_STEPS = 12
DEADLINE = 300.0  # seconds for a run (a resumed one: from then on): a person is waiting

LAST_STEP = (
    "You have no tool calls left. Do not call any tool: answer now, in words, from what you have found so far, and "
    "say what is still missing."
)
EMPTY_ANSWER = "Your last answer was empty. Answer now, in words."
NOBODY_ANSWERED = "nobody allowed it in time"
NO_CONCLUSION = "我查了好几步，还没有得出结论，先停在这里。换个更具体的问法再试试？"
CUT_OFF = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the engine is asked. `transcript` is everything the model gets to read before its first step.

    `heard` says whether the asker has already been told something in this run: then an empty ending is fine.
    """

    id: str
    conversation: Conversation
    asker: Asker
    transcript: tuple[Message, ...]
    ports: Mapping[type, object] = field(default_factory=dict)
    heard: Callable[[], bool] = lambda: False


@dataclass(slots=True)
class RunState:
    """What a run has done so far; owned by the caller, so that it is still there when the run is cancelled."""

    messages: list[Message] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    steps: int = 0

    def outcome(self, stop: Stop, text: str = "", *, limit: bool = False, error: str = "") -> Outcome:
        return Outcome(stop, text, tuple(self.messages), self.usage, self.steps, limit=limit, error=error)


class Engine:
    """Lets the model speak and call tools until it answers in words, or a limit is reached."""

    def __init__(
        self,
        *,
        model: ChatModel,
        toolset: Toolset,
        clock: Clock,
        observer: Observer,
        max_steps: int = MAX_STEPS,
        deadline: float = DEADLINE,
    ) -> None:
        self._model = model
        self._toolset = toolset
        self._clock = clock
        self._observer = observer
        self._max_steps = max_steps
        self._deadline = deadline

    async def run(self, run: Run, state: RunState) -> Outcome | SuspendedRun:
        """Run to the end, or until a call waits for somebody's word; every failure is an outcome.

        Only a cancellation gets out, and leaves `state` valid.
        """
        self._observer.notice(RunStarted(run_id=run.id, conversation=run.conversation, asker=run.asker))
        return await self._segment(run, state, self._steps(run, state))

    async def resume(
        self, run: Run, suspended: SuspendedRun, decisions: Mapping[str, Decision], state: RunState
    ) -> Outcome | SuspendedRun:
        """Go on with a suspended run, as `run` does; `decisions` are by call id, `state` is set to where it stood.

        `run` has the id, conversation and asker it had; its asker's authority and its ports are today's. What is
        allowed is run now, denied or expired calls are told so, and what is left undecided is waited for further: the
        model goes on only when nothing waits. Raises BadSuspension, before anything was told, changed or run.

        Whoever calls this has first written down that the run is resumed: an equal state resumes as often as one asks.
        """
        verify(
            suspended, run_id=run.id, conversation=run.conversation, asker=run.asker.user_id, decided=decisions.keys()
        )
        if close_interrupted(suspended.messages) != suspended.messages:
            raise BadSuspension(f"the transcript of run {run.id} is not whole")
        state.messages[:] = suspended.messages
        state.usage, state.steps = suspended.usage, suspended.steps
        self._observer.notice(RunContinued(run_id=run.id, conversation=run.conversation, asker=run.asker))
        return await self._segment(run, state, self._go_on(run, state, suspended, decisions))

    async def _segment(
        self, run: Run, state: RunState, steps: Awaitable[Outcome | SuspendedRun]
    ) -> Outcome | SuspendedRun:
        started = self._clock.monotonic()
        deadline = asyncio.timeout(self._deadline)
        ended: Outcome | SuspendedRun | None = None
        try:
            async with deadline:
                ended = await steps
        except ModelError as error:
            ended = state.outcome(Stop.FAILED, error=f"{error.kind}: {error}")
        except TimeoutError:
            if not deadline.expired():
                raise
            ended = state.outcome(Stop.FAILED, error=f"deadline: not finished after {self._deadline:g} s")
        finally:
            seconds = self._clock.monotonic() - started
            if isinstance(ended, SuspendedRun):
                self._observer.notice(RunPaused(run_id=run.id, suspended=ended, seconds=seconds))
            else:
                outcome = state.outcome(Stop.STOPPED) if ended is None else ended
                self._observer.notice(RunFinished(run_id=run.id, outcome=outcome, seconds=seconds))
        return ended

    async def _steps(self, run: Run, state: RunState) -> Outcome | SuspendedRun:
        specs = self._toolset.definitions(run.ports)
        empty = 0
        while True:
            last = state.steps >= self._max_steps or empty > 1
            notice = LAST_STEP if last else EMPTY_ANSWER if empty else ""
            request = _request(run, state, notice=notice)
            completion = await self._ask(run, state, request if last else ModelRequest(request.messages, specs))
            message = completion.message
            match completion.finish:
                case FinishReason.CONTENT_FILTER:
                    raise ContentFiltered(completion.refusal or "the vendor filtered the answer")
                case FinishReason.LENGTH if message.tool_calls and not last:
                    self._refuse_cut_off(run, state, message)
                    continue
                case FinishReason.LENGTH | FinishReason.STOP | FinishReason.TOOL_CALLS | FinishReason.UNKNOWN:
                    pass
                case _:
                    assert_never(completion.finish)
            if message.tool_calls and not last:
                if suspended := await self._execute(run, state, message):
                    return suspended
            elif text := _words(completion):
                state.messages.append(AssistantMessage(text, reasoning=message.reasoning))
                return state.outcome(Stop.ANSWERED, text, limit=state.steps > self._max_steps)
            elif run.heard():
                return state.outcome(Stop.SILENT)
            elif last:
                return self._give_up(state)
            else:
                empty += 1

    async def _go_on(
        self, run: Run, state: RunState, suspended: SuspendedRun, decisions: Mapping[str, Decision]
    ) -> Outcome | SuspendedRun:
        """Finish the step that was left, then the next ones."""
        batch = Batch(suspended.message.tool_calls)
        for index, answer in enumerate(suspended.answers):
            match answer:
                case ToolMessage():
                    batch.keep(index, answer)
                case PendingCall():
                    self._decide(batch, index, answer, decisions.get(answer.call.id))
                case _:
                    assert_never(answer)
        again = await self._run_batch(run, state, suspended.message, batch, allowed=True)
        return again or await self._steps(run, state)

    def _decide(self, batch: Batch, index: int, pending: PendingCall, decision: Decision | None) -> None:
        """Answer what is denied, keep what is undecided; what is allowed stays open in the batch, to be run."""
        if self._clock.now() >= pending.expires:
            decision = Deny(NOBODY_ANSWERED)
        match decision:
            case Allow():
                pass
            case Deny(reason=reason):
                denied = ToolDenied(f"the tool call was denied: {reason}")
                batch.finish(index, self._toolset.refused(pending.call, denied))
            case None:
                batch.keep(index, pending)
            case _:
                assert_never(decision)

    async def _ask(self, run: Run, state: RunState, request: ModelRequest) -> Completion:
        state.steps += 1
        started = self._clock.monotonic()
        completion = await self._model.complete(request)
        if completion.usage is not None:
            state.usage += completion.usage
        seconds = self._clock.monotonic() - started
        self._observer.notice(StepFinished(run_id=run.id, step=state.steps, completion=completion, seconds=seconds))
        return completion

    async def _execute(self, run: Run, state: RunState, message: AssistantMessage) -> SuspendedRun | None:
        batch = self._start(run, state, message)
        return await self._run_batch(run, state, message, batch)

    def _refuse_cut_off(self, run: Run, state: RunState, message: AssistantMessage) -> None:
        batch = self._start(run, state, message)
        for index, call in enumerate(batch.calls):
            problem = f'the arguments for "{call.name}" were cut off (output limit). Send fewer or shorter arguments.'
            batch.finish(index, self._toolset.refused(call, InvalidArguments(problem)))
        self._settle(run, state, message, batch)

    def _start(self, run: Run, state: RunState, message: AssistantMessage) -> Batch:
        for call in message.tool_calls:
            self._observer.notice(ToolStarted(run_id=run.id, step=state.steps, call=call))
        return Batch(message.tool_calls)

    async def _run_batch(
        self, run: Run, state: RunState, message: AssistantMessage, batch: Batch, *, allowed: bool = False
    ) -> SuspendedRun | None:
        contexts = [self._context(run, state, call, allowed=allowed) for call in batch.calls]
        suspended = None
        try:
            await self._toolset.run_batch(batch, contexts)
        finally:
            suspended = self._settle(run, state, message, batch)
        return suspended

    def _settle(self, run: Run, state: RunState, message: AssistantMessage, batch: Batch) -> SuspendedRun | None:
        """The one place where calls enter the transcript: with all their results, at once; not while one waits.

        What was finished is told in either case: a wait can be long, and a result known now is not lost in it.
        """
        results = batch.results()
        if results is not None:
            state.messages.append(message)
            state.messages.extend(results)
        for call, executed in batch.finished():
            self._observer.notice(
                ToolFinished(
                    run_id=run.id,
                    step=state.steps,
                    call=call,
                    result=executed.message,
                    code=executed.code,
                    seconds=executed.seconds,
                )
            )
        return None if results is not None else _suspended(run, state, message, batch)

    def _context(self, run: Run, state: RunState, call: ToolCall, *, allowed: bool) -> ToolContext:
        tool = self._toolset.get(call.name)
        return ToolContext(
            run_id=run.id,
            step=state.steps,
            call_id=call.id,
            conversation=run.conversation,
            asker=run.asker,
            deadline=self._clock.monotonic() + (tool.timeout if tool else 0.0),
            ports=run.ports,
            allowed=allowed,
        )

    def _give_up(self, state: RunState) -> Outcome:
        if state.steps <= self._max_steps:
            return state.outcome(Stop.FAILED, error="empty: the model gave no answer, three times")
        state.messages.append(AssistantMessage(NO_CONCLUSION))
        return state.outcome(Stop.ANSWERED, NO_CONCLUSION, limit=True)


def _request(run: Run, state: RunState, *, notice: str) -> ModelRequest:
    """The transcript so far; a notice is for this request only and never becomes history.

    It joins a user message that stands last: strict servers refuse two in a row (`providers/quirks.md` 6.4).
    """
    messages = (*run.transcript, *state.messages)
    match messages[-1]:
        case _ if not notice:
            return ModelRequest(messages)
        case UserMessage(text=text) as last:
            return ModelRequest((*messages[:-1], replace(last, text=f"{text}\n\n{notice}")))
        case _:
            return ModelRequest((*messages, UserMessage(notice)))


def _suspended(run: Run, state: RunState, message: AssistantMessage, batch: Batch) -> SuspendedRun:
    return SuspendedRun(
        run_id=run.id,
        conversation=run.conversation,
        asker=run.asker,
        messages=tuple(state.messages),
        message=message,
        answers=batch.answers(),
        usage=state.usage,
        steps=state.steps,
    )


def _words(completion: Completion) -> str:
    """What the model says to people: its text, or its refusal; marked where the output limit cut it off."""
    text = (completion.message.text or completion.refusal).strip()
    return text + CUT_OFF if text and completion.finish is FinishReason.LENGTH else text
