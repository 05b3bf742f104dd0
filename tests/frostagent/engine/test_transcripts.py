from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from frostagent.engine.run_state import INTERRUPTED, close_interrupted, close_suspended
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage
from frostagent.types.runs import Asker, PendingCall, SuspendedRun
from tests.fakes import GROUP

QUESTION = UserMessage("hi")
TWO = AssistantMessage("", (ToolCall("a", "look", "{}"), ToolCall("b", "mail", "{}")))
ONE = AssistantMessage("wait", (ToolCall("a", "look", "{}"),))
SEEN = ToolMessage("a", "look", "seen")
SENT = ToolMessage("b", "mail", "sent")
NEVER_SEEN = ToolMessage("a", "look", INTERRUPTED, is_error=True, code="TOOL_UNAVAILABLE")
NEVER_SENT = ToolMessage("b", "mail", INTERRUPTED, is_error=True, code="TOOL_UNAVAILABLE")


def is_valid(messages: Sequence[Message]) -> bool:
    """Each call has its one result, in call order, right after the message that made it, and there is no other."""
    open_calls: list[ToolCall] = []
    for message in messages:
        match message:
            case ToolMessage():
                if not open_calls:
                    return False
                call = open_calls.pop(0)
                if (message.call_id, message.name) != (call.id, call.name):
                    return False
            case _ if open_calls:
                return False
            case AssistantMessage(tool_calls=calls):
                open_calls = list(calls)
            case _:
                pass
    return not open_calls


def test_the_words_are_those_of_the_agreement() -> None:
    assert INTERRUPTED == "error: unavailable — interrupted [TOOL_UNAVAILABLE]"


def test_calls_without_a_result_get_one_and_what_is_there_stays() -> None:
    assert close_interrupted([QUESTION, TWO]) == (QUESTION, TWO, NEVER_SEEN, NEVER_SENT)
    assert close_interrupted([TWO, SENT]) == (TWO, NEVER_SEEN, SENT)
    assert close_interrupted([ONE, SEEN, TWO, SEEN]) == (ONE, SEEN, TWO, SEEN, NEVER_SENT)


def test_results_are_put_in_call_order() -> None:
    assert close_interrupted([TWO, SENT, SEEN]) == (TWO, SEEN, SENT)


def test_orphans_doubles_and_results_of_an_earlier_step_are_dropped() -> None:
    assert close_interrupted([SEEN, QUESTION, SENT]) == (QUESTION,)
    assert close_interrupted([ONE, SEEN, SENT, ToolMessage("a", "look", "again")]) == (ONE, SEEN)
    assert close_interrupted([ONE, AssistantMessage("so"), SEEN]) == (ONE, NEVER_SEEN, AssistantMessage("so"))
    assert close_interrupted([ONE, ToolMessage("a", "mail", "sent")]) == (ONE, NEVER_SEEN)


def test_two_calls_of_one_id_take_two_results() -> None:
    twice = AssistantMessage("", ONE.tool_calls * 2)
    again = ToolMessage("a", "look", "again")
    assert close_interrupted([twice, SEEN, again]) == (twice, SEEN, again)
    assert close_interrupted([twice, SEEN]) == (twice, SEEN, NEVER_SEEN)


def test_an_empty_transcript_is_whole() -> None:
    assert close_interrupted([]) == ()


def test_a_suspended_run_that_never_goes_on_keeps_the_results_it_had() -> None:
    suspended = SuspendedRun(
        run_id="t1",
        conversation=str(GROUP),
        asker=Asker("777"),
        messages=(ONE, SEEN),
        message=TWO,
        answers=(PendingCall(TWO.tool_calls[0], "Look?", 1e9, ""), SENT),
        usage=Usage(),
        steps=2,
    )
    assert close_suspended(suspended) == (ONE, SEEN, TWO, NEVER_SEEN, SENT)


IDS, NAMES = st.sampled_from(["a", "b", "c", ""]), st.sampled_from(["look", "mail"])
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, st.just("hi")),
    st.builds(AssistantMessage, st.just("so")),
    st.builds(
        lambda made: AssistantMessage("", tuple(ToolCall(id_, name, "{}") for id_, name in made)),
        st.lists(st.tuples(IDS, NAMES), min_size=1, max_size=4),
    ),
    st.builds(ToolMessage, IDS, NAMES, st.sampled_from(["x", "y"]), st.booleans()),
)


@given(st.lists(MESSAGES, max_size=12))
def test_whatever_is_put_in_comes_out_valid_with_nothing_but_results_changed(messages: list[Message]) -> None:
    closed = close_interrupted(messages)
    assert is_valid(closed)
    assert close_interrupted(closed) == closed
    others = [message for message in messages if not isinstance(message, ToolMessage)]
    assert [message for message in closed if not isinstance(message, ToolMessage)] == others
    if is_valid(messages):
        assert closed == tuple(messages)


@st.composite
def whole_transcripts(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = [QUESTION]
    for step in range(draw(st.integers(0, 4))):
        names = draw(st.lists(NAMES, min_size=1, max_size=3))
        calls = tuple(ToolCall(f"c{index}", name, "{}") for index, name in enumerate(names))
        messages.append(AssistantMessage("", calls))
        messages += [ToolMessage(call.id, call.name, f"{step} {call.id}") for call in calls]
    return messages


@given(whole_transcripts(), st.data())
def test_of_damage_only_what_is_gone_is_lost(messages: list[Message], data: st.DataObject) -> None:
    """Results lost, doubled and swapped within their step: each one that is left is where it was."""
    kept = [m for m in messages if not isinstance(m, ToolMessage) or data.draw(st.booleans())]
    damaged: list[Message] = []
    waiting: list[Message] = []
    for message in [*kept, QUESTION]:
        if isinstance(message, ToolMessage):
            waiting += [message] * data.draw(st.integers(1, 2))
        else:
            damaged += [*data.draw(st.permutations(waiting)), message]
            waiting = []
    expected = [
        ToolMessage(m.call_id, m.name, INTERRUPTED, is_error=True, code="TOOL_UNAVAILABLE")
        if isinstance(m, ToolMessage) and m not in kept
        else m
        for m in messages
    ]
    assert close_interrupted(damaged) == (*expected, QUESTION)


@given(whole_transcripts(), st.data())
def test_a_transcript_cut_off_anywhere_keeps_all_before_the_cut(messages: list[Message], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(messages)))
    closed = close_interrupted(messages[:cut])
    assert closed[:cut] == tuple(messages[:cut])
    assert all(isinstance(message, ToolMessage) and message.content == INTERRUPTED for message in closed[cut:])
