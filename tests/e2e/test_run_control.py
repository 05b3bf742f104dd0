"""How a run is ended, steered and followed by what is around it: tools, limits, people, readers."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.engine import RunState
from frostagent.engine.toolset import Toolset
from frostagent.types.hooks import AfterCall, Hook
from frostagent.types.messages import Completion, ModelRequest, ToolCall, ToolMessage, UserMessage
from frostagent.types.results import ToolResult
from frostagent.types.runs import RunFinished, Stop, ToolFinished, ToolProgressed
from frostagent.types.tools import ToolContext, tool
from frostagent.words import ENGLISH
from tests.fakes import ManualClock, RecordingObserver, ScriptedModel, calls, tool_context, words

# Runs that wait for somebody's word: tests/e2e/test_suspended_runs.py
from tests.frostagent.runs import assert_valid, echo, engine, run, to_the_end
from tests.frostagent.toolbox import results_of

ECHO = calls(("echo", '{"text": "a"}'))


# --- how runs end ---------------------------------------------------------------------------------


GONE = [""]


@tool(available=lambda: GONE[0], critical=True)
async def pump() -> str:
    """The run cannot do without it."""
    raise ConnectionError


@tool
async def finish(text: str = "bye") -> ToolResult:
    """Says all there is to say."""
    return ToolResult(text, terminate=True)


async def test_a_step_whose_every_result_terminates_ends_the_run() -> None:
    with ScriptedModel(calls(("finish", ""), ("echo", '{"text": "a"}')), calls(("finish", ""))) as model:
        outcome = await to_the_end(engine(model, finish, echo).run(run(), RunState()))
    assert (outcome.stop, outcome.text, outcome.steps) == (Stop.ANSWERED, "bye", 2)
    assert_valid(outcome.messages)
    with ScriptedModel(calls(("finish", ""))) as model:
        outcome = await to_the_end(engine(model, finish).run(run(heard=lambda: True), RunState()))
    assert (outcome.stop, outcome.text, len(outcome.messages)) == (Stop.SILENT, "", 2)


async def test_at_the_limit_a_run_may_fail_instead() -> None:
    observer = RecordingObserver()
    with ScriptedModel(ECHO, ECHO) as model:
        running = engine(model, observer=observer, max_steps=2, on_limit="error")
        outcome = await to_the_end(running.run(run(), RunState()))
    assert (outcome.stop, outcome.error) == (Stop.FAILED, "limit: no answer after 2 steps")
    (finished,) = observer.of("run_finished")
    assert isinstance(finished, RunFinished)
    assert finished.limit


async def test_a_model_that_goes_round_in_circles_must_answer_at_the_fourth_time() -> None:
    @tool(side_effects="read", idempotent=True)
    async def look() -> str:
        """Looks."""
        return "nothing new"

    again = calls(("look", ""))
    for ending, text in [(words("so be it"), "so be it"), (again, ENGLISH.no_conclusion)]:
        with ScriptedModel(again, again, again, again, ending) as model:
            outcome = await to_the_end(engine(model, look, max_steps=9).run(run(), RunState()))
        assert (outcome.stop, outcome.text, outcome.limit) == (Stop.ANSWERED, text, False)
        assert model.requests[-1].tools == ()


async def test_a_critical_tool_that_cannot_be_used_ends_the_run_as_failed() -> None:
    async def break_it(request: ModelRequest) -> Completion:
        GONE[0] = "is broken"
        return calls(("pump", ""))

    async def break_it_quietly(request: ModelRequest) -> Completion:
        GONE[0] = "is broken"
        return ECHO

    for step, error in [
        (break_it, "tool: pump is critical: error: pump cannot be used now: it is broken"),
        (break_it_quietly, "tool: pump is critical and cannot be used: it is broken"),
    ]:
        GONE[0] = ""
        with ScriptedModel(step) as model:
            outcome = await to_the_end(engine(model, pump, echo).run(run(), RunState()))
        assert outcome.stop is Stop.FAILED
        assert outcome.error.startswith(error)
        assert_valid(outcome.messages)


async def test_a_run_whose_critical_tool_is_down_from_the_start_has_failed() -> None:
    GONE[0] = "is broken"
    outcome = await to_the_end(engine(ScriptedModel(), pump, echo).run(run(), RunState()))
    assert (outcome.stop, outcome.steps) == (Stop.FAILED, 0)


async def test_every_failure_of_a_tool_is_listed_whatever_became_of_the_run() -> None:
    with ScriptedModel(calls(("fail", ""), ("nobody", ""), ("echo", '{"text": "a"}')), words("done")) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert [(failure.call_id, failure.name, failure.code) for failure in outcome.tool_failures] == [
        ("c0", "fail", "TOOL_EXECUTION_FAILED"),
        ("c1", "nobody", "TOOL_NOT_FOUND"),
    ]


async def test_calls_of_a_refusal_are_not_executed() -> None:
    refused = replace(calls(("fail", "")), refusal="I will not.")
    with ScriptedModel(refused) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert (outcome.stop, outcome.text, len(outcome.messages)) == (Stop.ANSWERED, "I will not.", 1)


# --- people ---------------------------------------------------------------------------------------


async def test_what_is_said_meanwhile_is_read_after_the_results_and_at_the_end() -> None:
    state = RunState()

    async def interrupted(request: ModelRequest) -> Completion:
        state.steer(UserMessage("louder"))
        state.follow_up(UserMessage("and then?"))
        return calls(("echo", '{"text": "a"}'), ("echo", '{"text": "b"}'))

    with ScriptedModel(interrupted, words("A B"), words("nothing")) as model:
        outcome = await to_the_end(engine(model).run(run(), state))
    roles = [message.type for message in outcome.messages]
    assert roles == ["assistant", "tool", "tool", "user", "assistant", "user", "assistant"]
    assert (outcome.messages[3], outcome.messages[5]) == (UserMessage("louder"), UserMessage("and then?"))
    assert (outcome.text, outcome.steps) == ("nothing", 3)


async def test_what_is_said_while_the_model_answers_for_the_last_time_stays_in_the_queue() -> None:
    state = RunState()

    async def interrupted(request: ModelRequest) -> Completion:
        state.steer(UserMessage("too late"))
        return words("bye")

    with ScriptedModel(interrupted) as model:
        outcome = await to_the_end(engine(model, max_steps=1).run(run(), state))
    assert (outcome.text, list(state.steering)) == ("bye", [UserMessage("too late")])


async def test_a_reader_can_follow_from_an_answer_to_its_calls_and_their_results() -> None:
    @tool
    async def work(context: ToolContext) -> ToolResult:
        """Works."""
        context.progress("half")
        return ToolResult(context.response_id, details={"ms": 3})

    observer = RecordingObserver()
    with ScriptedModel(replace(calls(("work", "")), response_id="resp-7"), words("ok")) as model:
        outcome = await to_the_end(engine(model, work, observer=observer).run(run(), RunState()))
    told = [(event.type, getattr(event, "response_id", "")) for event in observer.events]
    assert told == [
        ("run_started", ""),
        ("step_finished", "resp-7"),
        ("tool_started", "resp-7"),
        ("tool_progressed", "resp-7"),
        ("tool_finished", "resp-7"),
        ("step_finished", "t1-2"),
        ("run_finished", ""),
    ]
    (progressed,), (finished,) = observer.of("tool_progressed"), observer.of("tool_finished")
    assert isinstance(progressed, ToolProgressed)
    assert isinstance(finished, ToolFinished)
    assert (progressed.partial, finished.details) == (ToolResult("half"), {"ms": 3})
    assert isinstance(outcome.messages[1], ToolMessage)
    assert outcome.messages[1].content == "resp-7"


async def test_hooks_after_a_cancelled_call_have_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    @tool
    async def slow() -> str:
        """Waits for ever."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async def hang(_: AfterCall) -> None:
        await asyncio.Event().wait()

    over, now = list[bool](), loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    tools = Toolset([slow], hooks=[Hook(after_call=hang)], clock=ManualClock())
    batch = Batch([ToolCall("x", "slow", "")])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(CallExecutor(tools).run(batch, [tool_context()]))
        await begun.wait()
        task.cancel()
        for seconds in (0.0, 0.49, 0.51):
            monkeypatch.setattr(loop, "time", lambda passed=seconds: now + passed)
            for _ in range(10):
                await asyncio.sleep(0)
            over.append(task.done())
    assert over == [False, False, True]
    assert "the call was cancelled" in results_of(batch)[0].content
