from __future__ import annotations

from bot.domain.chat import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from bot.domain.events import Conversation
from bot.domain.result import ToolResult
from bot.domain.run import Asker, PendingCall, Stop, SuspendedRun
from bot.flow import MAX_RESULTS
from bot.policy.repeats import key_of
from bot.running import RunState


def test_what_people_say_is_taken_in_as_one_message_and_makes_every_call_new() -> None:
    state, key = RunState(), key_of("look", {})
    state.tally.repeats.judge(key)
    state.tally.repeats.keep(key, ToolResult("old"))
    state.tally.repeats.next_step()
    state.steer(UserMessage("wait"))
    state.follow_up(UserMessage("and then?", ("x",)))
    assert state.listen(state.steering, state.follow_ups)
    assert state.messages == [UserMessage("wait\nand then?", ("x",))]
    assert state.tally.repeats.judge(key) is None


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
        conversation=Conversation(1, "group", 2),
        asker=Asker(1),
        messages=(AssistantMessage("", (ToolCall("a", "look", ""),)), ToolMessage("a", "look", "x" * 100)),
        message=AssistantMessage("", (call, ToolCall("c", "look", ""))),
        answers=(PendingCall(call, "Really?", 1e9, ""), ToolMessage("c", "look", "y" * 10)),
        usage=Usage(prompt=3),
        steps=2,
    )
    state = RunState(messages=[UserMessage("old")])
    state.restore(suspended)
    assert (tuple(state.messages), state.usage, state.steps) == (suspended.messages, Usage(prompt=3), 2)
    assert state.tally.left == MAX_RESULTS - 110
