from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.prompt.compose import Question, user_message
from bot.prompt.render import history_note
from bot.prompt.summary import (
    MAX_ASIDE,
    MAX_SUMMARY,
    MAX_WORDS,
    Prefix,
    continue_summary,
    in_one_line,
    read_summary,
    summary_of_prefix,
    summary_request,
)
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import (
    AssistantMessage,
    FinishReason,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.bot.prompt import VIEW
from tests.cases import each_case
from tests.fakes import said, words

CALL = ToolCall("c0", "get_weather", '{"city": "北京"}')
ROUND: tuple[Message, ...] = (
    UserMessage("[群聊记录]\n小红#5: 我下周去北京\n[提问 14:10]\n小明#777: 北京天气怎么样"),
    AssistantMessage("我看看", (CALL,)),
    ToolMessage("c0", "get_weather", "晴\n25 度"),
    AssistantMessage("晴，25 度"),
)


def test_a_request_for_a_summary_is_what_was_said_by_whom_and_nothing_else() -> None:
    request = summary_request([ROUND])
    assert request.tools == ()
    assert request.messages == (
        SystemMessage(ZH.summary.instructions),
        UserMessage(
            "[对话]\n"
            "[群聊记录]\n小红#5: 我下周去北京\n[提问 14:10]\n小明#777: 北京天气怎么样\n"
            "机器人: 我看看\n"
            '机器人 -> get_weather: {"city": "北京"}\n'
            "get_weather -> 机器人: 晴\n  25 度\n"
            "机器人: 晴，25 度"
        ),
    )


def test_a_round_in_one_line_is_how_its_question_and_its_answer_begin() -> None:
    assert in_one_line(ROUND) == "· 小明#777: 北京天气怎么样 -> 晴，25 度"
    asked = UserMessage("小明#777: " + "喂" * 50 + "\n  小红#5: 装的")
    silent = (asked, AssistantMessage("", (CALL,)))
    assert in_one_line(silent) == f"· 小明#777: {'喂' * 31}… -> get_weather"
    assert in_one_line((UserMessage(""), history_note(ZH, "x"))) == "· … -> …"


def test_lines_stand_behind_the_summary_and_the_oldest_are_counted() -> None:
    told = ""
    for number in range(7):
        told = continue_summary(told or "小明#777 喜欢猫", [f"· 问题{number}"], tokens=9)
    assert told == "小明#777 喜欢猫\n·（更早的 4 轮从略）\n· 问题4\n· 问题5\n· 问题6"
    assert (
        continue_summary("he likes cats", ["· one", "· two"], tokens=1)
        == "he likes cats\n· (2 earlier rounds left out)"
    )
    assert continue_summary("he likes cats\n· (2 earlier rounds left out)", ["· six"], tokens=0).endswith(
        "(3 earlier rounds left out)"
    )


def test_the_summary_before_it_is_made_part_of_it() -> None:
    text = summary_request([ROUND], "小明#777 喜欢猫\n小红#5 不喜欢").messages[-1]
    assert isinstance(text, UserMessage)
    assert text.text.startswith("[旧摘要]\n  小明#777 喜欢猫\n  小红#5 不喜欢\n[对话]\n[群聊记录]\n")


@each_case(
    ("text", "instructions"),
    [
        ("北京天气怎么样", ZH.summary.instructions),
        ("用 Python 写一个快排, quicksort", ZH.summary.instructions),
        ("ok", EN.summary.instructions),
        ("what does 你好 mean in English?", EN.summary.instructions),
        ("hi", EN.summary.instructions),
    ],
)
def test_it_is_asked_for_in_the_language_people_speak(text: str, instructions: str) -> None:
    message = replace(said(text, message_id="7"), sender=replace(said("").sender, nickname="A"))
    user = user_message(Question(message), VIEW)
    assert summary_request([(user, AssistantMessage("好的，没问题"))]).messages[0] == SystemMessage(instructions)


def test_long_messages_are_cut_and_of_a_question_the_end_stays() -> None:
    long = UserMessage("小红#5: " + "长" * 3000 + "\n小明#777: 到底怎么办")
    result = ToolMessage("c0", "get_weather", "晴" * 3000)
    text = summary_request([(long, AssistantMessage("", (CALL,)), result, AssistantMessage("话" * 3000))]).messages[-1]
    assert isinstance(text, UserMessage)
    assert text.text.startswith("[对话]\n…\n小明#777: 到底怎么办\n")
    assert text.text.count("晴") < MAX_ASIDE
    assert text.text.count("话") <= MAX_WORDS
    (only,) = summary_request([(UserMessage("长" * 3000),)]).messages[-1:]
    assert isinstance(only, UserMessage)
    assert len(only.text) < MAX_WORDS + 20


@given(st.text(), st.text(), st.text())
def test_no_text_of_the_model_or_of_a_tool_writes_a_line_of_its_own(answer: str, arguments: str, result: str) -> None:
    call = ToolCall("c", "look", arguments)
    told: tuple[Message, ...] = (AssistantMessage(answer, (call,)), ToolMessage("c", "look", result))
    text = summary_request([(UserMessage("小明#777: 你好"), *told)], answer).messages[-1]
    assert isinstance(text, UserMessage)
    ours = [line for line in text.text.splitlines() if not line.startswith("  ")]
    starts = ["[旧摘要]", "[对话]", "小明#777: 你好", "机器人: ", "机器人 -> look: ", "look -> 机器人: "]
    expected = starts if answer else ["[对话]", "小明#777: 你好", *starts[4:]]
    assert len(ours) == len(expected)
    assert all(line.startswith(start) for line, start in zip(ours, expected, strict=True))


def test_a_summary_is_the_words_of_the_answer_without_empty_lines_and_never_long() -> None:
    assert read_summary(words(" 小明#777 问了天气。\n\n  晴。 ")) == "小明#777 问了天气。\n晴。"
    long = read_summary(words("好" * 5000))
    assert len(long) == MAX_SUMMARY
    assert long.endswith("…")
    assert read_summary(words("cut o", finish=FinishReason.LENGTH)) == "cut o"


def test_what_is_no_summary_is_none() -> None:
    assert read_summary(words("")) == ""
    assert read_summary(words("no", refusal="I cannot")) == ""
    assert read_summary(words("half", finish=FinishReason.CONTENT_FILTER)) == ""


def test_the_prefix_of_a_request_is_asked_on_where_it_had_the_same_rounds_and_the_same_summary() -> None:
    told = (UserMessage("小明#777: 你好"), AssistantMessage("在"))
    examples = (UserMessage("早"), AssistantMessage("早呀"))
    shown = (UserMessage("[此前对话摘要]\n  喜欢猫\n  怕狗\n小明#777: 你好"), told[1])
    prefix = Prefix((SystemMessage("你是小霜"), *examples, *shown, UserMessage("小红#5: 在吗")), 3)
    request = summary_of_prefix(prefix, told, "喜欢猫\n怕狗")
    assert request is not None
    assert request.messages == (*prefix.transcript[:-1], UserMessage(ZH.summary.request))
    assert summary_of_prefix(prefix, told, "喜欢猫") is None  # it was forgotten, or made anew
    assert summary_of_prefix(prefix, told) is None
