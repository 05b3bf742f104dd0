"""The calls of one step: begun in call order, run side by side, finished in call order.

Invariant: every `ToolCall` gets exactly one `ToolMessage`, in call order, whatever happens, also
when the run is cancelled in the middle. A call that must wait for somebody's word (`Suspend`) has
its result once that is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

from frostagent.cancellation import last_moments
from frostagent.engine.call_hooks import STOPPED
from frostagent.engine.call_state import CallState, CallTotals, Executed
from frostagent.engine.calls import CANCELLED, LAST_HOOKS, Calls
from frostagent.types.errors import ToolCancelled, ToolDenied, ToolError, ToolFailed
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.runs import PendingCall
from frostagent.types.suspension import Suspend
from frostagent.types.tools import ToolContext
from frostagent.types.traits import Execution

logger = logging.getLogger(__name__)

MAX_CALLS = 16  # of one step that are run, where nothing else is set: more is a model gone wild
AT_ONCE = 8

TOO_MANY = (
    "only {most} calls are run in one step, this one was not. "
    "Call again only what is really needed."
)
BARRED = (
    "it was not run: {first} before it waits to be allowed. Call it again once that is decided."
)
LOST = "nobody knows what became of the call. Do not repeat it."
NOT_DONE = "the call was cancelled while it waited to be allowed: it was not done."


class Batch:
    """The calls of one step and what has come of them so far; whole as soon as it has run, also
    when cancelled.
    """

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self.calls = tuple(calls)
        self._answers: dict[int, ToolMessage | PendingCall] = {}
        self._finished: dict[int, Executed] = {}
        self._waited: dict[int, PendingCall] = {}
        self._denied: dict[int, ToolError] = {}

    def keep(self, index: int, answer: ToolMessage | PendingCall) -> None:
        """Take an answer from an earlier segment of the run, or note that the call waits for
        somebody's word.
        """
        self._answers[index] = answer

    def allow(self, index: int, pending: PendingCall) -> None:
        """The call has waited, and may be run now."""
        self._waited[index] = pending

    def deny(self, index: int, error: ToolError, pending: PendingCall | None = None) -> None:
        """The call must not be run; it may have waited before."""
        self._denied[index] = error
        if pending is not None:
            self._waited[index] = pending

    def waited(self, index: int) -> PendingCall | None:
        """The wait of the call, where its wait is over."""
        return self._waited.get(index)

    def denied(self, index: int) -> ToolError | None:
        """Why the call must not be run, where that is decided."""
        return self._denied.get(index)

    def finish(self, index: int, executed: Executed) -> None:
        """The call has its result."""
        self._answers[index] = executed.message
        self._finished[index] = executed

    def open(self) -> tuple[int, ...]:
        """The calls that have no answer: they are still to be run, or to be refused."""
        return tuple(index for index in range(len(self.calls)) if index not in self._answers)

    def waiting(self) -> tuple[int, ...]:
        """The calls that wait for somebody's word."""
        return tuple(
            index
            for index in sorted(self._answers)
            if isinstance(self._answers[index], PendingCall)
        )

    def answers(self) -> tuple[ToolMessage | PendingCall, ...]:
        """For each call, in call order, its result or what it waits for."""
        return tuple(
            self._answers.get(index) or _lost(call) for index, call in enumerate(self.calls)
        )

    def results(self) -> tuple[ToolMessage, ...] | None:
        """One result for each call, in call order; None while one of them waits."""
        results = tuple(answer for answer in self.answers() if isinstance(answer, ToolMessage))
        return results if len(results) == len(self.calls) else None

    def is_terminal(self) -> bool:
        """Whether every call was finished here, and wants the run to end."""
        return len(self._finished) == len(self.calls) and all(
            each.terminate for each in self._finished.values()
        )

    def finished(self) -> tuple[tuple[ToolCall, Executed], ...]:
        """The calls that were finished here, not in an earlier segment, in call order."""
        return tuple((self.calls[index], self._finished[index]) for index in sorted(self._finished))


class Batches:
    """Runs the calls of a step, at most `max_calls` of them. `execution` is that of all steps; a
    tool may ask for it in its own. `on_result` is told of each call and its output as the model
    reads it, as soon as that is so.

    `recorded` is waited for before a call that may change something: a process that ends in the
    middle of it comes back knowing that it had begun, unless the journal could not be written then,
    which the operator was told.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        execution: Execution = Execution.CONCURRENT,
        at_once: int = AT_ONCE,
        max_calls: int = MAX_CALLS,
        recorded: Callable[[], Awaitable[object]] | None = None,
        on_result: Callable[[ToolCall, str], None] | None = None,
    ) -> None:
        self._calls = calls
        self._max_calls = max_calls
        self._on_result = on_result
        self._recorded = recorded
        self._execution = execution
        self._at_once = at_once

    async def run(
        self, batch: Batch, contexts: Sequence[ToolContext], tally: CallTotals | None = None
    ) -> None:
        """Run the open calls, each with its context of `contexts` (one for each call of the batch).

        Calls beyond the most are refused. When this is cancelled, so are they, and every call has
        its result, those that wait too; and so it is for what is not run yet, or waits, when a hook
        stops the run.
        """
        tally = tally or CallTotals()
        flows = {
            index: self._calls.start(batch.calls[index], contexts[index], batch.waited(index))
            for index in batch.open()
        }
        try:
            await self._begin(batch, flows, tally)
            if self._recorded and any(flow.may_change_something for flow in flows.values()):
                await self._recorded()
            await self._run_bodies(batch, flows)
            for index, flow in flows.items():
                if flow.result is not None:
                    await self._finish(batch, index, flow, tally)
            if tally.stop is not None:
                await self._close_waiting(batch, flows, contexts, tally)
        except BaseException:
            await self._cancel(batch, flows, contexts, tally)
            raise
        finally:
            tally.repeats.next_step()

    async def _begin(self, batch: Batch, flows: Mapping[int, CallState], tally: CallTotals) -> None:
        for number, (index, flow) in enumerate(flows.items()):
            if error := batch.denied(index):
                flow.owes_after = batch.waited(index) is not None
                flow.refuse(error)
            elif tally.stop is not None:
                flow.refuse(ToolCancelled(STOPPED))
            elif number >= self._max_calls:
                flow.refuse(ToolDenied(TOO_MANY.format(most=self._max_calls)))
            else:
                await self._calls.begin(flow, tally, pending=batch.waited(index))
        for flow in flows.values():
            if tally.stop is not None and flow.result is None:
                flow.refuse(ToolCancelled(STOPPED))
            self._tell(flow)

    async def _run_bodies(self, batch: Batch, flows: Mapping[int, CallState]) -> None:
        todo = [index for index, flow in flows.items() if flow.result is None]
        for group in [todo] if len(todo) == 1 else self._groups(todo, flows):
            if first := self._barrier(batch, before=group[0]):
                text = BARRED.format(first=first)
                for index in group:
                    if not (
                        flows[index].needs_word or flows[index].context.allowed
                    ):  # what people decide by itself
                        flows[index].refuse(ToolDenied(text))
            await self._run_together(batch, group, flows)
        for index in batch.open():
            if flows[index].result is None:
                self._calls.break_off(flows[index], "the tool cancelled itself.")

    def _barrier(self, batch: Batch, *, before: int) -> str:
        """The name of a call with effects that waits: what comes after it must not be run before
        it; empty: none.
        """
        names = (batch.calls[index].name for index in batch.waiting() if index < before)
        return next(
            (name for name in names if (tool := self._calls.find(name)) and tool.may_have_happened),
            "",
        )

    async def _run_together(
        self, batch: Batch, group: Iterable[int], flows: Mapping[int, CallState]
    ) -> None:
        places = asyncio.Semaphore(self._at_once)

        async def one(index: int) -> None:
            async with places:
                await self._run_body(batch, index, flows[index])

        async with asyncio.TaskGroup() as tasks:
            for index in group:
                tasks.create_task(one(index))

    async def _run_body(self, batch: Batch, index: int, flow: CallState) -> None:
        try:
            await self._calls.run(flow)
            self._tell(flow)
        except Suspend as asked:
            batch.keep(index, self._calls.pending(flow, asked))

    async def _finish(self, batch: Batch, index: int, flow: CallState, tally: CallTotals) -> None:
        executed = await self._calls.finish(flow, tally)
        batch.finish(index, executed)
        self._tell(flow)

    def _tell(self, flow: CallState) -> None:
        """Tell whoever wants to know at once, unless that was done, or the result may still be
        another.
        """
        if self._on_result is None or flow.is_told:
            return
        if (output := self._calls.preview(flow)) is not None:
            flow.is_told = True
            self._on_result(flow.call, output)

    def _groups(self, todo: Iterable[int], flows: Mapping[int, CallState]) -> Iterator[list[int]]:
        """The calls that may run side by side. A call with effects waits for all before it, and all
        after it wait for it.
        """
        tools = {index: tool for index in todo if (tool := flows[index].tool) is not None}
        in_turn = Execution.SEQUENTIAL in {
            self._execution,
            *(tool.execution for tool in tools.values()),
        }
        group: list[int] = []
        for index, tool in tools.items():
            if in_turn or tool.may_have_happened:
                if group:
                    yield group
                yield [index]
                group = []
            else:
                group.append(index)
        if group:
            yield group

    async def _cancel(
        self,
        batch: Batch,
        flows: dict[int, CallState],
        contexts: Sequence[ToolContext],
        tally: CallTotals,
    ) -> None:
        """Answer what has no result yet. What waits was never done; of what was under way nobody
        knows.
        """
        self._refuse_waiting(batch, flows, contexts, NOT_DONE)
        for index in batch.open():
            flow = flows[index]
            if flow.result is None:
                self._calls.break_off(flow, CANCELLED)
        unfinished = [
            index for index in sorted(flows) if index in {*batch.open(), *batch.waiting()}
        ]
        try:
            async with last_moments(LAST_HOOKS):
                for index in unfinished:
                    await self._finish(batch, index, flows[index], tally)
        except TimeoutError:
            logger.warning("the hooks of a cancelled step took longer than %g s", LAST_HOOKS)
        finally:
            for index in unfinished:
                if index in batch.open() or index in batch.waiting():
                    batch.finish(index, self._calls.close(flows[index], tally))

    async def _close_waiting(
        self,
        batch: Batch,
        flows: dict[int, CallState],
        contexts: Sequence[ToolContext],
        tally: CallTotals,
    ) -> None:
        """A hook has stopped the run: what waits for somebody's word waits no more."""
        for index in self._refuse_waiting(batch, flows, contexts, STOPPED):
            await self._finish(batch, index, flows[index], tally)

    def _refuse_waiting(
        self, batch: Batch, flows: dict[int, CallState], contexts: Sequence[ToolContext], why: str
    ) -> tuple[int, ...]:
        waiting = batch.waiting()
        for index in waiting:
            flow = flows.setdefault(index, self._calls.start(batch.calls[index], contexts[index]))
            flow.owes_after = True
            flow.refuse(ToolCancelled(why))
        return waiting


def _lost(call: ToolCall) -> ToolMessage:
    """A call has its one result, whatever goes wrong here."""
    return ToolMessage(
        call.id,
        call.name,
        ToolFailed(LOST).told,
        is_error=True,
        code=ToolFailed.code,
    )
