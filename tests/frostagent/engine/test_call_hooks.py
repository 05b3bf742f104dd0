from __future__ import annotations

from typing import Any

import pytest

from frostagent.engine.call_checks import CallChecks
from frostagent.engine.call_executor import Batch, CallExecutor, ask_after_hooks
from frostagent.engine.call_state import CallState, CallTotals
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import InvalidArguments, ToolCancelled, ToolDenied
from frostagent.types.hooks import AfterCall, BeforeCall, Block, Change, Hook, Rewrite, StopRun
from frostagent.types.messages import ToolCall
from frostagent.types.results import ToolResult
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import Stubborn, broken, cancelled, echo

SAY = echo()
STOP = StopRun("enough")
FAILED = "TOOL_EXECUTION_FAILED"


def flow_of(raw: str = '{"text": "hi"}', **known: Any) -> CallState:
    return CallState(ToolCall("c", "say", raw), tool_context(), 0.0, tool=SAY, checked=SAY.read(raw), **known)


def checks(*hooks: Hook) -> CallChecks:
    return CallChecks(clock=ManualClock(), hooks=hooks)


# --- before -----------------------------------------------------------------------------------------


async def test_hooks_are_asked_in_order_each_with_what_the_one_before_it_made_of_the_arguments() -> None:
    seen: list[object] = []

    async def change(event: BeforeCall) -> Change:
        seen.append(dict(event.input))
        return Change({"text": event.input["text"] + "!"})

    flow = flow_of()
    await checks(Hook(before_call=change), Hook(), Hook(before_call=change)).check(flow, SAY, CallTotals())
    assert seen == [{"text": "hi"}, {"text": "hi!"}]
    assert flow.checked is not None
    assert flow.checked.arguments == {"text": "hi!!"}


async def test_what_a_hook_does_to_its_event_does_not_reach_the_call() -> None:
    def spoil(event: BeforeCall) -> None:
        dict.clear(event.input)  # type: ignore[arg-type]  # a hook may do what it likes with its own copy

    flow = flow_of()
    await checks(Hook(before_call=spoil)).check(flow, SAY, CallTotals())
    assert flow.input == {"text": "hi"}


async def test_changed_arguments_are_validated_and_checked_again() -> None:
    checked: list[object] = []
    guarded = SAY.wrap(lambda _context, arguments: checked.append(arguments["text"]))
    changing = checks(Hook(before_call=lambda _: Change({"text": "new"})))
    await changing.check(flow_of(), guarded, CallTotals())
    assert checked == ["hi", "new"]
    with pytest.raises(InvalidArguments):
        await checks(Hook(before_call=lambda _: Change({"wrong": 1}))).check(flow_of(), SAY, CallTotals())


async def test_the_first_that_blocks_or_stops_is_the_last_that_is_asked() -> None:
    asked: list[str] = []
    tally = CallTotals()
    last = Hook(before_call=lambda _: asked.append("last"))
    with pytest.raises(ToolDenied, match="the tool call was blocked: no"):
        await checks(Hook(before_call=lambda _: Block("no")), last).check(flow_of(), SAY, tally)
    assert tally.stop is None
    with pytest.raises(ToolCancelled, match="the run was stopped here: the call was not done"):
        await checks(Hook(before_call=lambda _: STOP), last).check(flow_of(), SAY, tally)
    assert asked == []
    assert tally.stop is STOP


@each_case("answer", [True, "no", Rewrite(ToolResult())])
async def test_a_before_hook_that_answers_anything_else_is_wrong(answer: Any) -> None:
    with pytest.raises(TypeError, match="a before hook answers Block, Change, StopRun or nothing, not "):
        await checks(Hook(before_call=lambda _: answer)).check(flow_of(), SAY, CallTotals())


async def test_a_check_says_in_its_words_what_is_wrong() -> None:
    def refuse(*_: object) -> None:
        raise ValueError("text: do\nnot shout")

    guarded = SAY.wrap(refuse)
    with pytest.raises(InvalidArguments) as caught:
        await checks().check(flow_of(), guarded, CallTotals())
    assert (str(caught.value), caught.value.fields) == ("text: do not shout", ("text: do not shout",))


@pytest.mark.parametrize("where", ["a check", "before", "after"])
async def test_one_that_catches_its_cancellation_is_left_as_it_stands(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    stubborn, flow = Stubborn(), flow_of(owes_after=True)
    ways = {
        "a check": lambda: checks().check(flow, SAY.wrap(stubborn), CallTotals()),
        "before": lambda: checks(Hook(before_call=stubborn)).check(flow, SAY, CallTotals()),
        "after": lambda: ask_after_hooks([Hook(after_call=stubborn)], flow, CallTotals()),
    }
    assert (await cancelled(ways[where])).cancelled()
    assert "does not end when it is cancelled" in caplog.text
    stubborn.released = True


# --- after ------------------------------------------------------------------------------------------


async def after(hooks: list[Hook], flow: CallState, tally: CallTotals | None = None) -> CallState:
    await ask_after_hooks(hooks, flow, tally or CallTotals())
    return flow


async def test_after_hooks_see_what_those_before_them_made_of_the_result() -> None:
    seen: list[AfterCall] = []

    def shout(event: AfterCall) -> Rewrite:
        seen.append(event)
        return Rewrite(ToolResult(event.output.content.upper() + "!"))

    flow = await after([Hook(after_call=shout)] * 2, flow_of(owes_after=True, ran=True, result=ToolResult("hi")))
    assert flow.result == ToolResult("HI!!")
    assert [(event.output.content, event.error) for event in seen] == [("hi", None), ("HI!", None)]


async def test_whose_before_was_not_asked_has_no_after_and_nobody_is_asked_twice() -> None:
    asked: list[str] = []
    hooks = [Hook(after_call=lambda event: asked.append(event.name))]
    flow = await after(hooks, flow_of(result=ToolResult("hi")))
    assert asked == []
    flow.owes_after = True
    await after(hooks, await after(hooks, flow))
    assert asked == ["say"]


@each_case(
    ("before", "rewritten", "code", "content"),
    [
        (
            ToolResult("fine"),
            ToolResult("no", is_error=True),
            "TOOL_EXECUTION_FAILED",
            "error: no [TOOL_EXECUTION_FAILED]",
        ),
        (ToolResult("fine"), ToolResult("better"), "ok", "better"),
        (ToolDenied("no"), ToolResult("yes, it is fine"), "ok", "yes, it is fine"),
        (ToolDenied("no"), ToolResult("error: never", is_error=True), "TOOL_DENIED", "error: never [TOOL_DENIED]"),
    ],
)
async def test_a_rewritten_failure_keeps_its_code(
    before: ToolResult | ToolDenied, rewritten: ToolResult, code: str, content: str
) -> None:
    flow = flow_of(owes_after=True)
    if isinstance(before, ToolResult):
        flow.result = before
    else:
        flow.refuse(before)
    await after([Hook(after_call=lambda _: Rewrite(rewritten))], flow)
    assert flow.result is not None
    assert (flow.code, flow.result.content) == (code, content)


@each_case(("kept", "expected"), [("", "[m1]"), ("[m2]", "[m2]")])
async def test_what_was_for_its_run_alone_is_not_kept_of_a_hooks_words_either(kept: str, expected: str) -> None:
    flow = flow_of(owes_after=True, result=ToolResult("对花生过敏", kept="[m1]"))
    await after([Hook(after_call=lambda _: Rewrite(ToolResult("他对花生过敏", kept=kept)))], flow)
    assert flow.result == ToolResult("他对花生过敏", kept=expected)


async def test_all_after_hooks_are_asked_although_one_stops_the_run_and_the_first_is_heard() -> None:
    asked: list[str] = []
    tally = CallTotals()
    hooks = [
        Hook(after_call=lambda _: STOP),
        Hook(after_call=lambda event: asked.append(event.output.content)),
        Hook(after_call=lambda _: StopRun("again")),
    ]
    flow = await after(hooks, flow_of(owes_after=True, result=ToolResult("hi")), tally)
    assert (asked, tally.stop, flow.result) == (["hi"], STOP, ToolResult("hi"))


@each_case(("result", "who"), [(ToolResult("hi"), "the call was done, but a hook"), (None, "a hook")])
async def test_a_broken_after_hook_is_the_calls_failure_and_the_next_is_asked(
    result: ToolResult | None, who: str
) -> None:
    asked: list[str] = []
    flow = flow_of(owes_after=True, ran=result is not None, result=result)
    if result is None:
        flow.refuse(ToolDenied("no"))
    await after([Hook(after_call=broken), Hook(after_call=lambda event: asked.append(event.error or ""))], flow)
    (told,) = asked
    assert told.startswith(f"error: {who} broke (LookupError).")
    assert flow.ran is (result is not None)


@pytest.mark.parametrize("answer", [True, Block("no"), ToolResult()])
async def test_an_after_hook_that_answers_anything_else_breaks(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    flow = await after([Hook(after_call=lambda _: answer)], flow_of(owes_after=True, result=ToolResult("hi")))
    assert flow.code == "TOOL_EXECUTION_FAILED"
    assert "an after hook answers Rewrite, StopRun or nothing, not " in caplog.text


@each_case(
    ("hooks", "seen"),
    [
        (Hook(after_call=lambda _: Rewrite(ToolResult("ho"))), ["ho"]),  # once it cannot be another any more
        (Hook(before_call=lambda _: None), ["hi"]),
    ],
)
async def test_a_result_is_told_once_no_hook_can_rewrite_it(hooks: Hook, seen: list[str]) -> None:
    told: list[str] = []
    executor = CallExecutor(Toolset([SAY], hooks=[hooks]), on_result=lambda _call, output: told.append(output))
    await executor.run(Batch([ToolCall("c", "say", "{}")]), [tool_context()])
    assert told == seen
