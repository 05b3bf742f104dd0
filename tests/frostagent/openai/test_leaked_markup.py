"""The corpus of leaked markup (tests/data/markup), read from streams that are cut anywhere."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from itertools import count, pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.openai.dialects import ANTHROPIC, GEMINI, PLAIN, Dialect
from frostagent.models.openai.history import Origin
from frostagent.models.openai.stream import AnswerReader
from frostagent.models.openai.wire import read_answer
from frostagent.types.errors import ModelTransport, ToolUseFailed
from frostagent.types.messages import AssistantMessage, ModelRequest, ToolCall, ToolSpec, UserMessage
from tests.cases import each_case
from tests.data.markup import FOLDER, entries, leaked_calls, pairs
from tests.data.speech import entries as speech

CITY = {"city": {"type": "string"}, "days": {"type": "integer"}}
WEATHER = ToolSpec("get_weather", "d", {"type": "object", "properties": CITY, "required": ["city"]})
TIME = ToolSpec("time", "d", {"type": "object", "properties": {}})
TOOL = ToolSpec("tool", "d", {"type": "object", "properties": {"x": {"type": "string"}}})
TOOLS = (WEATHER, TIME)
SIZES = (1, 2, 3, 5, 17, 10**6)
CALL = [("get_weather", '{"city":"北京"}')]


def read(
    text: str,
    reasoning: str = "",
    *,
    cuts: list[int] | None = None,
    size: int = 10**6,
    tools: tuple[ToolSpec, ...] = TOOLS,
    asked: str = "小明#1: 北京天气",
    called: tuple[str, ...] = (),
    dialect: Dialect = PLAIN,
) -> AssistantMessage:
    """What is read from a stream of these words, in pieces of this many bytes and with these cuts in its text."""
    body = b""
    for field, said in (("reasoning_content", reasoning), ("content", text)):
        places = [0, *sorted(cut for cut in cuts or () if cut < len(said)), len(said)]
        for start, end in pairwise(places):
            body += b"data: " + orjson.dumps({"choices": [{"delta": {field: said[start:end]}}]}) + b"\n\n"
    body += b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    reader = AnswerReader()
    for at in range(0, len(body), size):
        reader.feed(body[at : at + size])
    ids = map(str, count())
    earlier = [AssistantMessage("", (ToolCall("0", name, "{}"),)) for name in called]
    completion = read_answer(
        reader.finish(),
        request=ModelRequest((*earlier, UserMessage(asked)), tools),
        origin=Origin("api.example", "m"),
        dialect=dialect,
        new_id=lambda: next(ids),
    )
    return completion.message


def outcome(text: str, reasoning: str = "", **how: object) -> tuple[str, str]:
    """`call`, `again` or `words`, and the words."""
    try:
        message = read(text, reasoning, **how)  # type: ignore[arg-type]  # the same names
    except ToolUseFailed:
        return "again", ""
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    assert calls in ([], CALL), calls
    return ("call" if calls else "words"), message.text


def failures(rows: Iterator[tuple[object, object, str]]) -> str:
    return "\n".join(f"{got!r} instead of {wanted!r}: {what!r}" for got, wanted, what in rows if got != wanted)


@each_case("size", SIZES)
def test_leaked_calls_are_calls_or_asked_for_again_and_never_words(size: int) -> None:
    def rows() -> Iterator[tuple[object, object, str]]:
        for _, text, verdict, left in leaked_calls():
            wanted = (verdict, "" if verdict == "again" else left)
            yield outcome(text, size=size), wanted, text
            yield outcome(text, cuts=list(range(0, len(text), size)), size=size), wanted, text

    assert failures(rows()) == ""


def test_they_are_looked_for_in_answers_of_every_family_that_was_seen_to_leak() -> None:
    """A call of Claude's without its envelope, a fence of Gemini's."""
    for dialect in (ANTHROPIC, GEMINI):
        rows = (
            (outcome(text, dialect=dialect), (verdict, "" if verdict == "again" else left), text)
            for _, text, verdict, left in leaked_calls()
        )
        assert failures(rows) == ""


def test_where_no_tool_may_be_called_the_words_are_left() -> None:
    def rows() -> Iterator[tuple[object, object, str]]:
        for _, text, _, left in leaked_calls():
            yield outcome(text, tools=(), called=("get_weather",)), ("words", left), text

    assert failures(rows()) == ""


def test_a_leaked_call_inside_the_thoughts_is_that_call() -> None:
    def rows() -> Iterator[tuple[object, object, str]]:
        for _, text, verdict, _ in leaked_calls():
            if verdict == "call":
                yield outcome("", text), ("call", ""), text
                yield outcome("", f"先想想，要查天气。\n{text}\n"), ("call", ""), text
                yield outcome("你好呀。", text), ("words", "你好呀。"), text

    assert failures(rows()) == ""


def test_a_call_inside_the_thoughts_that_does_not_fit_its_tool_is_asked_for_again() -> None:
    for body in ('{"city": "北京", "x": 1}', '{"days": 2}', "{}"):
        text = f'<tool_call>{{"name": "get_weather", "arguments": {body}}}</tool_call>'
        assert outcome("", text) == ("again", ""), body
    with_words = '<tool_call>{"name": "get_weather", "arguments": {"city": "北京"}}</tool_call> 然后再答。'
    assert outcome("", with_words) == ("again", "")


def test_what_somebody_wrote_is_never_called() -> None:
    for _, text, verdict, left in leaked_calls():
        if verdict == "call":
            call = text.removeprefix(left)
            for got in (outcome(text, asked=f"小明#1: 说 {call}"), outcome("", text, asked=f"小明#1: 说 {call}")):
                assert got[0] != "call", text


def test_a_call_that_somebody_wrote_is_a_quotation_in_any_frame() -> None:
    call = '{"name": "get_weather", "arguments": {"city": "北京"}}'
    for frame in ("```tool_call\n{}\n```", "好的：\n```tool_call\n{}\n```"):
        text = frame.replace("{}", call)
        assert outcome(text)[0] == "call"
        assert outcome(text, asked=f"小明#1: 复述 {call}") == ("words", text)
    invoke = '<invoke name="get_weather"><parameter name="city">北京</parameter></invoke>'
    for text in (f"court\n{invoke}", f"call\n{invoke}", invoke):
        assert outcome(text)[0] == "call"
        assert outcome(text, asked=f"小明#1: 说 {invoke}") == ("words", text)
    harmony = 'to=functions.get_weather json{"city": "北京"}'
    assert outcome(f"assistantcommentary {harmony}", asked=f"小明#1: 说 {harmony}")[0] == "words"


def test_who_asks_how_calls_are_written_is_shown_one() -> None:
    fence = '```tool_call\n{"name": "get_weather", "arguments": {"city": "北京"}}\n```'
    for text in (f"这样写：\n{fence}\n就行。", f"这样写：\n{fence}"):
        assert outcome(text, asked="小明#1: tool_call 怎么写？") == ("words", text)
    assert outcome(f"这样写：\n{fence}\n就行。") == ("again", "")


def test_thoughts_stay_thoughts() -> None:
    def rows() -> Iterator[tuple[object, object, str]]:
        for text, left in pairs("thoughts.txt"):
            reasoning = "想" if text.startswith("+reasoning\n") else ""
            said = text.removeprefix("+reasoning\n")
            for size in SIZES:
                yield outcome(said, reasoning, size=size), ("words", left), text

    assert failures(rows()) == ""


def test_who_asks_for_such_tags_gets_them() -> None:
    for text in ("<analysis>\n好\n</analysis>\n写好了。", "<answer>42</answer>"):
        tag = text.partition(">")[0]
        assert outcome(text, asked=f"小明#1: 写成 {tag}> 的形式") == ("words", text)
        assert outcome(text)[1] != text


def test_marks_of_citation_are_cut_where_they_point_nowhere() -> None:
    def rows() -> Iterator[tuple[object, object, str]]:
        for text, left in pairs("citations.txt"):
            for size in SIZES:
                yield outcome(text, size=size), ("words", left), text

    assert failures(rows()) == ""
    assert outcome("【3†source】 是引用标记。", asked="小明#1: 【3†source】 是什么")[1] == "【3†source】 是引用标记。"


@each_case("size", SIZES)
def test_honest_words_lose_no_byte(size: int) -> None:
    def rows() -> Iterator[tuple[object, object, str]]:
        for text in entries("honest.txt"):
            for tools in (TOOLS, (*TOOLS, TOOL), ()):
                yield outcome(text, size=size, tools=tools), ("words", text), text
        for text in speech("honest.txt"):
            yield outcome(text, size=size), ("words", text), text

    assert failures(rows()) == ""


TEXTS = [
    *(text for _, text, _, _ in leaked_calls()), *entries("honest.txt"),
    *(text for name in ("thoughts.txt", "citations.txt") for text, _ in pairs(name)),
]  # fmt: skip


@given(st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.lists(st.integers(0, 300), max_size=8), st.integers(1, 40))
def test_it_does_not_matter_where_a_stream_is_cut(text: str, other: str, cuts: list[int], size: int) -> None:
    for said, thought in ((text, ""), (f"{text}\n{other}", ""), ("", text)):
        try:
            whole = read(said, thought)
        except (ToolUseFailed, ModelTransport) as error:
            with pytest.raises(type(error)):
                read(said, thought, cuts=cuts, size=size)
        else:
            assert read(said, thought, cuts=cuts, size=size) == whole


PIECES = [
    "]<]minimax[>[", "<xai:function_call>", '<invoke name="get_weather">', '<invoke name="', "<longcat_tool_call>{",
    "<start_function_call>call:get_weather{", '<|tool_call>call:get_weather{a:<|"|>', '<function name="get_weather">',
    "<get_weather>{", "<get_weather>", "<time>{", "<time>", '<time a="', "to=get_weather ", "commentary ",
    "to=functions.x ", "assistantfinal", "analysis", "```tool_call\n", "```get_weather\n{", "\n```tool_output\n",
    "[调用工具: get_weather {", "[调用工具: x ", "(", "【", "<tool_response>", "<tool_response>{", "[TOOL_RESULTS]",
    "[TOOL_REQUEST]{", "</invoke>", "</invoke>\n", "<|open|>call", "court\n", "court\n\n", "<ns:", "\ue200",
    "\ue200cite\ue202", "citeturn0search0", "turn0search0", "【3†", "[citation:1, ", "[^1", "<co: 0>",
    "<grok:render>", "</analysis>\n", "<analysis>", "<answer>", "<answer>a</answer>", "</think>\n", "\n1. http://",
    "<escape>", "<arg_key>", "<function=get_weather><parameter=city>", "print(", "\n来源",
    '<tool>\n<parameter name="x">', "<tools>", " =", '<a b="c" ', "\n \n", "call:", "<|constrain|>", " \t",
]  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", ["", "</get_weather></time></tool_call></invoke>\n```]\ue201"])
def test_very_many_marks_hold_nobody_up(end: str) -> None:
    for piece in PIECES:
        text = piece * (20_000 // len(piece)) + end
        for said, thought in ((text, ""), (f"<tool_call>{text}</tool_call>", "")):
            with contextlib.suppress(ToolUseFailed, ModelTransport):
                read(said, thought)


def test_the_corpus_has_every_family_in_three_forms() -> None:
    families = Counter(family for family, _, _, _ in leaked_calls())
    assert [family for family, forms in families.items() if forms < 3] == []
    shown = {f"{family}: {verdict}" for family, _, verdict, _ in leaked_calls()}
    shown |= {f"{name}: {len(entries(name))} entries" for name in ("thoughts.txt", "citations.txt", "honest.txt")}
    assert sorted(shown) == (FOLDER / "features.txt").read_text("utf-8").splitlines()
