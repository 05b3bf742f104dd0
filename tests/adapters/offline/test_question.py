"""Finding the question and the results in a transcript."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image

from adapters.offline.question import DemoQuestion, Result, read_question, read_results
from tests.cases import each_case


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@each_case(
    ("content", "question"),
    [
        ("北京天气", "北京天气"),
        ("two\nlines", "two\nlines"),
        ("小明#1001: 北京天气", "北京天气"),
        ("小明#1001: 早\nuser2#2: 晚\nuser1#3: weather in Rome", "weather in Rome"),
        ("user1#3: write a function\n  that\n    reverses", "write a function\nthat\n  reverses"),
        ("小明 群主#1001: hi", "hi"),
        ("user1#3: a#4: b", "a#4: b"),
        ("user1#3: @bot hi", "hi"),
        ("user1#3: @bot#10001 hi", "hi"),
        ("user1#3: @小助手#10001 北京天气", "北京天气"),
        ("user1#3: @小助手 北京天气", "北京天气"),
        ("@bot北京天气", "北京天气"),
        ("user1#3: @bot", ""),
        ("user1#3:", ""),
        ("user1#3: ", ""),
        ("[群聊记录]\n小明#1: 早\n[提问 14:10]\nuser1#3: (没有文字)", ""),
        ("[提问]\nuser1#3: [引用 bot#10001 的「北京天气: 晴」] 谢谢", "谢谢"),
        ("[转发内容]\n  小明#1: 早\nuser1#3: hi", "hi"),
        ("[提问 14:10]\nuser1#3 ↩小明#1「北京#2: 天气」: hi\n[附图] 提问\n[此刻] 2026-11-22 星期日", "hi"),
        ([{"type": "text", "text": "user1#3: hi"}, {"type": "image_url", "image_url": {}}], "hi"),
        (None, ""),
        ("[提问 14:10]\n小明#2: @bot 北京天气\n[此刻]\n  2026-03-14 星期六，群「摸鱼」", "北京天气"),
        ("[群聊记录 14:02]\n阿澈#1: 早\n小明#2 ↩阿澈#1「周六: 去」: @阿澈#1 谢谢\n  再见", "谢谢\n再见"),
        ("小明#2 ↩我: 谢谢", "谢谢"),
    ],
)
def test_the_last_one_to_speak_asks(content: Any, question: str) -> None:
    assert read_question([user("before"), user(content)]).text == question


def test_nobody_asks_nothing() -> None:
    assert read_question([]) == DemoQuestion("", "en")


@each_case(
    ("system", "content", "language"),
    [
        ("你是机器人", "user1#3: hello", "en"),
        ("You are a bot", "小明#3: hello", "en"),
        ("You are a bot", "user1#3: 你好", "zh"),
        ("你是机器人", "user1#3: @bot", "zh"),
        ("You are a bot", "user1#3: @bot", "en"),
        ("你是机器人", "user1#3: [图片 i1] look at this\n[附图] 提问 i1", "en"),
        ("You are a bot", "user1#3: [picture i1] 看看这个", "zh"),
        ("You are a bot", "user1#3: [图片 i1]", "en"),
    ],
)
def test_the_answer_follows_the_language_of_the_question(system: str, content: str, language: str) -> None:
    assert read_question([{"role": "system", "content": system}, user(content)]).language == language


def test_without_words_the_answer_has_the_language_of_the_ones_before() -> None:
    asked = user("user1#3: hello"), {"role": "assistant", "content": "你好"}, user("user1#3: [图片 i1]")
    assert read_question([{"role": "system", "content": "你是机器人"}, *asked]).language == "en"


def test_pictures_are_those_of_the_question_and_what_tools_showed_since() -> None:
    out = io.BytesIO()
    Image.new("RGB", (320, 200)).save(out, "JPEG")
    urls = (
        f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}",
        "https://qq.example/1",
        "data:x;base64,?",
    )
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    asked = user([{"type": "text", "text": "user1#3: [picture i1] look"}, shown[0]])
    by_tool = user([{"type": "text", "text": "(pictures from the results of: look)"}, *shown[1:]])
    question = read_question([user(shown), asked, by_tool])
    assert (question.text, question.pictures) == ("[picture i1] look", ((320, 200), (0, 0), (0, 0)))


def test_only_what_came_after_the_question_counts() -> None:
    old = [user("old"), {"role": "assistant", "content": None, "tool_calls": [call("1", "get_weather", "{}")]},
           {"role": "tool", "tool_call_id": "1", "content": "old"}]  # fmt: skip
    assert read_results([*old, user("new")]) == []
    assert read_results(old) == [Result("get_weather", {}, "old")]


def test_results_are_told_apart_from_errors() -> None:
    messages = [
        user("?"),
        {"role": "assistant", "tool_calls": [call("1", "a", '{"x": 1}'), call("2", "b", "[]"), call("3", "c", "{")]},
        {"role": "tool", "tool_call_id": "1", "content": "fine"},
        {"role": "tool", "tool_call_id": "2", "content": "error: too slow [TOOL_TIMEOUT]"},
        {"role": "tool", "tool_call_id": "3", "content": "Error: no idea"},
        {"role": "tool", "tool_call_id": "4", "content": "whose is this"},
    ]
    assert read_results(messages) == [
        Result("a", {"x": 1}, "fine"),
        Result("b", {}, "error: too slow [TOOL_TIMEOUT]", failed=True, code="TOOL_TIMEOUT"),
        Result("c", {}, "Error: no idea", failed=True),
        Result("", {}, "whose is this"),
    ]


def test_calls_that_cannot_be_read_are_nobodys() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [{"id": 1}, None]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
    ]
    assert read_results(messages) == [Result("", {}, "x")]
