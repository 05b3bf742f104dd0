"""The run loop: steps until the model answers in words.

A step is one model request and its tool calls. Input is state; output is run events and an outcome.
Prompts, delivery and stored history are elsewhere.

Invariant: `RunState.messages` is a valid transcript at any time: an assistant message with calls is
added together with one result for each, even on cancellation. A step with a waiting call is not
part of it; it stays in the `SuspendedRun` until complete. Messages from people meanwhile
(`RunState.steer`, `follow_up`) come after a whole step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

from msgspec.structs import replace

from frostagent.engine.answer_filter import (
    doubted_answer,
    failed_outcome,
    fallback_answer,
    filter_answer,
    next_request_messages,
)
from frostagent.engine.authority import with_read
from frostagent.engine.budget import Room
from frostagent.engine.call_executor import CallExecutor
from frostagent.engine.offered_tools import opened_servers
from frostagent.engine.registry import Registry
from frostagent.engine.run_state import Run, RunState, close_interrupted
from frostagent.engine.step_calls import StepCalls, metadata_of_run
from frostagent.engine.streamed_answer import StreamedAnswer
from frostagent.engine.tool_execution import consult
from frostagent.models.tokens import estimate, estimate_message
from frostagent.types.errors import ContentFiltered, DaySpent, ModelError, ToolUnavailable
from frostagent.types.hooks import Hook, Metadata, RequestEvent, Reshape
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    ToolSpec,
    Usage,
)
from frostagent.types.ports import ChatModel, Clock, Observer
from frostagent.types.runs import (
    Outcome,
    RunContinued,
    RunFinished,
    RunPaused,
    RunStarted,
    StepFinished,
    Stop,
    SuspendedRun,
)
from frostagent.types.suspension import BadSuspension, Decision, verify

__all__ = ["Engine", "OnLimit", "Run", "RunState"]

CUT_OFF = "…"
MAX_STEPS = 12
DEADLINE = 300.0  # seconds for a run, or for a resumed segment: a person is waiting

OnLimit: TypeAlias = Literal["answer", "error"]
"""At the step limit: request a final answer without tools, or fail."""


class Engine:
    """Runs the model and its tool calls until it answers in words, or a limit is reached.

    At `max_steps` (0 is the default), the model must answer in words, or the run fails
    (`on_limit`). `executor` runs the calls of a step; hooks are those of the toolset. The observer
    gets all calls of a step together, in order.
    """

    def __init__(
        self,
        *,
        model: ChatModel,
        toolset: Registry,
        clock: Clock,
        observer: Observer,
        executor: CallExecutor | None = None,
        max_steps: int = MAX_STEPS,
        deadline: float = DEADLINE,
        on_limit: OnLimit = "answer",
    ) -> None:
        self._model = model
        self._toolset = toolset
        self._calls = StepCalls(
            toolset, executor or CallExecutor(toolset), clock=clock, observer=observer
        )
        self._clock = clock
        self._observer = observer
        self._max_steps = max_steps or MAX_STEPS
        self._deadline = deadline
        self._on_limit = on_limit

    async def run(self, run: Run, state: RunState) -> Outcome | SuspendedRun:
        """Run to the end, or until a call waits for approval. Every failure is an outcome; only a
        cancellation is raised, and leaves `state` valid.
        """
        self._observer.notice(
            RunStarted(run_id=run.id, conversation=run.conversation, asker=run.asker)
        )
        return await self._segment(run, state, self._steps(run, state))

    async def resume(
        self, run: Run, suspended: SuspendedRun, decisions: Mapping[str, Decision], state: RunState
    ) -> Outcome | SuspendedRun:
        """Continue a suspended run, as `run` does. `decisions` are by call id; `state` is
        overwritten.

        `run` must have the same id, conversation and asker; the asker's authority and the ports are
        the current ones. Allowed calls run now, denied or expired ones get an error, undecided ones
        wait further: the model continues only when no call waits. Raises BadSuspension before any
        effect.

        The caller must first record that the run is resumed: the same state can be resumed any
        number of times.
        """
        verify(
            suspended,
            run_id=run.id,
            conversation=run.conversation,
            asker=run.asker.user_id,
            decided=decisions.keys(),
        )
        if close_interrupted(suspended.messages) != suspended.messages:
            raise BadSuspension(f"the transcript of run {run.id} is not whole")
        state.restore(suspended)
        self._observer.notice(
            RunContinued(run_id=run.id, conversation=run.conversation, asker=run.asker)
        )
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
            state.cause = error
            ended = failed_outcome(run, state, f"{error.kind}: {error}")
        except TimeoutError as late:
            if not deadline.expired():
                raise
            state.cause = late
            ended = failed_outcome(run, state, f"deadline: not finished after {self._deadline:g} s")
        finally:
            seconds = self._clock.monotonic() - started
            if isinstance(ended, SuspendedRun):
                self._observer.notice(RunPaused(run_id=run.id, suspended=ended, seconds=seconds))
            else:
                outcome = state.outcome(Stop.STOPPED) if ended is None else ended
                self._observer.notice(RunFinished(run_id=run.id, outcome=outcome, seconds=seconds))
        return ended

    def uses_tools(self, run: Run) -> bool:
        """Whether the first request would offer tools, or fail for a missing critical one."""
        tools = self._toolset
        return bool(tools.definitions(run.ports, run.terms)) or tools.lost(run.ports) is not None

    def reads_untrusted_descriptions(self, run: Run) -> bool:
        """Whether the run's requests contain tool descriptions from outside."""
        return bool(self._toolset.untrusted_servers(run.ports, run.terms))

    async def _steps(self, run: Run, state: RunState) -> Outcome | SuspendedRun:
        model, empty, notice = run.model or self._model, 0, ""
        passed_over: tuple[str, ...] = ()
        while True:
            now = await run.inbox.read(run, state) if run.inbox else run
            now = now.as_allowed_now()
            if now.model is not run.model:
                model = now.model or model
            run, state.model = now, now.model
            specs = state.shown = self._toolset.definitions(
                run.ports, run.terms, opened_servers(state.messages)
            )
            if servers := self._toolset.untrusted_servers(run.ports, run.terms):
                run = replace(run, asker=with_read(run.asker, servers))
            if lost := self._toolset.lost(run.ports):
                text = f"tool: {lost.name} is critical and cannot be used: it {lost.reason}"
                state.cause = ToolUnavailable(f"{lost.name} cannot be used: it {lost.reason}")
                return state.outcome(Stop.FAILED, error=text)
            if state.steps >= self._max_steps and self._on_limit == "error":
                text = f"limit: no answer after {self._max_steps} steps"
                return state.outcome(Stop.FAILED, limit=True, error=text)
            if not may_request(run, state, specs):
                return self._give_up(run, state)
            last = state.steps >= self._max_steps or empty > 1 or state.totals.is_over
            messages = next_request_messages(run, state, run.words.last_step if last else notice)
            request = run.request(messages, () if last else specs)
            if passed_over:
                request = replace(request, passed_over=passed_over)
            if hooks := self._toolset.hooks:
                request, model = await ask_before_request(
                    hooks, request, model, metadata_of_run(run, state.steps + 1)
                )
            streamed = None if run.on_delta is None else StreamedAnswer(run.on_delta)
            if streamed is not None:
                request = replace(request, on_delta=streamed.hear)
            asked = await self._ask(run, state, model, request)
            if asked is None:
                if streamed is not None:
                    streamed.discard()
                empty, notice = 0, ""
                continue
            answer, spoilt = asked
            completion = answer.completion
            text = completion_words(completion) or fallback_answer(run, state, spoilt=spoilt)
            if streamed is not None:
                streamed.settle(text)
            if completion.message.tool_calls and not completion.refusal and not last:
                if ended := await self._calls.run(run, state, answer):
                    return ended
            elif text or run.may_end_empty(spoilt=spoilt):
                goes_on = state.steps < self._max_steps and not run.share.is_over
                if goes_on and run.inbox is not None and state.is_overtaken():
                    empty, notice = 0, ""
                    continue
                if text:
                    state.messages.append(
                        AssistantMessage(text, reasoning=completion.message.reasoning)
                    )
                if goes_on and run.inbox is None and state.listen(state.steering, state.follow_ups):
                    state.totals.is_over, empty = False, 0
                    continue
                limit = bool(text) and state.steps > self._max_steps
                return state.outcome(Stop.ANSWERED if text else Stop.SILENT, text, limit=limit)
            elif last or (spoilt and state.is_spoilt):
                return self._give_up(run, state)
            else:
                empty, state.is_spoilt = empty + 1, state.is_spoilt or spoilt
                if not spoilt:
                    passed_over += (completion.endpoint,)
                notice = "" if spoilt and run.examples else run.words.empty

    async def _ask(
        self, run: Run, state: RunState, model: ChatModel, request: ModelRequest
    ) -> tuple[StepFinished, bool] | None:
        """The model's answer, filtered before any event, and whether filtering left no text. None
        if the request must be repeated (aborted or refused).
        """
        state.steps += 1
        started = self._clock.monotonic()
        if (said := await complete(run, state, model, request)) is None:
            return None
        run.share.settle(request_tokens(request, said))
        if said.usage is not None:
            state.usage += said.usage
        message, is_cut = filter_answer(run, state, said.message)
        completion = said if message is said.message else replace(said, message=message)
        answer = StepFinished(
            run_id=run.id,
            step=state.steps,
            completion=completion,
            seconds=self._clock.monotonic() - started,
            response_id=completion.response_id or f"{run.id}-{state.steps}",
        )
        self._observer.notice(answer)
        match completion.finish:
            case FinishReason.CONTENT_FILTER:
                raise ContentFiltered(completion.refusal or "the vendor filtered the answer")
            case (
                FinishReason.LENGTH
                | FinishReason.STOP
                | FinishReason.TOOL_CALLS
                | FinishReason.UNKNOWN
            ):
                return answer, is_cut and bool(completion_words(said)) and not completion_words(
                    completion
                )
            case _:
                assert_never(completion.finish)

    async def _go_on(
        self, run: Run, state: RunState, suspended: SuspendedRun, decisions: Mapping[str, Decision]
    ) -> Outcome | SuspendedRun:
        """Finish the suspended step, then continue."""
        ended = await self._calls.resume(run, state, suspended, decisions)
        return ended or await self._steps(run, state)

    def _give_up(self, run: Run, state: RunState) -> Outcome:
        limit = state.steps > self._max_steps
        if not doubted_answer(run, state):
            if limit or state.totals.is_over:
                return state.outcome(Stop.ANSWERED, run.words.no_conclusion, limit=limit)
            if run.may_be_silent:
                return state.outcome(Stop.SILENT)
        return failed_outcome(run, state, "empty: the model gave no answer, whatever it was told")


def completion_words(completion: Completion) -> str:
    """The model's text for people, or its refusal; marked if the output limit cut it off."""
    text = (completion.message.text or completion.refusal).strip()
    return text + CUT_OFF if text and completion.finish is FinishReason.LENGTH else text


def request_tokens(request: ModelRequest, completion: Completion) -> float:
    """The tokens of a request and its answer; estimated if the vendor reports none."""
    if usage := completion.usage:
        return usage.prompt + usage.completion
    return estimate(request) + estimate_message(completion.message)


async def ask_before_request(
    hooks: Sequence[Hook], request: ModelRequest, model: ChatModel, metadata: Metadata
) -> tuple[ModelRequest, ChatModel]:
    """The request and the model after all hooks, each seeing the changes of those before it."""
    for hook in hooks:
        if hook.before_request is None:
            continue
        event = RequestEvent(messages=request.messages, model=model, metadata=metadata)
        answer = await consult(hook.before_request, event)
        if isinstance(answer, Reshape):
            request = (
                request if answer.messages is None else replace(request, messages=answer.messages)
            )
            model = answer.model or model
    return request, model


def may_request(run: Run, state: RunState, tools: tuple[ToolSpec, ...]) -> bool:
    """Whether the share has room for a request, which is counted. The last one is without tools."""
    share, tokens = run.share, 0.0
    if share.counts_tokens:
        tokens = estimate(run.request((*run.transcript, *state.messages), tools))
    room = share.begin(tokens)
    state.totals.is_over |= room is not Room.MORE
    return room is not Room.NONE


async def complete(
    run: Run, state: RunState, model: ChatModel, request: ModelRequest
) -> Completion | None:
    """The model's answer. None if the request was aborted for new messages, or refused, in which
    case it is not a step. In a chat, aborted requests are counted.

    Raises DaySpent if the final answer, which is always allowed, is refused as well: otherwise the
    run would never end.
    """
    scope = asyncio.timeout(None)
    if run.inbox is not None:
        run.share.step = state.steps
        state.request = None if state.messages else scope
    try:
        async with scope:
            return await model.complete(request)
    except DaySpent:
        if state.was_refused:
            raise
        state.was_refused = True
        state.steps -= 1
        run.share.take_back()
        return None
    except (asyncio.CancelledError, TimeoutError) as broken:
        is_cancelled = isinstance(broken, asyncio.CancelledError)
        if run.inbox is None or not (is_cancelled or scope.expired()):
            raise
        name, usage = run.share.lost or (model.name, Usage(prompt=round(estimate(request))))
        run.share.lost = None
        run.share.settle(usage.prompt)
        state.usage += usage
        run.inbox.record_broken_off(name, usage, state.steps)
        if is_cancelled:
            raise
        return None
    finally:
        state.request = None
