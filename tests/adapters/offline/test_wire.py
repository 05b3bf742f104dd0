"""The two forms of an answer."""

from __future__ import annotations

import json
from typing import Any

from adapters.offline.brain import DemoCall, Thought
from adapters.offline.server import MODEL, DemoReply, error, models

MESSAGES = [{"role": "user", "content": "hi"}]


def chunks(thought: Thought, *, include_usage: bool = False) -> list[dict[str, Any]]:
    events = list(DemoReply(thought, MESSAGES, created=7).events(include_usage=include_usage))
    assert events[-1] == b"data: [DONE]\n\n"
    assert all(event.startswith(b"data: {") and event.endswith(b"}\n\n") for event in events[:-1])
    return [json.loads(event.removeprefix(b"data: ")) for event in events[:-1]]


def test_words_come_in_pieces_and_end_with_a_reason() -> None:
    first, *middle, last = chunks(Thought("你好,这是一句比较长的话。"))
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(middle) > 1
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in middle) == "你好,这是一句比较长的话。"
    assert last["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert {(chunk["object"], chunk["created"], chunk["model"]) for chunk in (first, last)} == {
        ("chat.completion.chunk", 7, MODEL)
    }
    assert len({chunk["id"] for chunk in (first, *middle, last)}) == 1


def test_calls_come_in_pieces_their_names_once() -> None:
    calls = (DemoCall("get_weather", {"city": "北京"}), DemoCall("get_weather", {"city": "上海市"}))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(Thought(calls=calls))]
    fragments = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    for index, call in enumerate(calls):
        opening, *rest = [fragment for fragment in fragments if fragment["index"] == index]
        assert (opening["type"], opening["function"]) == ("function", {"name": call.name, "arguments": ""})
        assert all("id" not in fragment and "name" not in fragment["function"] for fragment in rest)
        assert json.loads("".join(fragment["function"]["arguments"] for fragment in rest)) == call.arguments


def test_usage_is_a_last_chunk_of_its_own_when_wanted() -> None:
    *_, finish, usage = chunks(Thought("hi"), include_usage=True)
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + usage["usage"]["completion_tokens"]
    assert "usage" not in chunks(Thought("hi"))[-1]


def test_the_whole_answer_says_the_same() -> None:
    words = DemoReply(Thought("hi"), MESSAGES, created=7).whole()
    assert words["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    ]
    called = DemoReply(Thought(calls=(DemoCall("x", {}),)), MESSAGES, created=7).whole()["choices"][0]
    assert (called["finish_reason"], called["message"]["content"]) == ("tool_calls", None)
    assert called["message"]["tool_calls"][0]["function"] == {"name": "x", "arguments": "{}"}


def test_ids_repeat_with_the_request_and_with_nothing_else() -> None:
    thought = Thought(calls=(DemoCall("x", {}), DemoCall("x", {})))

    def ids(messages: list[dict[str, Any]]) -> list[str]:
        whole = DemoReply(thought, messages, created=7).whole()
        return [whole["id"], *(call["id"] for call in whole["choices"][0]["message"]["tool_calls"])]

    assert ids(MESSAGES) == ids(MESSAGES)
    assert len({*ids(MESSAGES), *ids([*MESSAGES, *MESSAGES])}) == 6
    assert all(len(call_id) <= 40 for call_id in ids(MESSAGES))


def test_half_a_character_does_no_harm() -> None:
    broken = [{"role": "user", "content": "\ud83d"}]
    assert list(DemoReply(Thought("\ud83d"), broken, created=7).events(include_usage=True))


def test_errors_and_models_have_the_usual_form() -> None:
    assert error("no")["error"]["message"] == "no"
    assert [model["id"] for model in models()["data"]] == [MODEL]
