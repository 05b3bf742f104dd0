"""Calls without a mark: a tool's name makes them, code and prose do not."""

from __future__ import annotations

import pytest

from frostagent.models.openai.answer import RawAnswer
from frostagent.models.openai.leaks import may_leak, split_leaks
from frostagent.models.openai.written_calls import MAX_PYTHON, read_whole
from frostagent.types.messages import ToolSpec
from tests.cases import each_case

WEATHER = ToolSpec(
    "get_weather",
    "The weather.",
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
)
SILENT = ToolSpec("stay_silent", "Say nothing.", {"type": "object", "properties": {}})
TOOLS = (WEATHER, SILENT)
CITY = '{"city":"北京"}'
ACTION = 'Action: get_weather\nAction Input: {"city": "北京"}'


def split(
    text: str, *, given: tuple[str, ...] = (), is_marked: bool = True, tools: tuple[ToolSpec, ...] = TOOLS
) -> RawAnswer:
    names = {tool.name for tool in TOOLS}
    return split_leaks(RawAnswer(text=text), tools=tools, given=given, names=names, is_marked=is_marked)


def called(text: str, *, is_marked: bool = True) -> list[tuple[str, str | None]]:
    """The calls of a text of which nothing else is left."""
    answer = split(text, is_marked=is_marked)
    assert (answer.text, answer.leaked) == ("", False)
    return [(call.name, call.arguments) for call in answer.tool_calls]


@each_case("is_marked", [True, False])
@each_case(
    "text",
    [
        ACTION,
        f"Thought: I need the weather.\nOf Beijing.\n{ACTION}",
        f"\n{ACTION}\n",
        "**Action:** get_weather\n**Action Input:** 北京",
        'Action：`get_weather`\nAction Input：`{"city": "北京"}`',
        'Action: get_weather\nAction Input:\n```json\n{"city": "北京"}\n```',
        'Action: get_weather\n{"city": "北京"}',
        "Action: get_weather[北京]",
        'Action: get_weather({"city": "北京"})',
        'Action: get_weather {"city": "北京"}',
        'Action: functions.get_weather\nAction_Input: "北京"',
        '✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "北京"}',
        'get_weather{"city":"北京"}',
        'get_weather({"city": "北京"})',
        ' functions.get_weather {\n"city": "北京"\n}\n',
        'get_weather(city="北京")',
        "[get_weather('北京')]<|eot_id|>",
    ],
)  # fmt: skip
def test_a_call_of_a_tool_by_its_name_is_that_call(text: str, is_marked: bool) -> None:
    assert called(text, is_marked=is_marked) == [("get_weather", CITY)]


@each_case("text", [f"好的，我查一下。\n{ACTION}", 'One moment.\nget_weather{"city": "北京"}'])
def test_words_before_a_call_are_words_beside_it(text: str) -> None:
    answer = split(text)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("get_weather", CITY)]
    assert answer.text == text.splitlines()[0]


@each_case("is_marked", [True, False])
@each_case(
    "text",
    [
        f"{ACTION}\nObservation: 晴\nThought: done\nFinal Answer: 北京晴",
        f"Thought: hm\n{ACTION}\nAction: get_weather\nAction Input: 上海",
        'Action: get_weather\nAction Input: {"city": ',
        'Action: get_weather\nAction Input: {"city": NaN}',
        "Action: get_weather\nAction Input: [1]\n✿RESULT✿: 晴",
        'Action: get_weather(city="北京")',
        'get_weather{"city": ',
        "get_weather{",
        "get_weather{'city': '北京'}",
        'get_weather{"city": NaN}',
        'get_weather{"city": "北京"}\n北京今天晴。',
        f"{ACTION}\n\n北京今天晴。",
        "NO_REPLY\n\n他们在自己聊。",
        "[stay_silent] 他们在自己聊。",
        "Action: stay_silent\n\n他们在自己聊。",
        "Action: get_weather\nObservation: 晴",
        "**Action:** get_weather\n\nThought: 晴",
    ],
)
def test_what_cannot_be_taken_as_a_call_is_asked_for_again(text: str, is_marked: bool) -> None:
    answer = split(text, is_marked=is_marked)
    assert (answer.tool_calls, answer.leaked) == ((), True)
    left = split(text, is_marked=is_marked, tools=())  # where none may be called
    assert (left.text, left.leaked) == (answer.text, False)
    assert not any(sign in left.text for sign in ("weather", "Action", "Thought", "silent", "REPLY"))


def test_a_tool_of_several_arguments_is_not_given_words() -> None:
    two = ToolSpec("get_weather", "d", {**WEATHER.parameters, "required": ["city", "days"]})
    number = ToolSpec("get_weather", "d", {"type": "object", "properties": {"days": {"type": "integer"}}})
    for tool in (two, number):
        answer = split("Action: get_weather\nAction Input: 北京", tools=(tool,))
        assert (answer.tool_calls, answer.leaked) == ((), True)


def test_an_action_without_arguments_has_none() -> None:
    for text in (
        "Action: stay_silent",
        "Action: stay_silent\nAction Input: None",
        "Action: NO_REPLY\nAction Input: {}",
        "Action: **stay_silent**\n\n",
        "Action: stay_silent</s>",
        "Action: stay_silent\n<|im_end|>\n",
    ):
        assert called(text) == [("stay_silent", "{}")], text
    assert called("Thought: hm\nAction: get_weather\n") == [("get_weather", "{}")]


SILENCES = [
    "stay_silent", "`stay_silent`", "```\nstay_silent\n```", "stay_silent()", "[stay_silent]", "**stay_silent**",
    "<stay_silent/>", "<stay_silent></stay_silent>", "NO_REPLY", "[NO_REPLY]", "no_reply", "（stay_silent）",
    "Stay_Silent.", "stay_silent{}", "stay_silent<|im_end|>", "\n NO_REPLY \n",
]  # fmt: skip


@each_case("is_marked", [True, False])
@each_case("text", SILENCES)
def test_the_bare_name_of_silence_is_silence(text: str, is_marked: bool) -> None:
    assert called(text, is_marked=is_marked) == [("stay_silent", "{}")]


@each_case("text", ["他们在聊我。\nstay_silent", "They talk about me.\n\n[stay_silent]", "嗯。\nNO_REPLY</s>"])
def test_silence_after_a_thought_is_silence(text: str) -> None:
    answer = split(text)
    assert [call.name for call in answer.tool_calls] == ["stay_silent"]
    assert answer.text == text.splitlines()[0]


def test_silence_that_somebody_spoke_of_is_silence() -> None:
    for text, left in (("stay_silent", ""), ("嗯。\nstay_silent", "嗯。")):
        answer = split(text, given=("小明#1: 别 stay_silent 啊",))
        assert (answer.text, [call.name for call in answer.tool_calls]) == (left, ["stay_silent"])


@each_case(
    "text",
    [
        f"```\n{ACTION}\n```",
        f"这样写：\n```text\nThought: …\n{ACTION}\n```\n然后等 Observation。",
        '写成 `get_weather{"city": "北京"}` 就行。',
        "In ReAct the model writes Action: and then the name of a tool, say get_weather.",
        "Action: search\nAction Input: 北京天气",
        "Thought: no tool is needed.\nFinal Answer: 你好",
        "Action: get_weather is what you write.",
        "Action items:\n- buy milk",
        "Action: get_weather\n\n他看了看四周。",
        "Action: get_weather\n`天气` 是一个工具。",
        "Action: get_weather\n[微笑]",
        "**Action**: get_weather\n**Target**: 北京",
        "我的设定：\nAction: get_weather\nMood: sunny",
        'const x = {"city": "北京"}\nprint{"a": 1}',
        "get_weather: 查天气\nstay_silent: 不说话",
        "我的工具有：\n- get_weather\n- stay_silent",
        "get_weather\nstay_silent",
        "stay_silent 是让我不说话的工具。",
        "想让我安静就说 stay_silent",
        "Stay silent.",
        "No reply!",
        "get_weather(城市)",
        "get_weather(*a)",
        'get_weather("北京", 1, 2)',
        "[print(1), get_weather('北京')]",
        "get_weather(city=1j)",
        "get_weather(city=",
        "f(x) = g(x)",
        "get_weather('" + "x" * MAX_PYTHON + "')",
    ],
)
def test_code_and_prose_are_answers(text: str) -> None:
    for is_marked in (True, False):
        assert split(text, is_marked=is_marked) == RawAnswer(text=text)


def test_whoever_asks_what_silence_in_brackets_means_is_answered() -> None:
    answer = "[no_reply] 这个前缀表示我不说话。"
    assert split(answer).leaked
    asked = ("小明#1: no_reply 这个前缀是什么？",)
    assert split(answer, given=asked) == RawAnswer(text=answer)
    for silent in ("[no_reply]", "[no_reply]\n"):
        assert [call.name for call in split(silent, given=asked).tool_calls] == ["stay_silent"]


def test_whoever_asks_how_an_action_is_written_is_answered() -> None:
    answer = f"ReAct 里这样写：\n{ACTION}\n然后等 Observation。"
    assert split(answer).leaked
    asked = ("小明#1: ReAct 里的 Action: 怎么写？",)
    assert split(answer, given=asked) == RawAnswer(text=answer)
    assert split(ACTION, given=asked).tool_calls  # there is nothing said about it


@each_case("text", [ACTION, f"Thought: sure\n{ACTION}", 'get_weather{"city": "北京"}', 'get_weather(city="北京")'])
def test_what_somebody_wrote_is_quoted(text: str) -> None:
    written = text.removeprefix("Thought: sure\n")
    assert split(text).tool_calls
    assert split(text, given=(f"小明#1: 复述：{written}",)) == RawAnswer(text=text)


def test_an_answer_that_is_no_such_call_is_read_as_it_was() -> None:
    assert read_whole("好", {}) is None
    assert not may_leak(RawAnswer(text="明天下午三点，老地方见。"))
    call = '{"name": "get_weather", "arguments": {}}'
    for marked in (call, f"<tool_call>{call}</tool_call> </s>"):
        assert split(marked, is_marked=False) == RawAnswer(text=marked)


def test_nothing_is_looked_for_within_a_call() -> None:
    inner = '{"city":{"name":"get_weather","arguments":{}}}'
    assert called(f"get_weather{inner}") == [("get_weather", inner)]


@pytest.mark.parametrize(
    "piece",
    [
        'get_weather{"city": ',
        "Action: get_weather\n",
        "Action: get_weather\nAction Input: ",
        "Action: get_weather\n" + " " * 50,
        "Action: get_weather\n\n</s>",
        "stay_silent\n",
        "\n\nstay_silent",
        "。\nNO_REPLY" + " " * 20,
        "get_weather(",
        "(",
        "Thought: ",
    ],
)
@pytest.mark.timeout(10)
def test_very_many_beginnings_hold_nobody_up(piece: str) -> None:
    answer = split(piece * (200_000 // len(piece)))
    assert len(answer.tool_calls) <= 1


@pytest.mark.parametrize("pad", [" ", "\n", "*", "`", "\t "])
@pytest.mark.timeout(10)
def test_a_long_gap_holds_nobody_up(pad: str) -> None:
    for text in (f"Action: get_weather{pad * 100_000}x", f"Action:{pad * 100_000}x", f"{pad * 100_000}stay_silent x"):
        split(text)
    split(f"stay_silent{pad * 100_000}x")
