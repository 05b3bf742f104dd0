from __future__ import annotations

import json

import pytest

from bot.domain.chat import AssistantMessage, ToolCall
from bot.prompt.tidying import tidy
from tests.bot.prompt.test_frames import FRAMES


def test_a_question_said_back_is_no_answer() -> None:
    message = AssistantMessage("北京明天的天气怎么样")
    assert tidy(FRAMES, message, question="北京明天的天气怎么样？").text == ""


def test_words_beside_a_call_may_be_the_question() -> None:
    message = AssistantMessage("北京明天的天气怎么样？", (ToolCall("1", "get_weather", "{}"),))
    assert tidy(FRAMES, message, question=message.text) is message


def sending(messages: object, **more: object) -> AssistantMessage:
    arguments = json.dumps({"messages": messages, **more}, ensure_ascii=False)
    return AssistantMessage("", (ToolCall("1", "send_message", arguments),))


LEAK, CLEAN = {"type": "plain", "text": "小霜(10001): 好"}, {"text": "好", "type": "plain"}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([LEAK, {"type": "image", "path": "a.png"}], [CLEAN, {"type": "image", "path": "a.png"}]),
        (LEAK, CLEAN),
        (json.dumps([LEAK]), json.dumps([CLEAN], ensure_ascii=False)),
        (LEAK | {"text": "小霜：好"}, CLEAN),
        (LEAK | {"text": "[引用 小明(777) 的「嗨」] 好"}, CLEAN),
    ],
)
def test_what_a_model_sends_is_cut_before_it_is_kept_in_every_form_the_tool_takes(given: object, left: object) -> None:
    tidied = tidy(FRAMES, sending(given, session="x"))
    assert json.loads(tidied.tool_calls[0].arguments) == {"messages": left, "session": "x"}


@pytest.mark.parametrize(
    "arguments", ["", "{", "[]", "null", "{}", '{"messages": 3}', '{"messages": "hi"}', '{"messages": [3]}', "[" * 9999]
)
def test_arguments_that_are_something_else_stay_as_they_came(arguments: str) -> None:
    message = AssistantMessage("", (ToolCall("1", "send_message", arguments),))
    assert tidy(FRAMES, message) is message


def test_a_clean_call_and_a_call_of_another_tool_stay_byte_for_byte() -> None:
    clean = AssistantMessage("", (ToolCall("1", "send_message", '{"messages" : [{"text":"好","type":"plain"}]}'),))
    other = AssistantMessage("", (ToolCall("1", "note", '{"messages": [{"type": "plain", "text": "小霜: 好"}]}'),))
    assert tidy(FRAMES, clean) is clean
    assert tidy(FRAMES, other) is other
