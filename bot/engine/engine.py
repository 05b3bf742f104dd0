"""The run: step until words.

A step is one model request and its tool calls. State goes in, run events and an outcome come out;
nothing here knows of prompts, of delivery or of stored history.

Invariant: `RunState.messages` is a valid transcript at every moment anyone can look at it: an
assistant message with calls is added together with one result for each call, also when the run is
cancelled in the middle. A step with a call that waits for somebody's word is not part of it: it
lives in the `SuspendedRun` until it is whole. What people say meanwhile (`RunState.steer`,
`follow_up`) comes after a whole step, never between a call and its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias, assert_never

from msgspec.structs import replace

from bot.domain.chat import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    ToolCall,
    ToolMessage,
)
from bot.domain.errors import (
    ContentFiltered,
    InvalidArguments,
    ModelError,
    ToolDenied,
    ToolUnavailable,
)
from bot.domain.hooks import Metadata, StepEvent
from bot.domain.ports import ChatModel, Clock, Observer
from bot.domain.result import ToolResult
from bot.domain.run import (
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
    ToolProgressed,
    ToolStarted,
)
from bot.domain.suspension import Allow, BadSuspension, Decision, Deny, verify
from bot.domain.tool import ToolContext
from bot.domain.traits import Execution
from bot.engine.batches import MAX_CALLS, Batch, Batches, unrecorded, untold
from bot.engine.running import Inside, Run, RunState, may_ask
from bot.engine.steps import ask_after_step, ask_before_request, tokens_of, with_notice, words_of
from bot.engine.threads import Progress
from bot.engine.toolset import Toolset
from bot.engine.transcripts import close_interrupted

__all__ = ["Engine", "OnLimit", "Run", "RunState"]

MAX_STEPS = 12
DEADLINE = 300.0  # seconds for a run (a resumed one: from then on): a person is waiting

LAST_STEP = (
    "You have no tool calls left. Do not call any tool: answer now, in words, from what you have found so far, and "
    "say what is still missing."
)
EMPTY_ANSWER = "Your last answer was empty. Answer now, in words."
SPOILT_ANSWER = (
    "Your last answer was nothing but the question, or the frame around what people say here. Answer now, in words of "
    "your own alone: no name, number or heading in front, and no lines of others."
)
NOBODY_ANSWERED = "nobody allowed it in time"
NO_CONCLUSION = "我查了好几步，还没有得出结论，先停在这里。换个更具体的问法再试试？"

OnLimit: TypeAlias = Literal["answer", "error"]


class Engine:
    """Lets the model speak and call tools until it answers in words, or a limit is reached.

    At `max_steps` (0 is the default) the model must answer in words, or the run fails: `on_limit`.
    `tool_execution` is how the calls of every step are run, `max_calls` how many of one step. Hooks
    are those of the toolset. `recorded` returns once what the observer was told is written down, or
    cannot be; calls that may change something wait for it. `on_result` is told of a call and its
    output as soon as the model's words for it are known, the observer of all calls of a step
    together, in their order.
    """

    def __init__(
        self,
        *,
        model: ChatModel,
        toolset: Toolset,
        clock: Clock,
        observer: Observer,
        max_steps: int = MAX_STEPS,
        deadline: float = DEADLINE,
        on_limit: OnLimit = "answer",
        max_calls: int = MAX_CALLS,
        tool_execution: Execution = Execution.CONCURRENT,
        recorded: Callable[[], Awaitable[object]] = unrecorded,
        on_result: Callable[[ToolCall, str], None] = untold,
    ) -> None:
        self._model = model
        self._toolset = toolset
        self._batches = Batches(
            toolset.calls,
            execution=tool_execution,
            max_calls=max_calls,
            recorded=recorded,
            on_result=on_result,
        )
        self._clock = clock
        self._observer = observer
        self._max_steps = max_steps or MAX_STEPS
        self._deadline = deadline
        self._on_limit = on_limit

    async def run(self, run: Run, state: RunState) -> Outcome | SuspendedRun:
        """Run to the end, or until a call waits for somebody's word; every failure is an outcome.

        Only a cancellation gets out, and leaves `state` valid.
        """
        self._observer.notice(
            RunStarted(run_id=run.id, conversation=run.conversation, asker=run.asker)
        )
        return await self._segment(run, state, self._steps(run, state))

    async def resume(
        self, run: Run, suspended: SuspendedRun, decisions: Mapping[str, Decision], state: RunState
    ) -> Outcome | SuspendedRun:
        """Go on with a suspended run, as `run` does; `decisions` are by call id, `state` is set to
        where it stood.

        `run` has the id, conversation and asker it had; its asker's authority and its ports are
        today's. What is allowed is run now, denied or expired calls are told so, and what is left
        undecided is waited for further: the model goes on only when nothing waits. Raises
        BadSuspension, before anything was told, changed or run.

        Whoever calls this has first written down that the run is resumed: an equal state resumes as
        often as one asks.
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
            ended = state.outcome(Stop.FAILED, error=f"{error.kind}: {error}")
        except TimeoutError:
            if not deadline.expired():
                raise
            ended = state.outcome(
                Stop.FAILED, error=f"deadline: not finished after {self._deadline:g} s"
            )
        finally:
            seconds = self._clock.monotonic() - started
            if isinstance(ended, SuspendedRun):
                self._observer.notice(RunPaused(run_id=run.id, suspended=ended, seconds=seconds))
            else:
                outcome = state.outcome(Stop.STOPPED) if ended is None else ended
                self._observer.notice(RunFinished(run_id=run.id, outcome=outcome, seconds=seconds))
        return ended

    async def _steps(self, run: Run, state: RunState) -> Outcome | SuspendedRun:
        model, empty, notice = self._model, 0, ""
        while True:
            specs = self._toolset.definitions(run.ports)
            if lost := self._toolset.lost(run.ports):
                text = f"tool: {lost.name} is critical and cannot be used: it {lost.reason}"
                return state.outcome(Stop.FAILED, error=text)
            if state.steps >= self._max_steps and self._on_limit == "error":
                text = f"limit: no answer after {self._max_steps} steps"
                return state.outcome(Stop.FAILED, limit=True, error=text)
            if not may_ask(run, state, specs):
                return self._give_up(state)
            last = state.steps >= self._max_steps or empty > 1 or state.tally.is_over
            messages = with_notice(
                (*run.transcript, *state.messages), LAST_STEP if last else notice
            )
            request = ModelRequest(messages, () if last else specs, run.share)
            if hooks := self._toolset.hooks:
                request, model = await ask_before_request(
                    hooks, request, model, _metadata(run, state.steps + 1)
                )
            answer, spoilt = await self._ask(run, state, model, request)
            completion = answer.completion
            if completion.message.tool_calls and not completion.refusal and not last:
                if ended := await self._call(run, state, answer):
                    return ended
            elif (text := words_of(completion)) or run.heard():
                if text:
                    state.messages.append(
                        AssistantMessage(text, reasoning=completion.message.reasoning)
                    )
                goes_on = state.steps < self._max_steps and not run.share.is_over
                if goes_on and state.listen(state.steering, state.follow_ups):
                    state.tally.is_over, empty = False, 0
                    continue
                limit = state.steps > self._max_steps
                return state.outcome(
                    Stop.ANSWERED if text else Stop.SILENT, text, limit=bool(text) and limit
                )
            elif last or (spoilt and notice == SPOILT_ANSWER):
                return self._give_up(state)
            else:
                empty, notice = empty + 1, SPOILT_ANSWER if spoilt else EMPTY_ANSWER

    async def _ask(
        self, run: Run, state: RunState, model: ChatModel, request: ModelRequest
    ) -> tuple[StepFinished, bool]:
        """What the model answers, tidied before anybody is told; and whether nothing was left of
        its words then.
        """
        state.steps += 1
        started = self._clock.monotonic()
        said = await model.complete(request)
        run.share.settle(tokens_of(request, said))
        if said.usage is not None:
            state.usage += said.usage
        message = run.tidy(said.message)
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
                return answer, bool(words_of(said)) and not words_of(completion)
            case _:
                assert_never(completion.finish)

    # --- the calls of a step ----------------------------------------------------------------------

    async def _call(
        self, run: Run, state: RunState, answer: StepFinished
    ) -> Outcome | SuspendedRun | None:
        """Run the calls of an answer; None where the model is to be asked next."""
        message = answer.completion.message
        for call in message.tool_calls:
            started = ToolStarted(
                run_id=run.id, step=state.steps, call=call, response_id=answer.response_id
            )
            self._observer.notice(started)
        batch = Batch(message.tool_calls)
        if answer.completion.finish is FinishReason.LENGTH:
            for index, call in enumerate(batch.calls):
                problem = f'the arguments for "{call.name}" were cut off (output limit). Send fewer or shorter arguments.'
                batch.deny(index, InvalidArguments(problem))
        return await self._run_batch(run, state, message, batch, answer.response_id)

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
        ended = await self._run_batch(run, state, suspended.message, batch, suspended.response_id)
        return ended or await self._steps(run, state)

    def _decide(
        self, batch: Batch, index: int, pending: PendingCall, decision: Decision | None
    ) -> None:
        if self._clock.now() >= pending.expires:
            decision = Deny(NOBODY_ANSWERED)
        match decision:
            case Allow():
                batch.allow(index, pending)
            case Deny(reason=reason):
                batch.deny(index, ToolDenied(f"the tool call was denied: {reason}"), pending)
            case None:
                batch.keep(index, pending)
            case _:
                assert_never(decision)

    async def _run_batch(
        self, run: Run, state: RunState, message: AssistantMessage, batch: Batch, response_id: str
    ) -> Outcome | SuspendedRun | None:
        contexts = [
            self._context(run, state, call, response_id, allowed=batch.waited(index) is not None)
            for index, call in enumerate(batch.calls)
        ]
        try:
            await self._batches.run(batch, contexts, state.tally)
        finally:
            suspended = self._settle(run, state, message, batch, response_id)
        return suspended or await self._after(run, state, message, batch, response_id)

    def _settle(
        self, run: Run, state: RunState, message: AssistantMessage, batch: Batch, response_id: str
    ) -> SuspendedRun | None:
        """The one place where calls enter the transcript: with all their results, at once; not
        while one waits.

        What was finished is told in either case: a wait can be long, and a result known now is not
        lost in it.
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
                    waited=executed.waited,
                    response_id=response_id,
                    details=executed.details,
                    arguments=executed.arguments,
                    coerced=executed.coerced,
                )
            )
        return None if results is not None else _suspended(run, state, message, batch, response_id)

    async def _after(
        self, run: Run, state: RunState, message: AssistantMessage, batch: Batch, response_id: str
    ) -> Outcome | None:
        """What the results of a whole step say about the run: that it ends here, or None."""
        for call, executed in batch.finished():
            tool = self._toolset.get(call.name)
            if executed.code == ToolUnavailable.code and tool is not None and tool.critical:
                return state.outcome(
                    Stop.FAILED, error=f"tool: {tool.name} is critical: {executed.message.content}"
                )
        event = StepEvent(
            message=message,
            results=batch.results() or (),
            metadata=_metadata(run, state.steps, response_id),
        )
        asked = await ask_after_step(self._toolset.hooks, event)
        if stop := state.tally.stop or asked:
            return state.outcome(Stop.STOPPED, error=f"hook: {stop.reason}")
        if batch.is_terminal():
            return self._terminate(run, state, event.results)
        state.listen(state.steering)
        return None

    def _terminate(self, run: Run, state: RunState, results: tuple[ToolMessage, ...]) -> Outcome:
        """The tools have said it all: to the asker, or else in their results."""
        text = "" if run.heard() else "\n".join(result.content for result in results)
        if text:
            state.messages.append(AssistantMessage(text))
        return state.outcome(Stop.ANSWERED if text else Stop.SILENT, text)

    def _context(
        self, run: Run, state: RunState, call: ToolCall, response_id: str, *, allowed: bool
    ) -> ToolContext:
        step, tool = state.steps, self._toolset.get(call.name)

        def tell(partial: ToolResult) -> None:
            event = ToolProgressed(
                run_id=run.id, step=step, call=call, partial=partial, response_id=response_id
            )
            self._observer.notice(event)

        return ToolContext(
            run_id=run.id,
            step=step,
            call_id=call.id,
            conversation=run.conversation,
            asker=run.asker,
            deadline=self._clock.monotonic() + (tool.timeout if tool else 0.0),
            response_id=response_id,
            ports=run.ports,
            allowed=allowed,
            reports=Progress(tell),
            inner=Inside(run, state, self._observer).notice,
            share=run.share,
        )

    def _give_up(self, state: RunState) -> Outcome:
        limit = state.steps > self._max_steps
        if not limit and not state.tally.is_over:
            return state.outcome(
                Stop.FAILED, error="empty: the model gave no answer, whatever it was told"
            )
        state.messages.append(AssistantMessage(NO_CONCLUSION))
        return state.outcome(Stop.ANSWERED, NO_CONCLUSION, limit=limit)


def _metadata(run: Run, step: int, response_id: str = "") -> Metadata:
    return {
        "run": run.id,
        "step": step,
        "call": "",
        "response": response_id,
        "conversation": str(run.conversation),
        "asker": run.asker.user_id,
    }


def _suspended(
    run: Run, state: RunState, message: AssistantMessage, batch: Batch, response_id: str
) -> SuspendedRun:
    return SuspendedRun(
        run_id=run.id,
        conversation=run.conversation,
        asker=run.asker,
        messages=tuple(state.messages),
        message=message,
        answers=batch.answers(),
        usage=state.usage,
        steps=state.steps,
        response_id=response_id,
        spent=run.share.budget.spent,
    )
