"""Where markup is in a text, and what calls it holds; what becomes of it is tested in `test_leaks`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frostagent.models.openai.answer import RawAnswer, RawCall
from frostagent.models.openai.leaks import MAX_BLOCKS, split_leaks
from frostagent.models.openai.markup import MAX_BLOCK, MarkupBlock, find_blocks
from frostagent.types.messages import ToolSpec
from tests.cases import each_case
from tests.frostagent.openai.test_leaks import FORMS, split

TOOL = ToolSpec("f", "d", {"type": "object", "properties": {"a": {"type": "string"}}})
TOOLS = {"f": TOOL}


def found(text: str) -> list[MarkupBlock]:
    return list(find_blocks(text, TOOLS))


def test_blocks_are_found_in_order_with_their_places() -> None:
    text = 'x <tool_call>{"name":"f","arguments":{}}</tool_call> y </tool_call> <tool_call>{"name'
    whole, stray, cut = found(text)
    assert text[whole.start : whole.end].endswith("}</tool_call>")
    assert whole.calls == [("f", {})]
    assert text[stray.start : stray.end] == "</tool_call>"
    assert stray.is_stray
    assert (text[cut.start :], cut.is_closed, cut.calls) == ('<tool_call>{"name', False, None)


@each_case(
    "body",
    [
        "{", "[]", "5", '{"name": 5, "arguments": {}}', '{"name": "f"}', '{"name": "f", "arguments": []}',
        '{"name": "f", "arguments": "oops"}', '{"name": "g", "arguments": {}}', '{"name":"f","arguments":{}} and more',
        "f<arg_key>a</arg_key>", "f<arg_key>a</arg_key><arg_value>1", "<function=f><parameter=a>1</function>",
    ],
)  # fmt: skip
def test_what_cannot_be_read_to_the_letter_is_no_call(body: str) -> None:
    assert [block.calls for block in found(f"<tool_call>{body}</tool_call>")] in ([None], [])


def test_a_name_may_have_its_namespace() -> None:
    assert found('<tool_call>{"name": "functions.f", "arguments": {}}</tool_call>')[0].calls == [("f", {})]


def test_dsml_says_itself_what_is_text_and_what_is_json() -> None:
    form = '<|DSML|invoke name="f"><|DSML|parameter name="a" string="{}">{}</|DSML|parameter></|DSML|invoke>'
    assert found(form.format("true", "1"))[0].calls == [("f", {"a": "1"})]
    assert found(form.format("false", "1"))[0].calls == [("f", {"a": 1})]
    assert found(form.format("false", "oops"))[0].calls is None


def test_a_block_that_is_too_long_is_not_read() -> None:
    text = '<tool_call>{"name":"f","arguments":{"a":"%s"}}</tool_call>'
    assert found(text % "x")[0].calls is not None
    assert found(text % ("x" * MAX_BLOCK))[0].calls is None


# --- a text that is nothing but a call ---------------------------------------------------------------

WEATHER = ToolSpec("weather", "d", {"type": "object", "properties": {}})
BARE = '{"name": "weather", "parameters": {"city": "北京", "days": 2}}'


@each_case(
    "text",
    [
        BARE,
        f"\n{BARE}\n",
        f"{BARE}<|eot_id|>",
        f"{BARE}</s>\n",
        f"<|im_start|>assistant\n{BARE}",
        f"<think>hm</think>{BARE}",
        BARE.replace("parameters", "arguments"),
        BARE.replace("parameters", "input"),
        BARE.replace('{"name"', '{"type": "function", "name"'),
        f"[{BARE}]",
    ],
)
def test_json_of_a_call_and_nothing_else_is_that_call(text: str) -> None:
    answer = split_leaks(RawAnswer(text=text), tools=(WEATHER,))
    assert (answer.text, answer.tool_calls) == ("", (RawCall("", "weather", '{"city":"北京","days":2}'),))


@each_case(
    "text",
    [
        f"Like this: {BARE}",
        f"{BARE} is how",
        f"```json\n{BARE}\n```",
        BARE.replace("weather", "rm"),
        BARE[:-1] + ', "note": "x"}',
        BARE[:-1],
        '{"name": "weather"}',
        '{"name": "weather", "parameters": [1]}',
        f"[{BARE}, 1]",
        f'{BARE}; {{"name": "rm", "parameters": {{}}}}',
        '{"name": "weather", "parameters": {"x": NaN}}',
    ],
)
def test_other_json_is_an_answer(text: str) -> None:
    assert split_leaks(RawAnswer(text=text), tools=(WEATHER,)) == RawAnswer(text=text)


def test_json_of_a_call_that_somebody_wrote_is_quoted() -> None:
    assert split_leaks(RawAnswer(text=BARE), tools=(WEATHER,), given=(f"say {BARE}",)) == RawAnswer(text=BARE)
    assert split_leaks(RawAnswer(text=BARE), tools=()) == RawAnswer(text=BARE)


ENTRIES = "<|tool_calls_begin|>{}<|tool_calls_end|>"


@pytest.mark.parametrize(
    ("block", "begin", "piece", "end"),
    [
        ("<tool_call>{}</tool_call>", "f", "<arg_key>", ""),
        ("<tool_call>{}</tool_call>", "f<arg_key>a", "</arg_key><arg_value>", ""),
        ("<tool_call>{}</tool_call>", "<function=f>", "<parameter=a>", "</function>"),
        ("<minimax:tool_call>{}</minimax:tool_call>", "", '<invoke name="f">', ""),
        ("<minimax:tool_call>{}</minimax:tool_call>", '<invoke name="f">', '<parameter name="a">', "</invoke>"),
        (ENTRIES, "", "<|tool_call_begin|>", ""),
        (ENTRIES, "<|tool_call_begin|>function", "<|tool_sep|>", ""),
        (ENTRIES, "<|tool_call_begin|>function<|tool_sep|>f```", " ", "x<|tool_call_end|>"),
        (ENTRIES, "<|tool_call_begin|>function<|tool_sep|>f```{", " ", "<|tool_call_end|>"),
    ],
)
def test_bodies_of_beginnings_hold_nobody_up(block: str, begin: str, piece: str, end: str) -> None:
    """Each took seconds: looking for the end of every beginning takes quadratic time."""
    body = begin + piece * ((MAX_BLOCK - 200) // len(piece)) + end
    blocks = found(block.format(body) * 40)
    assert [one.calls for one in blocks] == [None] * 40


# --- what somebody wrote ------------------------------------------------------------------------------


def full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


@each_case(
    "written",
    [
        lambda text: text.replace("{", "{ "),
        lambda text: text.replace(" ", ""),
        lambda text: text.replace('"', ' "\n'),
        lambda text: text.replace("weather", "wea\u200bther"),
        lambda text: text.replace("a", "\u202ea\u2060"),
        lambda text: text.replace(",", ",\u3000\xa0"),
        str.upper,
        full_width,
        "\n  ".join,
    ],
)
@each_case("form", FORMS)
def test_what_somebody_wrote_is_quoted_however_it_is_spaced(form: str, written: Callable[[str], str]) -> None:
    text = FORMS[form]
    assert split(text).tool_calls
    quoted = split(text, given=("小明(777): say this", f"小红(5): {written(text)} please"))
    assert not quoted.tool_calls
    assert quoted.text.strip()


def test_what_two_people_wrote_is_not_put_together() -> None:
    text = FORMS["hermes"]
    assert split(text, given=(text[:20], text[20:])).tool_calls


def test_more_calls_than_anybody_makes_are_none() -> None:
    call = FORMS["hermes"]
    assert len(split(call * MAX_BLOCKS).tool_calls) == MAX_BLOCKS
    many = split(call * (MAX_BLOCKS + 1))
    assert (many.text, many.tool_calls, many.leaked) == ("", (), True)


# --- JSON among words -------------------------------------------------------------------------------


@each_case(
    "begun",
    [
        '{"name": "weather", "arguments": {"city":',
        '{"tool":"weather","arguments":{}}',
        '{"action": "weather", "action_input": {"city": "北京"}}',
        '{"type": "function", "function": {"name": "weather", "arguments": "{}"}}',
        '{"name":"weather"',
        '{"name":"weather"}',
        '{"name": "wea',
        '{"type": "function", "name": "weather", "arguments": {',
        '[{"name": "weather", "arguments": {}}, {"name":',
        '{"name": "weather", "arguments": {}}\n{"name": "weather", "arguments": {"city":',
    ],
)
@each_case("before", ["", "好的，我查一下。\n", "好的 ", "```py\nprint(1)\n```\n", '{"name": "x", "args": 1}\n'])
def test_a_call_as_json_that_cannot_be_taken_as_one_is_for_nobody(begun: str, before: str) -> None:
    def left(*tools: ToolSpec, given: tuple[str, ...] = (), name: str = "weather") -> tuple[str, bool]:
        answer = split_leaks(RawAnswer(text=before + begun), tools=tools, given=given, names={name})
        return answer.text, answer.leaked

    assert left(WEATHER) == (before.strip(), True)
    assert left() == (before.strip(), False)
    for as_it_is in (left(given=(f"说 {begun}",)), left(name="another")):
        assert as_it_is == (before + begun, False)


def test_words_around_a_call_as_json_are_told_and_what_somebody_sent_may_be_talked_about() -> None:
    call = '{"name": "weather", "arguments": {"city": "北京"}}'
    text, names = f"好的。\n{call}\n北京晴。\n{call}\n记得带伞。", {"weather"}
    told = split_leaks(RawAnswer(text=text), tools=(), names=names)
    assert [line for line in told.text.split("\n") if line] == ["好的。", "北京晴。", "记得带伞。"]
    about = RawAnswer(text=f"你发的是：\n{call}\n这是一个工具调用。")
    assert split_leaks(about, tools=(WEATHER,), given=(f"这是什么 {call}",), names=names) == about
    example = RawAnswer(text=f"这样写：\n```json\n{call}\n```\n就行。")
    assert split_leaks(example, tools=(WEATHER,), names=names) == example
