"""What we send is the intersection of what vendors take; what we read is the vendor's answer in our words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai.answer import Answer, RawCall
from adapters.openai.dialects import DIALECTS, PLAIN, Dialect
from adapters.openai.errors import classify
from adapters.openai.stream import AnswerReader
from adapters.openai.wire import Origin, read_answer, read_usage, write_request
from bot.domain.chat import (
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
from bot.domain.errors import ContextOverflow, ModelError, ModelOverloaded, ModelTransport, ToolUseFailed
from tests.adapters.openai.conftest import Exchange

ORIGIN = Origin("api.example", "m")
WEATHER = ToolSpec("get_weather", "The weather.", {"type": "object", "properties": {}})
CALL = ToolCall("c1", "get_weather", '{"city":"北京"}')
ROWS: Mapping[str, Dialect] = {row.name: row for row in reversed(DIALECTS)}


def write(*messages: Message, dialect: Dialect = PLAIN, origin: Origin = ORIGIN, **fields: Any) -> dict[str, Any]:
    request = ModelRequest(messages, **fields)
    body = orjson.loads(write_request(request, origin=origin, dialect=dialect, stream_options=True))
    assert isinstance(body, dict)
    return body


def read(answer: Answer) -> Completion:
    numbers = count(1)
    return read_answer(answer, origin=ORIGIN, new_id=lambda: f"new{next(numbers)}")


# --- domain -> wire -------------------------------------------------------------------------------


def test_a_request_asks_for_a_stream_and_for_nothing_that_some_vendor_refuses() -> None:
    """9"""
    assert write(SystemMessage("be kind"), UserMessage("hi")) == {
        "model": "m",
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_the_usage_is_not_asked_for_where_that_is_not_understood() -> None:
    """2.19"""
    body = write_request(ModelRequest(()), origin=ORIGIN, dialect=PLAIN, stream_options=False)
    assert orjson.loads(body) == {"model": "m", "messages": [], "stream": True}


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
    messages = write(UserMessage("look", images=(url, url)), UserMessage("", images=(url,)))["messages"]
    assert [message["content"] for message in messages] == [
        [{"type": "text", "text": "look"}, picture, picture],
        [picture],
    ]


def test_a_call_and_its_result_are_replayed() -> None:
    messages = write(AssistantMessage(tool_calls=(CALL,)), ToolMessage("c1", "get_weather", "sunny"))["messages"]
    function = {"name": "get_weather", "arguments": '{"city":"北京"}'}
    assert messages == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]


@pytest.mark.parametrize("arguments", ["", "null", "[1]", '{"a":', '"{}"', "{}{}"])
def test_3_9_arguments_that_are_no_object_go_back_as_an_empty_one(arguments: str) -> None:
    message = write(AssistantMessage(tool_calls=(replace(CALL, arguments=arguments),)))["messages"][0]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_6_9_an_empty_result_says_so() -> None:
    assert write(ToolMessage("c1", "f", ""))["messages"][0]["content"] == "(no output)"


@given(st.text(st.characters(categories=["Cs", "Ll", "Cc", "So"])))
def test_6_18_no_text_breaks_the_json(text: str) -> None:
    sent = write(UserMessage(text))["messages"][0]["content"]
    assert "\0" not in sent
    assert sent.encode().decode() == sent


@pytest.mark.parametrize(
    ("text", "sent"), [("a\0b", "ab"), ("a\ud83d!", "a\ufffd!"), ("\ud83d\ude00", "😀"), ("\\u0000", "\\u0000")]
)
def test_6_18_nul_goes_and_halves_of_characters_are_mended(text: str, sent: str) -> None:
    assert write(ToolMessage("c", "f", text))["messages"][0]["content"] == sent


@pytest.mark.parametrize(("name", "sent"), [("gemini", True), ("plain", True), ("openai", False), ("mistral", False)])
def test_5_vendor_fields_of_a_call_go_back_where_they_are_taken(name: str, sent: bool) -> None:
    call = replace(CALL, extras='{"extra_content":{"google":{"thought_signature":"s"}}}')
    written = write(AssistantMessage(tool_calls=(call,)), dialect=ROWS[name])["messages"][0]["tool_calls"][0]
    assert ("extra_content" in written) is sent
    assert written["id"] == "c1"


THOUGHT = Reasoning(
    "why", ORIGIN.endpoint, ORIGIN.model, "reasoning_content", '[{"type":"reasoning.text","text":"why"}]'
)
FOREIGN = replace(THOUGHT, endpoint="elsewhere.example")
OTHER_MODEL = replace(THOUGHT, model="m2")


@pytest.mark.parametrize(
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
    written = write(message, dialect=ROWS[name])["messages"][0]
    assert {key: value for key, value in written.items() if key.startswith("reasoning")} == fields


def test_5_reasoning_of_a_turn_without_calls_stays_here() -> None:
    assert write(AssistantMessage("a", (), THOUGHT), dialect=ROWS["deepseek"])["messages"] == [
        {"role": "assistant", "content": "a"}
    ]


# --- wire -> domain -------------------------------------------------------------------------------


@pytest.mark.parametrize(
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
    assert read(Answer(text="a", finish_reason=reason)).finish is finish


@pytest.mark.parametrize(
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
    assert read(Answer(tool_calls=(RawCall("a", "f", "{}"),), finish_reason=reason)).finish is finish


@pytest.mark.parametrize(
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
        read(Answer(text="half", finish_reason=reason, native_finish_reason=native))


def test_1_7_an_empty_answer_without_a_reason_is_a_failure_and_with_one_it_is_an_answer() -> None:
    with pytest.raises(ModelTransport):
        read(Answer(reasoning="hm", usage={"prompt_tokens": 1}))
    assert read(Answer(finish_reason="stop")).message == AssistantMessage()
    assert read(Answer(finish_reason="length")).finish is FinishReason.LENGTH


def test_1_10_a_refusal_is_text_and_flagged() -> None:
    completion = read(Answer(refusal="no", finish_reason="stop"))
    assert (completion.message.text, completion.refusal) == ("no", "no")


def test_1_11_the_legacy_call_is_a_call() -> None:
    completion = read(Answer(function_call=RawCall("", "f", "{}"), finish_reason="function_call"))
    assert completion.message.tool_calls == (ToolCall("new1", "f", "{}"),)


def test_2_10_and_2_14_every_call_gets_an_id_of_its_own() -> None:
    raw = tuple(RawCall(identity, "f", None) for identity in ("a", "", "a", "b"))
    completion = read(Answer(tool_calls=raw, finish_reason="tool_calls"))
    assert [call.id for call in completion.message.tool_calls] == ["a", "new1", "new2", "b"]
    assert {call.arguments for call in completion.message.tool_calls} == {""}


def test_4_7_a_call_without_a_name_is_dropped() -> None:
    raw = (RawCall("a", "", "{}"), RawCall("b", "f", "{}"))
    assert [call.id for call in read(Answer(tool_calls=raw)).message.tool_calls] == ["b"]
    assert read(Answer(tool_calls=raw[:1], text="a", finish_reason="stop")).finish is FinishReason.STOP
    with pytest.raises(ToolUseFailed):
        read(Answer(tool_calls=raw[:1], finish_reason="tool_calls"))


def test_reasoning_and_extras_remember_where_they_came_from() -> None:
    extras = {"extra_content": {"google": {"thought_signature": "s"}}}
    details = ({"type": "reasoning.text", "text": "hm"},)
    answer = Answer(
        reasoning="hm", reasoning_field="reasoning", reasoning_details=details, model="m-0711", id="r",
        tool_calls=(RawCall("a", "f", "{}", extras),), finish_reason="tool_calls",
    )  # fmt: skip
    completion = read(answer)
    assert completion.message.reasoning == Reasoning(
        "hm", "api.example", "m", "reasoning", '[{"type":"reasoning.text","text":"hm"}]'
    )
    assert orjson.loads(completion.message.tool_calls[0].extras) == extras
    assert (completion.model, completion.response_id) == ("m-0711", "r")


@pytest.mark.parametrize(
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
        ({"cost": "free", "prompt_tokens": "many", "completion_tokens": float("inf")}, Usage()),
    ],
)
def test_8_tokens_are_counted_under_every_name(usage: dict[str, Any], counts: Usage) -> None:
    assert read_usage(usage) == counts


def test_every_recorded_answer_is_a_completion_that_can_be_sent_back(recorded: tuple[Exchange, ...]) -> None:
    for exchange in recorded:
        if exchange.status != 200 or exchange.expect["error"]:
            assert isinstance(classify(exchange.status, exchange.body), ModelError)
            continue
        reader = AnswerReader()
        reader.feed(exchange.body)
        completion = read(reader.finish())
        assert len({call.id for call in completion.message.tool_calls}) == len(completion.message.tool_calls)
        assert completion.message.text == (exchange.expect["text"] or exchange.expect["refusal"])
        for dialect in DIALECTS:
            write(completion.message, dialect=dialect)
