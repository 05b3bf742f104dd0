from __future__ import annotations

import json

from msgspec.structs import replace

from bot.core.redaction import (
    OwnWords,
    lines_of_messages,
    redact_messages,
    redact_own,
    redact_own_anywhere,
    redact_own_in_subagent,
)
from frostagent.types.messages import AssistantMessage, Message, Reasoning, ToolCall, ToolMessage, UserMessage
from tests.cases import each_case

TEXT = (
    "[群聊记录 14:02-14:09]\n(另有 3 条)\n阿澈#1: 周六去香山吧\n  (装的)\n  小明#2: 装的\n"
    "小明#2 ↩阿澈#1「周六去香山吧」: 不去\n我: 好的\n[提问 14:10]\n小红#3: [引用 阿澈#1 的「周六去…」] 去哪"
)
TOLD = UserMessage(TEXT, sources=("11", "12", "13", "14"))


def without(*message_ids: str, messages: tuple[Message, ...] = (TOLD,)) -> tuple[Message, ...]:
    ids = frozenset(message_ids)
    return redact_messages(messages, ids, lines_of_messages(messages, ids))


def text_without(*message_ids: str) -> str:
    (message,) = without(*message_ids)
    assert isinstance(message, UserMessage)
    assert message.sources == TOLD.sources
    return message.text


def test_a_recalled_line_and_what_stands_below_it_is_gone_and_so_are_quotations_of_it() -> None:
    assert text_without("11") == (
        "[群聊记录 14:02-14:09]\n(另有 3 条)\n阿澈#1: [已撤回]\n"
        "小明#2 ↩阿澈#1「[已撤回]」: 不去\n我: 好的\n[提问 14:10]\n小红#3: [引用 阿澈#1 的「[已撤回]」] 去哪"
    )
    assert text_without("12", "13") == TEXT.replace(
        "小明#2 ↩阿澈#1「周六去香山吧」: 不去\n我: 好的", "小明#2: [已撤回]\n我: [已撤回]"
    )
    assert text_without("14").endswith("[提问 14:10]\n小红#3: [已撤回]")


def test_what_is_not_in_it_leaves_the_very_same_object() -> None:
    messages = (TOLD, AssistantMessage("周六去香山吧"))
    assert without("99", messages=messages) is messages


def test_a_quotation_of_what_is_in_no_line_is_gone_too_and_what_looks_like_one_stays() -> None:
    quoting = UserMessage(
        "[群聊记录]\n小明#2 ↩阿澈#1「周六去…」: 阿澈#1「周六去…」好\n小刚#5 ↩小明#2: 阿澈#1「周六」\n"
        "[提问]\n小红#3: [引用 阿澈#1 的「周六去香山吧」] 去『哪』「里」",
        sources=("20", "21", "22"),
        quotes=(("20", "9"), ("21", "20"), ("22", "9")),
    )
    (after,) = without("9", messages=(quoting,))
    assert isinstance(after, UserMessage)
    assert after.text == (
        "[群聊记录]\n小明#2 ↩阿澈#1「[已撤回]」: 阿澈#1「周六去…」好\n小刚#5 ↩小明#2: 阿澈#1「周六」\n"
        "[提问]\n小红#3: [引用 阿澈#1 的「[已撤回]」] 去『哪』「里」"
    )
    assert (after.sources, after.quotes) == (quoting.sources, quoting.quotes)
    assert without("8", messages=(quoting,)) == (quoting,)
    english = UserMessage("Ann#1: [quoting Tom#2 「Saturday」] no", sources=("1",), quotes=(("1", "9"),))
    assert str(without("9", messages=(english,))).count("Ann#1: [quoting Tom#2 「[已撤回]」] no") == 1


@each_case("quotation", ["小明#2「周六去香山吧」", "阿澈#11「周六去香山吧」", "阿澈#1「周日」"])
def test_what_somebody_else_said_stays_quoted(quotation: str) -> None:
    other = UserMessage(f"小红#3 ↩{quotation}: 好", sources=("20",))
    assert without("11", messages=(TOLD, other))[1] is other


def test_a_long_line_is_found_where_its_beginning_is_quoted_with_other_brackets() -> None:
    said = UserMessage("小明(777): [引用 阿澈(5) 的「去」] 我说「好」的\n  第二行", sources=("1",))
    quoting = UserMessage("小红(6): [引用 小明(777) 的「我说『好』的 第二…」] 啊", sources=("2",))
    after = without("1", messages=(said, quoting))
    assert [message.text for message in after if isinstance(message, UserMessage)] == [
        "小明(777): [已撤回]",
        "小红(6): [引用 小明(777) 的「[已撤回]」] 啊",
    ]


def test_what_was_recalled_before_keeps_its_place_among_the_lines() -> None:
    steered = UserMessage("[提问]\n小明#2: 去哪\n[补充]\n[已撤回]\n[补充]\n小明#2: 快点", sources=("1", "2", "3"))
    (after,) = without("3", messages=(steered,))
    assert after.text == "[提问]\n小明#2: 去哪\n[补充]\n[已撤回]\n[补充]\n小明#2: [已撤回]"


def test_who_replied_is_quoted_with_his_own_words() -> None:
    said = UserMessage("小明#2 ↩阿澈#1「几点: 三点」: 四点", sources=("1",))
    quoting = UserMessage("Kai#3: [quoting 小明#2 「四点」] ok", sources=("2",))
    assert without("1", messages=(said, quoting))[1] == replace(quoting, text="Kai#3: [quoting 小明#2 「[已撤回]」] ok")


def test_a_result_that_tells_it_is_gone_as_a_whole() -> None:
    found = ToolMessage("c1", "chat_log", "阿澈#1: 周六去香山吧\n小明#2: 不去", sources=("11", "12"))
    gone = (ToolMessage("c1", "chat_log", "[已撤回]", sources=("11", "12")),)
    assert without("12", messages=(found,)) == gone
    assert without("12", messages=(replace(found, kept="阿澈#1: 周六去香山吧"),)) == gone


GONE = AssistantMessage("[已撤回]")


def speaking(text: str) -> AssistantMessage:
    arguments = json.dumps({"messages": [{"type": "plain", "text": text}]})  # with escapes for what is not ASCII
    return AssistantMessage("", (ToolCall("c1", "send_message", arguments), ToolCall("c2", "look_up", "{}")))


def test_the_bots_own_words_are_taken_out_of_the_turn_that_said_them() -> None:
    good = AssistantMessage("好")
    thoughts = Reasoning("say 香山", "https://x.test/v1", "m", "reasoning_content")
    quiet = replace(speaking(""), tool_calls=(ToolCall("c1", "send_message", "{}"), ToolCall("c2", "look_up", "{}")))
    # What a turn has, which of its messages was recalled, whether that was the answer, what is left.
    rows: list[tuple[str, list[Message], str, bool, list[Message]]] = [
        ("as it is", [AssistantMessage("去香山")], "去香山", True, [GONE]),
        ("with its thoughts", [AssistantMessage("去香山", (), thoughts)], "去香山", True, [GONE]),
        ("a part", [AssistantMessage("去香山\n\n八点")], "八点", True, [AssistantMessage("去香山\n\n[已撤回]")]),
        ("another layout", [AssistantMessage("**去**香山")], "去香山", True, [GONE]),
        ("another alphabet", [AssistantMessage("| a |\n|-|")], "表格", True, [GONE]),
        ("by the tool", [speaking("去香山"), good], "去香山", False, [quiet, good]),
        ("by the tool, a picture", [speaking("x"), good], "", False, [quiet, good]),
        ("the answer only", [speaking("去香山"), good], "好", True, [speaking("去香山"), GONE]),
        ("a short line of it", [AssistantMessage("你好\n\n好！")], "好", True, [AssistantMessage("你好\n\n[已撤回]")]),
        ("short words inside others", [AssistantMessage("你好")], "好", True, [GONE]),
        ("one of two", [speaking("去香山"), speaking("八点")], "八点", False, [speaking("去香山"), quiet]),
        ("people's words", [UserMessage("小明#1: 去香山")], "去香山", True, [UserMessage("小明#1: 去香山")]),
    ]
    left = {name: list(redact_own(tuple(said), OwnWords("t1", words, final))) for name, said, words, final, _ in rows}
    assert left == {name: after for name, _, _, _, after in rows}
    # It is told twice, by the run and by its round: the second time takes nothing more.
    again = {
        name: list(redact_own(tuple(left[name]), OwnWords("t1", words, final))) for name, _, words, final, _ in rows
    }
    assert again == left


def test_among_other_turns_only_words_that_are_surely_the_same_are_taken_out() -> None:
    messages = (AssistantMessage("好的"), AssistantMessage("好的，周六八点半在北门见"), AssistantMessage("对"))
    assert redact_own_anywhere(messages, OwnWords("t1", "对的", final=True)) is messages
    short = redact_own_anywhere(messages, OwnWords("t1", "好的", final=True))
    assert short == (AssistantMessage("[已撤回]"), *messages[1:])
    long = redact_own_anywhere(messages, OwnWords("t1", "周六八点半在北门见", final=True))
    assert long == (messages[0], AssistantMessage("好的，[已撤回]"), messages[2])


def test_of_several_recalled_messages_of_one_turn_one_that_is_in_another_layout_is_taken_out_too() -> None:
    picture = replace(speaking("x"), tool_calls=(ToolCall("c1", "send_message", '{"picture": "香山.png"}'),))
    silent = replace(picture, tool_calls=(ToolCall("c1", "send_message", "{}"),))
    # What a turn has, what was recalled of it in turn, whether as its answer, what is left.
    rows: list[tuple[list[Message], list[str], bool, list[Message]]] = [
        ([AssistantMessage("去香山\n\n| a |\n|-|")], ["去香山", "表格"], True, [GONE]),
        ([AssistantMessage("去香山\n\n| a |\n|-|")], ["表格", "去香山"], True, [GONE]),
        ([AssistantMessage("去香山\n\n八点见\n\n好")], ["去香山", "八点见"], True, [
            AssistantMessage("[已撤回]\n\n[已撤回]\n\n好")]),
        ([picture, picture, AssistantMessage("好")], ["", ""], False, [silent, silent, AssistantMessage("好")]),
        ([speaking("去香山"), picture], ["去香山", ""], False, [
            replace(silent, tool_calls=(*silent.tool_calls, ToolCall("c2", "look_up", "{}"))), silent]),
    ]  # fmt: skip
    for said, recalled, final, left in rows:
        gone = [OwnWords("t1", words, final, earlier) for earlier, words in enumerate(recalled)]
        messages = tuple(said)
        for own in gone:
            messages = redact_own(messages, own)
        assert list(messages) == left
        for own in (*gone, *gone):  # told again, by the run's round
            messages = redact_own(messages, own)
        assert list(messages) == left


def test_the_bots_own_words_are_taken_out_of_what_it_had_them_from() -> None:
    own = OwnWords("t1", "我问过了：周六去香山公园，八点半在北门见。记得带水", final=True)
    answer = AssistantMessage("我问过了：周六去香山公园，八点半在北门见。记得带水")
    # What a result had, and what is left in the turn that said this; in other turns it stays.
    rows = [
        ("周六去香山公园，八点半在北门见", "[已撤回]"),
        (
            "第一条：\n- 周六去香山公园，八点半在北门见\n- 周日下雨，哪里也不去",
            "第一条：\n[已撤回]\n- 周日下雨，哪里也不去",
        ),
        ("带水", "带水"),
        ("周六晴", "周六晴"),
    ]
    for content, left in rows:
        found = ToolMessage("c1", "use_subagent", content, kept=content)
        assert redact_own((found, answer), own) == (replace(found, content=left, kept=left), GONE)
        assert redact_own_anywhere((found,), own) == (found,)
    whole = ToolMessage("c1", "chat_log", f"我: {own.words}。")
    assert redact_own_anywhere((whole,), own) == (replace(whole, content="我: [已撤回]。"),)
    writing = AssistantMessage(
        "", (ToolCall("c1", "write", json.dumps({"text": own.words})), ToolCall("c2", "look", "{}"))
    )
    cleared = AssistantMessage("", (ToolCall("c1", "write", "{}"), ToolCall("c2", "look", "{}")))
    assert redact_own_anywhere((writing,), own) == (cleared,)


def test_what_a_subagent_said_is_left_without_the_bots_words() -> None:
    own = OwnWords("t1", "周六去香山公园，八点半在北门见", final=True)
    thoughts = Reasoning("say 香山", "https://x.test/v1", "m", "reasoning_content")
    said = AssistantMessage("周六去香山公园\n带水", (), thoughts)
    long = AssistantMessage("周六去香山公园，八点半\n带水", (), thoughts)
    assert redact_own_in_subagent(long, own) == AssistantMessage("[已撤回]\n带水")
    assert redact_own_in_subagent(said, own) is said  # seven letters
    assert redact_own_in_subagent(speaking("周六去香山公园，八点半在北门见"), own).tool_calls[0].arguments == "{}"
