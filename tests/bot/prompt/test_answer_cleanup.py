from __future__ import annotations

import json
from functools import partial

from bot.policy.silence import keeps_silent
from bot.prompt.answer_cleanup import clean_message
from frostagent.types.messages import AssistantMessage, ToolCall
from tests.bot.prompt.test_frame_removal import FRAMES
from tests.cases import each_case


def test_a_question_said_back_is_no_answer() -> None:
    message = AssistantMessage("北京明天的天气怎么样")
    assert clean_message(FRAMES, message, question="北京明天的天气怎么样？").text == ""


def test_words_beside_a_call_may_be_the_question() -> None:
    message = AssistantMessage("北京明天的天气怎么样？", (ToolCall("1", "get_weather", "{}"),))
    assert clean_message(FRAMES, message, question=message.text) is message


def sending(messages: object, **more: object) -> AssistantMessage:
    arguments = json.dumps({"messages": messages, **more}, ensure_ascii=False)
    return AssistantMessage("", (ToolCall("1", "send_message", arguments),))


LEAK, CLEAN = {"type": "plain", "text": "小霜(10001): 好"}, {"text": "好", "type": "plain"}


@each_case(
    ("given", "left"),
    [
        ([LEAK, {"type": "image", "path": "a.png"}], [CLEAN, {"type": "image", "path": "a.png"}]),
        (LEAK, CLEAN),
        (json.dumps([LEAK]), json.dumps([CLEAN], ensure_ascii=False)),
        (LEAK | {"text": "小霜：好"}, CLEAN),
        (LEAK | {"text": "[引用 小明(777) 的「嗨」] 好"}, CLEAN),
        ([CLEAN | {"text": "\u202e好\x07\u2066"}], [CLEAN]),
        ([CLEAN | {"text": "一\r\n二"}], [CLEAN | {"text": "一\n二"}]),
    ],
)
def test_what_a_model_sends_is_cut_before_it_is_kept_in_every_form_the_tool_takes(given: object, left: object) -> None:
    tidied = clean_message(FRAMES, sending(given, session="x"))
    assert json.loads(tidied.tool_calls[0].arguments) == {"messages": left, "session": "x"}


@each_case(
    "arguments", ["", "{", "[]", "null", "{}", '{"messages": 3}', '{"messages": "hi"}', '{"messages": [3]}', "[" * 9999]
)
def test_arguments_that_are_something_else_stay_as_they_came(arguments: str) -> None:
    message = AssistantMessage("", (ToolCall("1", "send_message", arguments),))
    assert clean_message(FRAMES, message) is message


def test_a_clean_call_and_a_call_of_another_tool_stay_byte_for_byte() -> None:
    clean = AssistantMessage("", (ToolCall("1", "send_message", '{"messages" : [{"text":"好","type":"plain"}]}'),))
    other = AssistantMessage("", (ToolCall("1", "note", '{"messages": [{"type": "plain", "text": "小霜: 好"}]}'),))
    assert clean_message(FRAMES, clean) is clean
    assert clean_message(FRAMES, other) is other


def test_what_nobody_sees_and_other_line_ends_leave_an_answer() -> None:
    assert (
        clean_message(FRAMES, AssistantMessage("你\x00好\x07呀\x1b[31m红\u202e反\r\n👨\u200d👩")).text
        == "你好呀红反\n👨\u200d👩"
    )


SCRIPTS = ("می\u200cخواهم", "क्\u200dष", "葛\U000e0100城", "☺\ufe0e", "🏴\U000e0067\U000e0062\U000e007f")


@each_case("word", SCRIPTS)
def test_the_joiners_and_variants_of_a_script_stay_in_an_answer_and_in_what_is_sent(word: str) -> None:
    message = AssistantMessage(word)
    assert clean_message(FRAMES, message) is message
    assert clean_message(FRAMES, AssistantMessage(f"小霜(10001): {word}")).text == word
    sent = clean_message(FRAMES, sending([{"text": f"\u202e{word}", "type": "plain"}])).tool_calls[0]
    assert json.loads(sent.arguments) == {"messages": [{"text": word, "type": "plain"}]}


def test_an_answer_of_which_nothing_can_be_seen_is_none() -> None:
    assert clean_message(FRAMES, AssistantMessage("\u200b \u2060\n\u200d")).text == ""


def test_nothing_is_taken_out_of_code() -> None:
    code = "`\u202e` 和\n```\n\x1b[31m\r\n\u200f\n```"
    message = AssistantMessage(code)
    assert clean_message(FRAMES, message) is message


PLAIN = {"type": "plain", "text": "好"}


@each_case(
    ("given", "left"),
    [
        ({"messages": [PLAIN]}, "好"),
        ({"messages": [{"type": "quote"}, PLAIN, {"type": "text", "text": "的"}], "session": "", "last": True}, "好的"),
        ({"messages": [{"type": "image", "path": "a.png"}]}, ""),
        ({"messages": [LEAK]}, "好"),
        ({"messages": [PLAIN], "session": None}, "好"),
        ({"messages": [PLAIN], "session": "private:12345"}, ""),
    ],
)
def test_an_answer_that_is_written_as_a_call_of_send_message_is_its_words_where_they_are_for_this_chat(
    given: object, left: str
) -> None:
    assert clean_message(FRAMES, AssistantMessage(json.dumps(given, ensure_ascii=False, indent=1) + "\n")).text == left


@each_case(
    "given",
    [
        {"messages": [{"role": "user", "content": "hi"}]},
        {"messages": []},
        {"messages": ["好"]},
        {"messages": "好"},
        {"messages": [PLAIN], "model": "gpt"},
        {"messages": [PLAIN | {"type": "paragraph"}]},
    ],
)
def test_other_json_with_messages_in_it_stays_as_it_is(given: object) -> None:
    text = json.dumps(given, ensure_ascii=False)
    for said in (text, f"{text}}}", f"看：{text}"):
        message = AssistantMessage(said)
        assert clean_message(FRAMES, message) is message


def test_silence_that_is_sent_is_not_sent() -> None:
    silence = partial(keeps_silent, asked="几点？", weak=False)
    for text in ("（不回复）", "[SILENT]", "*No response*"):
        (call,) = clean_message(FRAMES, sending([{"type": "plain", "text": text}]), is_silence=silence).tool_calls
        assert json.loads(call.arguments) == {"messages": [{"type": "plain", "text": ""}]}, text
    for text in ("沉默", "七点"):
        message = sending([{"type": "plain", "text": text}])
        assert clean_message(FRAMES, message, is_silence=silence) is message
