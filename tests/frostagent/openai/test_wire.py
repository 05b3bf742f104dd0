"""What we send is the intersection of what vendors take; what we read is the vendor's answer in our words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.models.openai.answer import RawAnswer, RawCall
from frostagent.models.openai.dialects import DIALECTS, PLAIN, Dialect
from frostagent.models.openai.errors import classify
from frostagent.models.openai.history import Origin
from frostagent.models.openai.stream import AnswerReader
from frostagent.models.openai.wire import read_answer, read_usage, write_request
from frostagent.types.errors import ContextOverflow, ModelError, ModelOverloaded, ModelTransport, ToolUseFailed
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests.cases import each_case
from tests.frostagent.openai.conftest import Exchange

ORIGIN = Origin("api.example", "m")
WEATHER = ToolSpec("get_weather", "The weather.", {"type": "object", "properties": {}})
CALL = ToolCall("c1", "get_weather", '{"city":"北京"}')
ASKED = UserMessage("hi")
ROWS: Mapping[str, Dialect] = {row.name: row for row in reversed(DIALECTS)}


def write(*messages: Message, dialect: Dialect = PLAIN, origin: Origin = ORIGIN, **fields: Any) -> dict[str, Any]:
    request = ModelRequest(messages, **fields)
    body = orjson.loads(write_request(request, origin=origin, dialect=dialect, stream_options=True))
    assert isinstance(body, dict)
    return body


def read(answer: RawAnswer, *tools: ToolSpec, dialect: Dialect = PLAIN, asked: Message = ASKED) -> Completion:
    numbers, request = count(1), ModelRequest((asked,), tools)
    return read_answer(answer, request=request, origin=ORIGIN, dialect=dialect, new_id=lambda: f"new{next(numbers)}")


# --- domain -> wire -------------------------------------------------------------------------------


def test_a_request_asks_for_a_stream_and_for_nothing_that_some_vendor_refuses() -> None:
    """9"""
    assert write(SystemMessage("be kind"), UserMessage("hi")) == {
        "model": "m",
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_temperature_is_written_where_there_is_one() -> None:
    assert write(UserMessage("hi"), temperature=0.0)["temperature"] == 0.0


def test_the_usage_is_not_asked_for_where_that_is_not_understood() -> None:
    """2.19"""
    body = write_request(ModelRequest((ASKED,)), origin=ORIGIN, dialect=PLAIN, stream_options=False)
    assert orjson.loads(body) == {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def test_tools_are_written_flat() -> None:
    assert write(UserMessage("hi"), tools=(WEATHER,))["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "The weather.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]


def test_pictures_are_parts_and_text_alone_is_a_string() -> None:
    """6.16"""
    url = "data:image/png;base64,AA=="
    picture = {"type": "image_url", "image_url": {"url": url}}
    looks = (UserMessage("look", images=(url, url)), UserMessage("", images=(url,)))
    messages = write(*looks, dialect=ROWS["openai"])["messages"]
    assert [message["content"] for message in messages] == [
        [{"type": "text", "text": "look"}, picture, picture],
        [picture],
    ]


def test_a_call_and_its_result_are_replayed() -> None:
    messages = write(ASKED, AssistantMessage(tool_calls=(CALL,)), ToolMessage("c1", "get_weather", "sunny"))["messages"]
    function = {"name": "get_weather", "arguments": '{"city":"北京"}'}
    assert messages[1:] == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]


def test_every_history_is_prepared_before_it_leaves() -> None:
    messages = write(AssistantMessage(tool_calls=(CALL,)))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]


@given(st.text(st.characters(categories=["Cs", "Ll", "Cc", "So"]), min_size=1))
def test_6_18_no_text_breaks_the_json(text: str) -> None:
    sent = write(UserMessage("a" + text), tools=(ToolSpec("f", text, {"description": text}),))
    assert "\0" not in sent["messages"][0]["content"]
    assert "\0" not in sent["tools"][0]["function"]["parameters"]["description"]


def test_6_18_no_field_of_a_vendor_breaks_it_either() -> None:
    call = replace(CALL, extras='{"signature":"a\\u0000b"}')
    details = replace(THOUGHT, details='[{"type":"x","text":"a\\u0000b"}]')
    sent = write(ASKED, AssistantMessage("", (call,), details), dialect=ROWS["openrouter"])["messages"][1]
    assert (sent["tool_calls"][0]["signature"], sent["reasoning_details"][0]["text"]) == ("ab", "ab")


@each_case(("name", "sent"), [("gemini", False), ("plain", True), ("openai", True)])
def test_6_10_empty_parameters_are_left_out_where_they_are_refused(name: str, sent: bool) -> None:
    assert ("parameters" in write(ASKED, tools=(WEATHER,), dialect=ROWS[name])["tools"][0]["function"]) is sent


def test_4_8_a_history_with_calls_has_tools_where_it_must() -> None:
    history = (ASKED, AssistantMessage(tool_calls=(CALL,)), ToolMessage("c1", "get_weather", "sunny"))
    sent = write(*history, dialect=ROWS["anthropic"])
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_weather"]
    assert sent["tool_choice"] == "none"
    assert "tools" not in write(ASKED, dialect=ROWS["anthropic"])
    assert "tools" not in write(*history)
    assert "tool_choice" not in write(*history, tools=(WEATHER,), dialect=ROWS["anthropic"])
    assert write(*history, tools=(WEATHER,), calls=False)["tool_choice"] == "none"
    assert "tool_choice" not in write(*history, calls=False)


THOUGHT = Reasoning(
    "why", ORIGIN.endpoint, ORIGIN.model, "reasoning_content", '[{"type":"reasoning.text","text":"why"}]'
)
FOREIGN = replace(THOUGHT, endpoint="elsewhere.example")
OTHER_MODEL = replace(THOUGHT, model="m2")


@each_case(
    ("name", "reasoning", "fields"),
    [
        ("plain", THOUGHT, {}),
        ("groq", THOUGHT, {}),
        ("deepseek", THOUGHT, {"reasoning_content": "why"}),
        ("deepseek", None, {"reasoning_content": ""}),
        ("deepseek", FOREIGN, {"reasoning_content": ""}),
        ("kimi", OTHER_MODEL, {"reasoning_content": "."}),
        ("glm", THOUGHT, {"reasoning_content": "why"}),
        ("glm", None, {}),
        ("openrouter", THOUGHT, {"reasoning_details": [{"type": "reasoning.text", "text": "why"}]}),
        ("openrouter", FOREIGN, {}),
        ("openrouter", replace(THOUGHT, details=""), {}),
    ],
)
def test_5_reasoning_goes_back_only_to_whom_it_belongs(
    name: str, reasoning: Reasoning | None, fields: dict[str, Any]
) -> None:
    message = AssistantMessage("a", (CALL,), reasoning)
    written = write(ASKED, message, dialect=ROWS[name])["messages"][1]
    assert {key: value for key, value in written.items() if key.startswith("reasoning")} == fields


def test_5_reasoning_of_a_turn_without_calls_stays_here() -> None:
    history = (ASKED, AssistantMessage("a", (), THOUGHT), ASKED)
    assert write(*history, dialect=ROWS["deepseek"])["messages"][1] == {"role": "assistant", "content": "a"}


@each_case(
    ("name", "own", "signature"),
    [
        ("gemini", True, "s"),
        ("gemini", False, "skip_thought_signature_validator"),
        ("plain", True, "s"),
        ("plain", False, None),
        ("openai", True, None),
        ("mistral", True, None),
    ],
)
def test_5_vendor_fields_of_a_call_go_back_where_they_came_from(name: str, own: bool, signature: str | None) -> None:
    call = replace(CALL, extras='{"extra_content":{"google":{"thought_signature":"s"}}}')
    message = AssistantMessage(tool_calls=(call, replace(call, id="c2")), reasoning=THOUGHT if own else FOREIGN)
    first, second = write(ASKED, message, dialect=ROWS[name])["messages"][1]["tool_calls"]
    assert first.get("extra_content", {}).get("google", {}).get("thought_signature") == signature
    assert ("extra_content" in second) is (signature == "s")


# --- wire -> domain -------------------------------------------------------------------------------


@each_case(
    ("reason", "finish"),
    [
        ("stop", FinishReason.STOP),
        ("eos", FinishReason.STOP),
        ("end_turn", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("sensitive", FinishReason.CONTENT_FILTER),
        ("tool_calls", FinishReason.STOP),
        ("", FinishReason.UNKNOWN),
        (None, FinishReason.UNKNOWN),
        ("brand_new", FinishReason.UNKNOWN),
    ],
)
def test_1_7_finish_reasons_of_words(reason: str | None, finish: FinishReason) -> None:
    assert read(RawAnswer(text="a", finish_reason=reason)).finish is finish


@each_case(
    ("reason", "finish"),
    [
        ("stop", FinishReason.TOOL_CALLS),
        ("tool_calls", FinishReason.TOOL_CALLS),
        ("function_call", FinishReason.TOOL_CALLS),
        ("", FinishReason.TOOL_CALLS),
        (None, FinishReason.TOOL_CALLS),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
    ],
)
def test_1_6_finish_reasons_of_calls(reason: str | None, finish: FinishReason) -> None:
    assert read(RawAnswer(tool_calls=(RawCall("a", "f", "{}"),), finish_reason=reason)).finish is finish


@each_case(
    ("reason", "native", "kind"),
    [
        ("network_error", None, ModelTransport),
        ("insufficient_system_resource", None, ModelOverloaded),
        ("error", None, ModelOverloaded),
        ("stop", "MALFORMED_FUNCTION_CALL", ModelTransport),
        ("model_context_window_exceeded", None, ContextOverflow),
    ],
)
def test_1_8_some_finish_reasons_are_failures(reason: str, native: str | None, kind: type[ModelError]) -> None:
    with pytest.raises(kind):
        read(RawAnswer(text="half", finish_reason=reason, native_finish_reason=native))


def test_1_7_an_empty_answer_without_a_reason_is_a_failure_and_with_one_it_is_an_answer() -> None:
    with pytest.raises(ModelTransport):
        read(RawAnswer(reasoning="hm", usage={"prompt_tokens": 1}))
    assert read(RawAnswer(finish_reason="stop")).message == AssistantMessage()
    assert read(RawAnswer(finish_reason="length")).finish is FinishReason.LENGTH


def test_1_10_a_refusal_is_text_and_flagged() -> None:
    completion = read(RawAnswer(refusal="no", finish_reason="stop"))
    assert (completion.message.text, completion.refusal) == ("no", "no")


def test_1_11_the_legacy_call_is_a_call() -> None:
    completion = read(RawAnswer(function_call=RawCall("", "f", "{}"), finish_reason="function_call"))
    assert completion.message.tool_calls == (ToolCall("new1", "f", "{}"),)


def test_2_10_and_2_14_every_call_gets_an_id_of_its_own() -> None:
    raw = tuple(RawCall(identity, "f", None) for identity in ("a", "", "a", "b"))
    completion = read(RawAnswer(tool_calls=raw, finish_reason="tool_calls"))
    assert [call.id for call in completion.message.tool_calls] == ["a", "new1", "new2", "b"]
    assert {call.arguments for call in completion.message.tool_calls} == {""}


def test_4_7_a_call_without_a_name_is_dropped() -> None:
    raw = (RawCall("a", "", "{}"), RawCall("b", "f", "{}"))
    assert [call.id for call in read(RawAnswer(tool_calls=raw)).message.tool_calls] == ["b"]
    assert read(RawAnswer(tool_calls=raw[:1], text="a", finish_reason="stop")).finish is FinishReason.STOP
    with pytest.raises(ToolUseFailed):
        read(RawAnswer(tool_calls=raw[:1], finish_reason="tool_calls"))


@each_case("name", ["get_weather", "functions.get_weather", "default_api:get_weather", "get_weather<|x|>"])
def test_4_6_what_models_put_around_a_name_is_taken_off(name: str) -> None:
    [call] = read(RawAnswer(tool_calls=(RawCall("a", name, "{}"),)), WEATHER).message.tool_calls
    assert call.name == "get_weather"


@each_case("name", ["Get_Weather", "functions.other", "get_weather get_weather"])
def test_4_6_a_name_that_only_resembles_one_is_left_to_the_toolset(name: str) -> None:
    [call] = read(RawAnswer(tool_calls=(RawCall("a", name, "{}"),)), WEATHER).message.tool_calls
    assert call.name == name


def test_6_6_a_name_of_another_alphabet_comes_back_as_ours() -> None:
    tool = ToolSpec("天气.查询", "The weather.", {})
    sent = write(ASKED, tools=(tool,))["tools"][0]["function"]["name"]
    [call] = read(RawAnswer(tool_calls=(RawCall("a", sent, "{}"),)), tool).message.tool_calls
    assert call.name == "天气.查询"


LEAKED = '<tool_call>{"name": "get_weather", "arguments": {"city": "北京"}}</tool_call>'


def test_4_2_a_call_that_leaked_into_the_text_is_a_call() -> None:
    completion = read(RawAnswer(text=LEAKED, finish_reason="stop"), WEATHER)
    assert completion.message == AssistantMessage("", (ToolCall("new1", "get_weather", '{"city":"北京"}'),))
    assert completion.finish is FinishReason.TOOL_CALLS


def test_4_2_what_was_not_offered_cut_off_or_only_quoted_is_never_called() -> None:
    assert read(RawAnswer(text=LEAKED, finish_reason="stop")).message == AssistantMessage()
    for text, finish in ((LEAKED, "length"), (LEAKED, "content_filter"), (LEAKED[11:40], "length")):
        assert read(RawAnswer(text=text, finish_reason=finish), WEATHER).message == AssistantMessage()
    called = AssistantMessage("", (ToolCall("c", "get_weather", "{}"),))
    assert read(RawAnswer(text=LEAKED[11:40], finish_reason="stop"), asked=called).message == AssistantMessage()
    asked = UserMessage(f"repeat: {LEAKED}")
    assert read(RawAnswer(text=LEAKED, finish_reason="stop"), WEATHER, asked=asked).message == AssistantMessage(LEAKED)
    strict = ROWS["openai"]
    assert read(RawAnswer(text=LEAKED), WEATHER, dialect=strict).message == AssistantMessage(LEAKED)


def test_4_4_a_leaked_call_that_cannot_be_read_may_be_made_again() -> None:
    with pytest.raises(ToolUseFailed):
        read(RawAnswer(text="<tool_call>{oops</tool_call>", finish_reason="stop"), WEATHER)


def test_5_an_answer_may_be_in_the_reasoning() -> None:
    answer = RawAnswer(reasoning="42", reasoning_field="reasoning", finish_reason="stop")
    assert read(answer, dialect=ROWS["stepfun"]).message == AssistantMessage("42")
    assert read(answer).message.text == ""


def test_reasoning_and_extras_remember_where_they_came_from() -> None:
    extras = {"extra_content": {"google": {"thought_signature": "s"}}}
    details = ({"type": "reasoning.text", "text": "hm"},)
    answer = RawAnswer(
        reasoning="hm", reasoning_field="reasoning", reasoning_details=details, model="m-0711", id="r",
        tool_calls=(RawCall("a", "f", "{}", extras),), finish_reason="tool_calls",
    )  # fmt: skip
    completion = read(answer)
    assert completion.message.reasoning == Reasoning(
        "hm", "api.example", "m", "reasoning", '[{"type":"reasoning.text","text":"hm"}]'
    )
    assert orjson.loads(completion.message.tool_calls[0].extras) == extras
    assert (completion.model, completion.response_id) == ("m-0711", "r")


@each_case(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": None, "completion_tokens_details": None}, Usage()),
        ({"prompt_tokens_details": {"cached_tokens": 3}, "cached_tokens": 4}, Usage(cached=3)),
        ({"prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 4}, Usage(cached=4)),
        ({"cached_tokens": 5}, Usage(cached=5)),
        ({"cache_read_input_tokens": 6}, Usage(cached=6)),
        ({"num_cached_tokens": 7}, Usage(cached=7)),
        ({"completion_tokens_details": {"reasoning_tokens": 8}}, Usage(reasoning=8)),
        ({"reasoning_tokens": 9}, Usage(reasoning=9)),
        ({"cost": 0.5}, Usage(cost=0.5)),
        ({"cost": {"total_cost": 0.25}}, Usage(cost=0.25)),
        ({"cost": {"usd": 0.125}}, Usage(cost=0.125)),
        ({"cost_in_usd_ticks": 2733250}, Usage(cost=0.000273325)),
        ({"cost": float("nan")}, Usage()),
        ({"cost": -1, "prompt_tokens": -1}, Usage()),
        ({"cost": 10**400, "cost_in_usd_ticks": 10**400, "prompt_tokens": 10**400}, Usage()),
        ({"cost": True, "prompt_tokens": True}, Usage()),
        ({"prompt_tokens": 1e30}, Usage(2**53)),
        ({"cost": "free", "prompt_tokens": "many", "completion_tokens": float("inf")}, Usage()),
    ],
)
def test_8_tokens_are_counted_under_every_name(usage: dict[str, Any], counts: Usage) -> None:
    assert read_usage(usage) == counts


def test_every_recorded_answer_is_a_completion(recorded: tuple[Exchange, ...]) -> None:
    for exchange in recorded:
        if exchange.status != 200 or exchange.expect["error"]:
            assert isinstance(classify(exchange.status, exchange.body), ModelError)
            continue
        reader = AnswerReader()
        reader.feed(exchange.body)
        completion = read(reader.finish())
        assert len({call.id for call in completion.message.tool_calls}) == len(completion.message.tool_calls)
        if "<" not in exchange.expect["text"]:
            assert completion.message.text == (exchange.expect["text"] or exchange.expect["refusal"])
