"""The calls of a step and their effect on the run: transcript, suspension, or end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import assert_never

from msgspec.structs import replace

from frostagent.engine.authority import lower_authority
from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.registry import Registry
from frostagent.engine.run_state import NestedObserver, Run, RunState
from frostagent.engine.tool_execution import Progress, consult
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolUnavailable
from frostagent.types.hooks import Hook, Metadata, StepEvent, StopRun
from frostagent.types.messages import (
    AssistantMessage,
    FinishReason,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from frostagent.types.ports import Clock, Observer
from frostagent.types.results import ToolResult
from frostagent.types.runs import (
    Outcome,
    PendingCall,
    StepFinished,
    Stop,
    SuspendedRun,
    ToolProgressed,
    ToolStarted,
)
from frostagent.types.suspension import Allow, Decision, Deny
from frostagent.types.tools import ToolContext
from frostagent.words import Words

CUT_OFF = 'the arguments for "{name}" were cut off (output limit). Send fewer or shorter arguments.'


class StepCalls:
    """Runs the calls of one answer, and reports them to the observer in call order."""

    def __init__(
        self, toolset: Registry, executor: CallExecutor, *, clock: Clock, observer: Observer
    ) -> None:
        self._toolset = toolset
        self._executor = executor
        self._clock = clock
        self._observer = observer

    async def run(
        self, run: Run, state: RunState, answer: StepFinished
    ) -> Outcome | SuspendedRun | None:
        """Run the calls of an answer; None if the model is to be asked next."""
        message = answer.completion.message
        for call in message.tool_calls:
            started = ToolStarted(
                run_id=run.id,
                step=state.steps,
                call=call,
                response_id=answer.response_id,
                at=self._clock.now(),
            )
            self._observer.notice(started)
        batch = Batch(message.tool_calls)
        for index, call in enumerate(batch.calls):
            if len(batch.calls) > 1 and (tool := self._toolset.get(call.name)) and tool.alone:
                batch.deny(index, ToolDenied(run.words.not_alone.format(name=call.name)))
            if call.name in run.terms.denied:
                batch.deny(index, ToolDenied(run.words.denied.format(name=call.name)))
        if answer.completion.finish is FinishReason.LENGTH:
            for index, call in enumerate(batch.calls):
                batch.deny(index, InvalidArguments(CUT_OFF.format(name=call.name)))
        return await self._run_batch(run, state, message, batch, answer.response_id)

    async def resume(
        self, run: Run, state: RunState, suspended: SuspendedRun, decisions: Mapping[str, Decision]
    ) -> Outcome | SuspendedRun | None:
        """Finish the suspended step, as `run` does; `decisions` are by call id."""
        batch = Batch(suspended.message.tool_calls)
        for index, answer in enumerate(suspended.answers):
            match answer:
                case ToolMessage():
                    batch.keep(index, answer)
                case PendingCall():
                    self._decide(run.words, batch, index, answer, decisions.get(answer.call.id))
                case _:
                    assert_never(answer)
        return await self._run_batch(run, state, suspended.message, batch, suspended.response_id)

    def _decide(
        self,
        words: Words,
        batch: Batch,
        index: int,
        pending: PendingCall,
        decision: Decision | None,
    ) -> None:
        if self._clock.now() >= pending.expires:
            decision = Deny(words.nobody_answered)
        match decision:
            case Allow():
                batch.allow(index, pending)
            case Deny(reason=reason):
                batch.deny(index, ToolDenied(words.not_allowed.format(reason=reason)), pending)
            case None:
                batch.keep(index, pending)
            case _:
                assert_never(decision)

    async def _run_batch(
        self, run: Run, state: RunState, message: AssistantMessage, batch: Batch, response_id: str
    ) -> Outcome | SuspendedRun | None:
        asker = lower_authority(run.asker, run.transcript, state.messages)
        lowered = replace(run, asker=asker)
        contexts = [
            self._context(
                lowered, state, call, response_id, allowed=batch.waited(index) is not None
            )
            for index, call in enumerate(batch.calls)
        ]
        try:
            await self._executor.run(batch, contexts, state.totals)
        finally:
            suspended = self._settle(run, state, message, batch, response_id)
        return suspended or await self._after(run, state, message, batch, response_id)

    def _settle(
        self, run: Run, state: RunState, message: AssistantMessage, batch: Batch, response_id: str
    ) -> SuspendedRun | None:
        """Add the calls with all results to the transcript, unless one waits. Nothing else adds
        calls.

        Finished calls are reported in either case: a wait can be long, and must not lose their
        results.
        """
        results = batch.results()
        if results is not None:
            state.messages.append(message)
            state.messages.extend(results)
        for call, executed in batch.finished():
            self._observer.notice(executed.event(run.id, state.steps, call, response_id))
        return None if results is not None else _suspended(run, state, message, batch, response_id)

    async def _after(
        self, run: Run, state: RunState, message: AssistantMessage, batch: Batch, response_id: str
    ) -> Outcome | None:
        """The run's outcome if the step's results end it; else None."""
        for call, executed in batch.finished():
            tool = self._toolset.get(call.name)
            if executed.code == ToolUnavailable.code and tool is not None and tool.critical:
                state.cause = executed.exception
                return state.outcome(
                    Stop.FAILED, error=f"tool: {tool.name} is critical: {executed.message.content}"
                )
        event = StepEvent(
            message=message,
            results=batch.results() or (),
            metadata=metadata_of_run(run, state.steps, response_id),
        )
        asked = await ask_after_step(self._toolset.hooks, event)
        if stop := state.totals.stop or asked:
            return state.outcome(Stop.STOPPED, error=f"hook: {stop.reason}")
        if batch.is_terminal():
            return self._terminate(run, state, event.results)
        state.listen(state.steering)
        return None

    def _terminate(self, run: Run, state: RunState, results: tuple[ToolMessage, ...]) -> Outcome:
        """End as all tools want: their results are the answer, unless a message was sent."""
        text = "" if run.was_heard() else "\n".join(result.content for result in results)
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
            asked=asked_in(run, state),
            ports=run.ports,
            allowed=allowed,
            reports=Progress(tell),
            inner=NestedObserver(run, state, self._observer).notice,
            share=run.share,
            terms=run.terms,
            words=run.words,
        )


async def ask_after_step(hooks: Sequence[Hook], event: StepEvent) -> StopRun | None:
    """Run all hooks; the first StopRun counts."""
    answers = [
        await consult(hook.after_step, event) for hook in hooks if hook.after_step is not None
    ]
    return next((answer for answer in answers if isinstance(answer, StopRun)), None)


def asked_in(run: Run, state: RunState) -> tuple[str, ...]:
    """The ids of the messages a run answers: its question's, and those that steered it."""
    said = (one.sources for one in state.messages if isinstance(one, UserMessage))
    return tuple(dict.fromkeys(chain(run.asked, *said)))


def metadata_of_run(run: Run, step: int, response_id: str = "") -> Metadata:
    """The ids for a hook: the run, its step, and the model's answer."""
    return {
        "run": run.id,
        "step": step,
        "call": "",
        "response": response_id,
        "conversation": run.conversation,
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
