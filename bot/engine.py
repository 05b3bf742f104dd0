"""The run: step until words.

A step is one model request and its tool calls. State goes in, run events and an outcome come out; nothing here
knows of prompts, of delivery or of stored history.

Invariant: `RunState.messages` is a valid transcript at every moment anyone can look at it: an assistant message
with calls is added together with one result for each call, also when the run is cancelled in the middle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from bot.domain.chat import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    ToolCall,
    Usage,
    UserMessage,
)
from bot.domain.errors import ContentFiltered, InvalidArguments, ModelError
from bot.domain.events import Conversation
from bot.domain.ports import ChatModel, Clock, Observer
from bot.domain.run import Asker, Outcome, RunFinished, RunStarted, StepFinished, Stop, ToolFinished, ToolStarted
from bot.domain.tool import ToolContext
from bot.toolset import Batch, Toolset

MAX_STEPS = 12
DEADLINE = 300.0  # seconds for a whole run: a person is waiting

LAST_STEP = (
    "You have no tool calls left. Do not call any tool: answer now, in words, from what you have found so far, and "
    "say what is still missing."
)
EMPTY_ANSWER = "Your last answer was empty. Answer now, in words."
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

    async def run(self, run: Run, state: RunState) -> Outcome:
        """Run to the end; every failure is an outcome. Only a cancellation gets out, and leaves `state` valid."""
        started = self._clock.monotonic()
        self._observer.notice(RunStarted(run_id=run.id, conversation=run.conversation, asker=run.asker))
        deadline = asyncio.timeout(self._deadline)
        outcome: Outcome | None = None
        try:
            async with deadline:
                outcome = await self._steps(run, state)
        except ModelError as error:
            outcome = state.outcome(Stop.FAILED, error=f"{error.kind}: {error}")
        except TimeoutError:
            if not deadline.expired():
                raise
            outcome = state.outcome(Stop.FAILED, error=f"deadline: not finished after {self._deadline:g} s")
        finally:
            seconds = self._clock.monotonic() - started
            ended = state.outcome(Stop.STOPPED) if outcome is None else outcome
            self._observer.notice(RunFinished(run_id=run.id, outcome=ended, seconds=seconds))
        return ended

    async def _steps(self, run: Run, state: RunState) -> Outcome:
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
                await self._execute(run, state, message)
            elif text := _words(completion):
                state.messages.append(AssistantMessage(text, reasoning=message.reasoning))
                return state.outcome(Stop.ANSWERED, text, limit=state.steps > self._max_steps)
            elif run.heard():
                return state.outcome(Stop.SILENT)
            elif last:
                return self._give_up(state)
            else:
                empty += 1

    async def _ask(self, run: Run, state: RunState, request: ModelRequest) -> Completion:
        state.steps += 1
        started = self._clock.monotonic()
        completion = await self._model.complete(request)
        if completion.usage is not None:
            state.usage += completion.usage
        seconds = self._clock.monotonic() - started
        self._observer.notice(StepFinished(run_id=run.id, step=state.steps, completion=completion, seconds=seconds))
        return completion

    async def _execute(self, run: Run, state: RunState, message: AssistantMessage) -> None:
        batch = self._toolset.batch(message.tool_calls)
        contexts = [self._context(run, state, call) for call in batch.calls]
        for call in batch.calls:
            self._observer.notice(ToolStarted(run_id=run.id, step=state.steps, call=call))
        try:
            await self._toolset.run_batch(batch, contexts)
        finally:
            self._add(run, state, message, batch)

    def _refuse_cut_off(self, run: Run, state: RunState, message: AssistantMessage) -> None:
        batch = self._toolset.batch(message.tool_calls)
        for index, call in enumerate(batch.calls):
            self._observer.notice(ToolStarted(run_id=run.id, step=state.steps, call=call))
            problem = f'the arguments for "{call.name}" were cut off (output limit). Send fewer or shorter arguments.'
            batch.finish(index, self._toolset.refused(call, InvalidArguments(problem)))
        self._add(run, state, message, batch)

    def _add(self, run: Run, state: RunState, message: AssistantMessage, batch: Batch) -> None:
        """The one place where calls enter the transcript: with all their results, at once."""
        results = batch.results()
        state.messages.append(message)
        state.messages.extend(executed.message for executed in results)
        for call, executed in zip(batch.calls, results, strict=True):
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

    def _context(self, run: Run, state: RunState, call: ToolCall) -> ToolContext:
        tool = self._toolset.get(call.name)
        return ToolContext(
            run_id=run.id,
            step=state.steps,
            call_id=call.id,
            conversation=run.conversation,
            asker=run.asker,
            deadline=self._clock.monotonic() + (tool.timeout if tool else 0.0),
            ports=run.ports,
        )

    def _give_up(self, state: RunState) -> Outcome:
        if state.steps <= self._max_steps:
            return state.outcome(Stop.FAILED, error="empty: the model gave no answer, three times")
        state.messages.append(AssistantMessage(NO_CONCLUSION))
        return state.outcome(Stop.ANSWERED, NO_CONCLUSION, limit=True)


def _request(run: Run, state: RunState, *, notice: str) -> ModelRequest:
    """The transcript so far; a notice is for this request only and never becomes history."""
    extra = (UserMessage(notice),) if notice else ()
    return ModelRequest((*run.transcript, *state.messages, *extra))


def _words(completion: Completion) -> str:
    """What the model says to people: its text, or its refusal; marked where the output limit cut it off."""
    text = (completion.message.text or completion.refusal).strip()
    return text + CUT_OFF if text and completion.finish is FinishReason.LENGTH else text
