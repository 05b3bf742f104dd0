"""Whatever goes wrong in a run's calls: each has exactly one result, in call order, and the transcript is valid."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.engine.engine import Engine, Run, RunState
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import ToolDenied
from frostagent.types.hooks import AfterCall, BeforeCall, Block, Change, Hook, Rewrite, StepEvent
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from frostagent.types.ports import Approver
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker, Outcome, SuspendedRun
from frostagent.types.suspension import Allow, ApprovalRequest, Decision, Deny, Pending
from frostagent.types.tools import ToolContext, tool
from tests.fakes import GROUP, ManualClock, RecordingObserver, ScriptedModel, words
from tests.frostagent.toolbox import ALL


@tool(permission="require_approval", side_effects="external")
async def pay(amount: int) -> ToolResult:
    """Pays, if it may."""
    return ToolResult(f"paid {amount}", terminate=True)


@tool(permission="deny")
async def destroy() -> str:
    """Never runs."""
    raise AssertionError("it ran")


@tool(execution="sequential", rate="1/60", idempotent=True, side_effects="read")
async def nap(context: ToolContext, what: str = "") -> str:
    """Tells how far it is, and may not."""
    context.progress("falling asleep")
    if what:
        raise ToolDenied("zzz")
    return "slept"


TOOLS = (*ALL, pay, destroy, nap)
ANY_ANSWER = st.sampled_from(
    [None, Block("no"), Change({"a": 1}), Change({}), Rewrite(ToolResult("x")), LookupError(), SystemExit(1), "odd"]
)
ANY_WORD = st.sampled_from([Allow(), Deny("no"), Pending(5), LookupError(), "yes"])
DECISIONS: st.SearchStrategy[Decision] = st.sampled_from([Allow(), Deny("no")])
ANY_CALL = st.tuples(
    st.sampled_from([each.name for each in TOOLS] + ["nobody", ""]),
    st.sampled_from(["", "{}", '{"a": "1"}', '{"amount": 3}', '{"what": "it"}', "[", '{"odd": 1}', "\\ud800"]),
)
ANY_STEPS = st.lists(
    st.tuples(
        st.lists(ANY_CALL, min_size=1, max_size=18), st.sampled_from([FinishReason.TOOL_CALLS, FinishReason.LENGTH])
    ),
    max_size=3,
)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Hundreds of crashes on purpose would be kept as log records."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class Whim:
    """An approver that answers anything."""

    def __init__(self, answers: list[Any]) -> None:
        self._answers = answers

    async def approve(self, request: ApprovalRequest) -> Any:
        answer = self._answers[len(request.arguments) % len(self._answers)] if self._answers else Deny("nobody")
        if isinstance(answer, Exception):
            raise answer
        return answer


class Diary:
    """Hooks that answer anything; takes down which calls were told before and after."""

    def __init__(self, answers: list[Any]) -> None:
        self.before: list[str] = []
        self.after: list[str] = []
        mine = Hook(before_call=self._begin, after_call=self._end, after_step=self._step)
        self.hooks = [mine, *(Hook(before_call=_answer(each), after_call=_answer(each)) for each in answers)]

    def _begin(self, event: BeforeCall) -> None:
        self.before.append(event.metadata["call"])

    async def _end(self, event: AfterCall) -> None:
        self.after.append(event.metadata["call"])
        await asyncio.sleep(0)

    def _step(self, event: StepEvent) -> None:
        assert len(event.results) == len(event.message.tool_calls)


def _answer(answer: Any) -> Callable[[Any], Any]:
    def hook(event: BeforeCall | AfterCall) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return hook


def script(steps: list[tuple[list[tuple[str, str]], FinishReason]]) -> list[Completion]:
    """The steps as a model makes them, every call with an id of its own."""
    made = [
        tuple(ToolCall(f"s{step}c{index}", name, raw) for index, (name, raw) in enumerate(asked))
        for step, (asked, _) in enumerate(steps)
    ]
    answers = [Completion(AssistantMessage("", calls), steps[step][1]) for step, calls in enumerate(made)]
    return [*answers, words("done"), words("done"), words("done")]


def house(steps: Any, answers: list[Any]) -> tuple[Engine, RecordingObserver, Diary]:
    clock, observer, diary = ManualClock(), RecordingObserver(), Diary(answers)
    tools = Toolset(TOOLS, clock=clock, hooks=diary.hooks)
    model = ScriptedModel(*script(steps))
    return Engine(model=model, toolset=tools, clock=clock, observer=observer, deadline=60), observer, diary


def run(word: list[Any]) -> Run:
    transcript = (SystemMessage("be nice"), UserMessage("hi"))
    ports: dict[type, object] = {Approver: Whim(word)} if word else {}
    return Run(id="t0", conversation=str(GROUP), asker=Asker("777"), transcript=transcript, ports=ports)


def assert_whole(messages: tuple[Message, ...] | list[Message]) -> None:
    """Each call is followed by its one result, in call order, and no result stands alone."""
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        assert not isinstance(message, ToolMessage)
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            result = rest.pop(0)
            assert isinstance(result, ToolMessage)
            assert (result.call_id, result.name) == (call.id, call.name)
            assert result.content


@given(ANY_STEPS, st.lists(ANY_ANSWER, max_size=3), st.lists(ANY_WORD, max_size=2), st.data())
def test_whatever_calls_do_each_has_one_result_in_call_order_and_each_before_has_its_after(
    steps: list[tuple[list[tuple[str, str]], FinishReason]], answers: list[Any], word: list[Any], data: st.DataObject
) -> None:
    engine, observer, diary = house(steps, answers)

    async def scenario() -> Outcome:
        state = RunState()
        ended = await engine.run(run(word), state)
        while isinstance(ended, SuspendedRun):
            assert_whole(state.messages)
            drawn = {pending.call.id: data.draw(DECISIONS) for pending in ended.pending}
            ended = await engine.resume(run(word), ended, drawn, state := RunState())
        return ended

    outcome = asyncio.run(scenario())
    assert_whole(outcome.messages)
    started, finished = observer.of("tool_started"), observer.of("tool_finished")
    assert len(started) == len(finished)
    assert diary.before == sorted(set(diary.before), key=diary.before.index)
    assert sorted(diary.before) == sorted(diary.after)
    failed = [message for message in outcome.messages if isinstance(message, ToolMessage) and message.is_error]
    assert len(outcome.tool_failures) == len(failed)


@given(ANY_STEPS, st.lists(ANY_ANSWER, max_size=2), st.integers(1, 40))
def test_whenever_a_run_is_cancelled_its_transcript_is_whole_and_each_before_has_its_after(
    steps: list[tuple[list[tuple[str, str]], FinishReason]], answers: list[Any], turns: int
) -> None:
    engine, observer, diary = house(steps, answers)
    state = RunState()

    async def scenario() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            task = group.create_task(engine.run(run([]), state))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()

    asyncio.run(scenario())
    assert_whole(state.messages)
    assert len(observer.of("tool_started")) == len(observer.of("tool_finished")) or observer.of("run_paused")
    if not observer.of("run_paused"):
        assert sorted(diary.before) == sorted(diary.after)
