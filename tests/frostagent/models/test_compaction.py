from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.compaction import (
    HEAD,
    LEAST_HISTORY,
    LONG,
    TAIL,
    history_room,
    prompt_room,
    shrink_request,
    trim_tool_results,
)
from frostagent.models.request_repairs import PICTURE_LEFT_OUT
from frostagent.models.tokens import estimate, estimate_message
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.cases import each_case
from tests.torture.model import faults

SYSTEM = SystemMessage("be kind")
QUESTION = UserMessage("and now?")


def looked(text: str, number: int = 0) -> tuple[Message, ...]:
    """A call and its result."""
    call = ToolCall(f"c{number}", "look", "{}")
    return AssistantMessage("", (call,)), ToolMessage(call.id, "look", text)


def wire(messages: tuple[Message, ...]) -> list[dict[str, object]]:
    """As the checker of transcripts reads them."""
    written: list[dict[str, object]] = []
    for message in messages:
        match message:
            case SystemMessage(text=text) | UserMessage(text=text):
                written.append({"role": message.type, "content": text})
            case AssistantMessage(text=text, tool_calls=calls):
                written.append(
                    {"role": "assistant", "content": text, "tool_calls": [{"id": call.id} for call in calls]}
                )
            case ToolMessage(call_id=call_id, content=content):
                written.append({"role": "tool", "tool_call_id": call_id, "content": content})
    return written


# --- old results ----------------------------------------------------------------------------------


def test_a_long_result_keeps_its_beginning_and_its_end_and_says_what_is_missing() -> None:
    call, result = looked("a" * 500 + "b" * 500)
    _, light = trim_tool_results((call, result))
    assert isinstance(light, ToolMessage)
    assert light.content == "a" * HEAD + "\n[400 characters left out]\n" + "b" * TAIL
    assert (light.call_id, light.name) == ("c0", "look")


def test_what_is_not_long_stays_the_very_same() -> None:
    messages = (UserMessage("x" * 5000), *looked("x" * LONG), AssistantMessage("x" * 5000))
    assert trim_tool_results(messages) is messages


TEXTS = st.text(st.sampled_from("a 好\n😀1."), max_size=30).flatmap(
    lambda text: st.integers(1, 120).map(lambda times: text * times)
)


@given(TEXTS)
def test_shortening_a_result_never_makes_it_more_and_is_done_once(text: str) -> None:
    light = trim_tool_results(looked(text))
    assert estimate_message(light[1]) <= estimate_message(looked(text)[1])
    assert trim_tool_results(light) is light


# --- requests -------------------------------------------------------------------------------------


def test_a_request_that_fits_is_left_alone() -> None:
    request = ModelRequest((SYSTEM, QUESTION))
    assert shrink_request(request, to=estimate(request)) is None


def test_results_of_earlier_rounds_shrink_first() -> None:
    request = ModelRequest((SYSTEM, UserMessage("one"), *looked("x" * 2000), AssistantMessage("a"), QUESTION))
    shrunk = shrink_request(request, to=estimate(request) - 100)
    assert shrunk is not None
    assert shrunk.messages == (*request.messages[:2], *trim_tool_results(request.messages[2:]))


def test_then_the_oldest_rounds_go() -> None:
    rounds = [(UserMessage(word), *looked("ok"), AssistantMessage("a" * 300)) for word in ("one", "two", "three")]
    request = ModelRequest((SYSTEM, *rounds[0], *rounds[1], *rounds[2], QUESTION, *looked("x" * 2000)))
    shrunk = shrink_request(request, to=estimate(request) - 100)
    assert shrunk == ModelRequest((SYSTEM, *rounds[2], QUESTION, *looked("x" * 2000)))


def test_then_the_results_of_the_question_itself_the_oldest_first() -> None:
    messages = (QUESTION, *looked("x" * 2000, 1), *looked("y" * 2000, 2))
    request = ModelRequest((SYSTEM, *messages))
    assert shrink_request(request, to=estimate(request) - 100) == ModelRequest(
        (SYSTEM, QUESTION, *trim_tool_results(messages[1:3]), *messages[3:])
    )
    tiny = shrink_request(request, to=0)
    assert tiny is not None
    assert all(len(m.content) < 200 for m in tiny.messages if isinstance(m, ToolMessage))
    assert tiny.messages[:2] == (SYSTEM, QUESTION)


def test_the_questions_pictures_go_last() -> None:
    question = UserMessage("look", images=("data:image/png;base64,AAAA",))
    request = ModelRequest((SYSTEM, UserMessage("one"), AssistantMessage("two"), question))
    shrunk = shrink_request(request, to=estimate(request) - 5)
    assert shrunk == ModelRequest((SYSTEM, question))
    assert shrink_request(request, to=500) == ModelRequest((SYSTEM, UserMessage(f"look\n{PICTURE_LEFT_OUT}")))


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    messages: list[Message] = [SYSTEM] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 5))):
        messages.append(UserMessage(f"q{number} " + draw(TEXTS)))
        steps = draw(st.integers(0, 3))
        for step in range(steps):
            ids = [f"{number}-{step}-{index}" for index in range(draw(st.integers(1, 3)))]
            messages.append(AssistantMessage("", tuple(ToolCall(id_, "look", "{}") for id_ in ids)))
            messages.extend(ToolMessage(id_, "look", draw(TEXTS)) for id_ in ids)
        messages.append(AssistantMessage("a " + draw(TEXTS)))
    question = UserMessage("latest " + draw(TEXTS))
    messages.append(question)
    for step in range(draw(st.integers(0, 2))):
        messages.extend(looked(draw(TEXTS), step))
    return ModelRequest(tuple(messages))


@given(requests(), st.integers(0, 2000))
def test_a_shrunk_request_is_valid_no_longer_and_as_short_as_asked_unless_the_question_is_longer(
    request: ModelRequest, to: int
) -> None:
    shrunk = shrink_request(request, to=to)
    if shrunk is None:
        assert estimate(request) <= to or not any(
            isinstance(m, ToolMessage) and len(m.content) > 200 for m in request.messages
        )
        return
    assert estimate(shrunk) < estimate(request)
    assert shrink_request(shrunk, to=to) is None
    with_system = shrunk.messages if shrunk.messages[0].type == "system" else (SYSTEM, *shrunk.messages)
    assert faults(wire(with_system)) == []
    users = [m for m in shrunk.messages if isinstance(m, UserMessage)]
    assert users[-1] == [m for m in request.messages if isinstance(m, UserMessage)][-1]
    assert [m for m in shrunk.messages if m.type == "system"] == [m for m in request.messages if m.type == "system"]
    assert estimate(shrunk) <= to or len(users) == 1


# --- room -----------------------------------------------------------------------------------------


@each_case(
    ("most", "window", "scale", "around", "room"),
    [
        (12_000, None, 1.0, 3000, 12_000),
        (12_000, 128_000, 1.0, 3000, 12_000),
        (12_000, None, 1.5, 3000, 8000),  # which the model counts as 12,000
        (12_000, 128_000, 0.8, 3000, 12_000),
        (12_000, 16_384, 1.0, 2288, 5000),  # 16384 - 4096 - 2288, and half of it is for the question
        (12_000, 16_384, 2.0, 2288, 1928),
        (12_000, 2048, 1.0, 3000, LEAST_HISTORY),
    ],
)
def test_the_history_has_what_the_operator_pays_for_where_the_window_has_so_much(
    most: float, window: int | None, scale: float, around: float, room: float
) -> None:
    assert history_room(most, window=window, scale=scale, around=around) == room


def test_the_answer_has_its_place_in_a_window() -> None:
    assert (prompt_room(128_000), prompt_room(4096)) == (123_904, 3072)
