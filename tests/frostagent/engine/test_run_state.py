from __future__ import annotations

from bot.core.conversation import Conversation
from frostagent.engine.budget import Budget, Limits
from frostagent.engine.call_state import MAX_RESULTS, call_key
from frostagent.engine.engine import may_request
from frostagent.engine.run_state import Run, RunState
from frostagent.models.tokens import estimate
from frostagent.types.messages import (
    AssistantMessage,
    Counted,
    ModelRequest,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker, PendingCall, Stop, SuspendedRun
from tests.fakes import GROUP


def test_what_people_say_is_taken_in_as_one_message_and_makes_every_call_new() -> None:
    state, key = RunState(), call_key("look", {})
    state.totals.repeats.judge(key)
    state.totals.repeats.keep(key, ToolResult("old"))
    state.totals.repeats.next_step()
    state.steer(UserMessage("wait"))
    state.follow_up(UserMessage("and then?", ("x",)))
    assert state.listen(state.steering, state.follow_ups)
    assert state.messages == [UserMessage("wait\nand then?", ("x",))]
    assert state.totals.repeats.judge(key) is None


def test_what_is_said_behind_something_said_is_one_message_with_it() -> None:
    state = RunState(messages=[UserMessage("wait", sources=("1",))])
    state.steer(UserMessage("go", sources=("2",)))
    assert state.listen(state.steering)
    assert state.messages == [UserMessage("wait\ngo", sources=("1", "2"))]


def test_where_nobody_said_anything_nothing_changes() -> None:
    state = RunState()
    assert not state.listen(state.steering, state.follow_ups)
    assert state == RunState()


def test_how_it_ends_holds_all_that_was_done() -> None:
    state = RunState(messages=[UserMessage("hi")], steps=2)
    outcome = state.outcome(Stop.FAILED, error="broken")
    assert (outcome.messages, outcome.steps, outcome.error, outcome.text) == ((UserMessage("hi"),), 2, "broken", "")


def test_after_a_wait_there_is_as_much_room_for_results_as_before() -> None:
    call = ToolCall("b", "mail", "")
    suspended = SuspendedRun(
        run_id="t1",
        conversation=str(Conversation(1, "group", 2)),
        asker=Asker("1"),
        messages=(AssistantMessage("", (ToolCall("a", "look", ""),)), ToolMessage("a", "look", "x" * 100)),
        message=AssistantMessage("", (call, ToolCall("c", "look", ""))),
        answers=(PendingCall(call, "Really?", 1e9, ""), ToolMessage("c", "look", "y" * 10)),
        usage=Usage(prompt=3),
        steps=2,
    )
    state = RunState(messages=[UserMessage("old")])
    state.restore(suspended)
    assert (tuple(state.messages), state.usage, state.steps) == (suspended.messages, Usage(prompt=3), 2)
    assert state.totals.left == MAX_RESULTS - 110


def test_the_last_request_a_budget_has_room_for_ends_the_run_and_after_it_there_is_none() -> None:
    run = Run(
        id="r",
        conversation=str(GROUP),
        asker=Asker("1"),
        transcript=(UserMessage("hi"),),
        share=Budget(Limits(2)).share(),
    )
    state = RunState()
    assert may_request(run, state, ())
    assert not state.totals.is_over
    assert may_request(run, state, ())
    assert state.totals.is_over
    assert not may_request(run, state, ())


def test_a_request_is_estimated_with_what_was_said_and_its_tools_where_tokens_count() -> None:
    tools = (ToolSpec("look", "Looks.", {"type": "object", "properties": {}}),)
    budget = Budget(Limits(tokens=10**6))
    run = Run(id="r", conversation=str(GROUP), asker=Asker("1"), transcript=(UserMessage("hi"),), share=budget.share())
    state = RunState([AssistantMessage("ho")])
    may_request(run, state, tools)
    assert budget.spent.tokens == estimate(ModelRequest((UserMessage("hi"), AssistantMessage("ho")), tools))


def test_of_a_request_what_the_transcript_has_counted_is_known() -> None:
    transcript = (UserMessage("hi"), AssistantMessage("ho"))
    counted = Counted(1, transcript[1:], 500.0)
    budget = Budget(Limits(tokens=10**6))
    run = Run(
        id="r",
        conversation=str(GROUP),
        asker=Asker("1"),
        transcript=transcript,
        counted=counted,
        share=budget.share(),
        temperature=0.5,
    )
    request = run.request((*transcript, UserMessage("and?")), ())
    assert (request.counted, request.temperature, request.allowance) == (counted, 0.5, run.share)
    may_request(run, RunState([UserMessage("and?")]), ())
    assert budget.spent.tokens == estimate(request) > 500


def test_a_run_without_a_budget_has_one_of_its_own_without_limits() -> None:
    runs = [Run(id="r", conversation=str(GROUP), asker=Asker("1"), transcript=()) for _ in range(2)]
    assert runs[0].share.budget is not runs[1].share.budget
