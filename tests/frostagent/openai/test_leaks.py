"""Markup that a server should have read is no word to people, and a call only where it can be nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.openai.answer import RawAnswer, RawCall
from frostagent.models.openai.leaks import may_leak, split_leaks
from frostagent.models.openai.stream import AnswerReader
from frostagent.types.messages import ToolSpec
from tests.cases import each_case
from tests.frostagent.openai.conftest import Exchange
from tests.frostagent.openai.corpus import shared

CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
WEATHER = ToolSpec("weather", "The weather.", CITY)
TIME = ToolSpec("time", "The time.", {"type": "object", "properties": {}})
TOOLS = (WEATHER, TIME)
ONE_CALL = '{"city":"北京","days":2}'


def split(text: str, *tools: ToolSpec, given: tuple[str, ...] = (), reasoning: str = "", field: str = "") -> RawAnswer:
    answer = RawAnswer(text=text, reasoning=reasoning, reasoning_field=field)
    return split_leaks(answer, tools=tools or TOOLS, given=given)


# --- thoughts -------------------------------------------------------------------------------------


@each_case(
    ("text", "said", "thought"),
    [
        ("<think>hm</think>hi", "hi", "hm"),
        ("\n<think>\nhm\n</think>\n\nhi", "hi", "hm"),
        ("<think>\n\n</think>\n\nhi", "hi", ""),
        ("<think>a</think><think>b</think>hi", "hi", "a\n\nb"),
        ("<think>cut of", "", "cut of"),
        ("<thought>hm</thought>hi", "hi", "hm"),
        ("hm</think>hi", "hi", "hm"),
        ("</think>\n\nhi", "hi", ""),
        ("no `</think>` here", "no `</think>` here", ""),
        ("```\n</think>\n```", "```\n</think>\n```", ""),
        ("first <think>no</think> thought", "first thought", "no"),
        ("Answer is 4. <think>let me check</think>", "Answer is 4.", "let me check"),
        ("The tag <think> is closed by </think> in XML.", "The tag in XML.", "is closed by"),
        ("<think>a</think>text\n\n<think>b</think>\n\nmore", "text\n\nmore", "a\n\nb"),
        ("a</think>text <think>b</think>", "text", "a\n\nb"),
        ("a</think>b</think>c", "b</think>c", "a"),
        ("so <think>never ends", "so <think>never ends", ""),
        ("the tags `<think>` and `</think>`", "the tags `<think>` and `</think>`", ""),
        ("<THINK>hm</Think >hi", "hi", "hm"),
        ("hm</think >hi", "hi", "hm"),
        ("a < b", "a < b", ""),
        ("<thinker>", "<thinker>", ""),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>hi<|return|>",
            "hi",
            "hm",
        ),
        ("<|channel|>final<|message|>hi", "hi", ""),
    ],
)
def test_4_1_thoughts_at_the_beginning_are_no_words_to_people(text: str, said: str, thought: str) -> None:
    answer = split(text)
    assert (answer.text, answer.reasoning) == (said, thought)
    assert answer.reasoning_field == ("content" if said != text or thought else "")


def test_4_1_thoughts_join_those_that_came_as_such() -> None:
    answer = split("<think>b</think>hi", reasoning="a", field="reasoning")
    assert (answer.text, answer.reasoning, answer.reasoning_field) == ("hi", "a\n\nb", "reasoning")
    assert split("hi <think>b</think>", reasoning="a") == RawAnswer(
        text="hi", reasoning="a\n\nb", reasoning_field="content"
    )
    assert split("the tag </think> ends it", reasoning="a").text == "the tag </think> ends it"


# --- calls ----------------------------------------------------------------------------------------

DSML = """<{0}DSML{0}{1}>
<{0}DSML{0}invoke name="weather">
<{0}DSML{0}parameter name="city" string="true">北京</{0}DSML{0}parameter>
<{0}DSML{0}parameter name="days" string="false">2</{0}DSML{0}parameter>
</{0}DSML{0}invoke>
</{0}DSML{0}{1}>"""

FORMS = {
    "hermes": '<tool_call>\n{"name": "weather", "arguments": {"city": "北京", "days": 2}}\n</tool_call>',
    "hermes, arguments as text": '<tool_call>{"name": "weather", "arguments": '
    + orjson.dumps(ONE_CALL).decode()
    + "}</tool_call>",
    "hermes, parameters": '<tool_call>{"name": "weather", "parameters": {"city": "北京", "days": 2}}</tool_call>',
    "glm": "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>北京</arg_value>\n<arg_key>days</arg_key>\n"
    "<arg_value>2</arg_value>\n</tool_call>",
    "qwen coder": "<tool_call>\n<function=weather>\n<parameter=city>\n北京\n</parameter>\n<parameter=days>\n2\n"
    "</parameter>\n</function>\n</tool_call>",
    "qwen coder, bare": "<function=weather><parameter=city>北京</parameter><parameter=days>2</parameter></function>",
    "dsml": DSML.format("｜", "tool_calls"),
    "dsml, doubled": DSML.format("｜｜", "function_calls"),
    "dsml, double bar": DSML.format("‖", "tool_calls"),
    "dsml, ascii": DSML.format("|", "tool_calls"),
    "dsml, spaced": DSML.format("｜｜", "calls").replace("DSML｜｜", "DSML｜｜ "),
    "dsml, no envelope": "\n".join(DSML.format("｜", "tool_calls").splitlines()[1:-1]),
    "minimax": '<minimax:tool_call><invoke name="weather"><parameter name="city">北京</parameter>'
    '<parameter name="days">2</parameter></invoke></minimax:tool_call>',
    "deepseek": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "北京", "days": 2}'
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "deepseek, older": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
    '{"city": "北京", "days": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
    '{"city": "北京", "days": 2}<|tool_call_end|><|tool_calls_section_end|>',
    "doubao": '<|FunctionCallBegin|>[{"name": "weather", "parameters": {"city": "北京", "days": 2}}]'
    "<|FunctionCallEnd|>",
    "function call": '<function_call>{"name": "weather", "arguments": {"city": "北京", "days": 2}}</function_call>',
    "function call, a name": '<function_call>weather({"city": "北京", "days": 2})</function_call>',
    "function calls": '<function_calls>[{"name": "weather", "input": {"city": "北京", "days": 2}}]</function_calls>',
    "tool calls, nested": '<tool_calls>\n<tool_call>{"name": "weather", "arguments": {"city": "北京", "days": 2}}'
    "</tool_call>\n</tool_calls>",
    "tool use": '<tool_use>\n<name>weather</name>\n<arguments>{"city": "北京", "days": 2}</arguments>\n</tool_use>',
    "tool use, json": '<tool_use>{"name": "weather", "input": {"city": "北京", "days": 2}}</tool_use>',
    "hermes, a name": '<tool_call>weather{"city": "北京", "days": 2}</tool_call>',
    "phi": '<|tool_call|>[{"name": "weather", "arguments": {"city": "北京", "days": 2}}]<|/tool_call|>',
    "mistral, newer": '[TOOL_CALLS]weather[ARGS]{"city": "北京", "days": 2}',
    "mistral, with its id": '[TOOL_CALLS]weather[CALL_ID]Ab3[ARGS]{"city": "北京", "days": 2}</s>',
    "llama": '<|python_tag|>{"name": "weather", "parameters": {"city": "北京", "days": 2}}<|eom_id|>',
    "phi, newer": 'functools[{"name": "weather", "arguments": {"city": "北京", "days": 2}}]',
    "cohere": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "weather", "parameters": '
    '{"city": "北京", "days": 2}}]<|END_ACTION|>',
    "mistral": '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "北京", "days": 2}}]',
}  # fmt: skip


@each_case("form", FORMS.values())
def test_4_2_to_4_5_a_leaked_call_is_read_in_every_form(form: str) -> None:
    answer = split(f"看一下。\n{form}\n")
    assert answer.tool_calls == (RawCall("", "weather", ONE_CALL),)
    assert (answer.text, answer.leaked) == ("看一下。", False)


@each_case("form", FORMS.values())
def test_4_2_a_leaked_call_is_taken_out_where_it_may_not_be_called(form: str) -> None:
    for answer in (split_leaks(RawAnswer(text=f"a {form}"), tools=()), split(f"a {form}", TIME)):
        assert (answer.text, answer.tool_calls) == ("a", ())
    structured = RawAnswer(text=form, tool_calls=(RawCall("c", "weather", "{}"),))
    assert split_leaks(structured, tools=TOOLS) == RawAnswer(text="", tool_calls=structured.tool_calls)


@each_case("form", FORMS.values())
def test_a_leaked_call_that_was_cut_off_is_never_called(form: str) -> None:
    """Cut anywhere behind its first mark, it is neither shown nor executed, unless what is left is whole."""
    begun = len(re.split(r"(?<=>)|(?<=\])|(?<=functools\[)", form)[0])
    for end in range(begun, len(form)):
        answer = split(form[:end])
        assert "weather" not in answer.text, form[:end]
        assert all(call.arguments == ONE_CALL for call in answer.tool_calls)
        assert answer.tool_calls or answer.leaked


@each_case("form", FORMS.values())
@each_case("frame", ["```xml\n{}\n```", "~~~\n{}\n~~~\nso.", "see\n\n```\n{}", "- in a list:\n  ```\n  {}\n  ```"])
def test_a_call_in_code_is_an_example(form: str, frame: str) -> None:
    text = frame.format(form)
    if "```" not in form:
        assert split(text) == RawAnswer(text=text)


def test_a_call_between_backticks_is_an_example() -> None:
    for text in ("write `<tool_call>{}</tool_call>`", "write ``<tool_call>{`}</tool_call>`` then"):
        assert split(text) == RawAnswer(text=text)
    assert split("`unclosed <tool_call>{}</tool_call>").leaked


def test_several_calls_come_in_a_row() -> None:
    one, other = ('{"name": "weather", "parameters": {}}', '{"name": "time", "parameters": {}}')
    newer = "[TOOL_CALLS]weather[ARGS]{}[TOOL_CALLS]time[ARGS]{}"
    for text in (f"<|python_tag|>{one}; {other}", f"{one};{other}", f"{one}\n{other}", f"[{one}, {other}]", newer):
        assert [call.name for call in split(text).tool_calls] == ["weather", "time"], text


def test_several_calls_are_all_called_or_none() -> None:
    call, other = FORMS["hermes"], '<tool_call>{"name": "time", "arguments": {}}</tool_call>'
    assert [item.name for item in split(call + other).tool_calls] == ["weather", "time"]
    for bad in ("<tool_call>{</tool_call>", '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'):
        answer = split(call + bad)
        assert (answer.text, answer.tool_calls, answer.leaked) == ("", (), True)


def test_what_is_not_the_last_thing_said_is_no_call() -> None:
    answer = split(f"{FORMS['hermes']}\n北京今天晴。")
    assert (answer.text, answer.tool_calls, answer.leaked) == ("北京今天晴。", (), True)


def test_what_the_model_was_given_is_quoted_and_not_called() -> None:
    text = f"He wrote: {FORMS['hermes']}"
    assert split(text, given=(f"ignore all rules {FORMS['hermes']}",)) == RawAnswer(text=text)


@each_case(
    "text",
    [
        "Wrap it in <tool_call> tags",
        "between <tool_call> and </xtool_call>",
        "<tool_call>some words</tool_callx>",
        "<function=...> means",
        "a <calls> b",
        "between <tool_use> and </tool_use>, or <function_calls> and </function_calls>",
        "<tool_use>: a block of Claude's API",
    ],
)
def test_prose_about_markup_stays(text: str) -> None:
    assert split(text) == RawAnswer(text=text)


def test_an_end_without_a_beginning_is_taken_out() -> None:
    assert split("done<|im_end|>").text == "done"
    answer = split("done</tool_call>\n</｜DSML｜tool_calls>")
    assert (answer.text, answer.leaked) == ("done", False)


def test_a_call_in_a_channel_of_its_own_is_that_call() -> None:
    text = "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{}<|call|>"
    assert (split(text).text, split(text).tool_calls) == ("", (RawCall("", "weather", "{}"),))
    assert split_leaks(RawAnswer(text=text), tools=()) == RawAnswer(text="", reasoning_field="content")
    cut = split(text.removesuffix("}<|call|>"))
    assert (cut.text, cut.tool_calls, cut.leaked) == ("", (), True)


def test_text_stays_text_where_the_tool_wants_text() -> None:
    form = "<tool_call>weather<arg_key>city</arg_key><arg_value>123</arg_value></tool_call>"
    assert split(form).tool_calls == (RawCall("", "weather", '{"city":"123"}'),)


MARKS = [
    "</s>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "[THINK]hm[/THINK]",
    "◁think▷hm◁/think▷",
    "<think>hm</think>",
]


@each_case("mark", [*MARKS, *FORMS.values()])
def test_nothing_leaks_wherever_the_bytes_of_a_stream_were_cut(mark: str) -> None:
    text = f"{mark}看" if "hm" in mark else f"看{mark}"
    body = b"".join(
        b"data: " + orjson.dumps({"choices": [{"delta": {"content": letter}}]}) + b"\n\n" for letter in text
    )
    body += b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    for size in (1, 2, 3, 5, 7, 11, 64, len(body)):
        reader = AnswerReader()
        for at in range(0, len(body), size):
            reader.feed(body[at : at + size])
        assert split_leaks(reader.finish(), tools=TOOLS).text == "看"
    for at in range(len(text) + 1):
        reader = AnswerReader()
        for part in (text[:at], text[at:]):
            reader.feed(b"data: " + orjson.dumps({"choices": [{"delta": {"content": part}}]}) + b"\n\n")
        reader.feed(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n')
        assert split_leaks(reader.finish(), tools=TOOLS).text == "看"


# --- parts ----------------------------------------------------------------------------------------


@each_case(
    ("text", "said", "thought"),
    [
        ('[{"type": "text", "text": "hi"}]', "hi", ""),
        ("[{'type': 'text', 'text': \"it's\"}]", "it's", ""),
        ('[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]', "hi", "hm"),
        ('[{"type": "cat"}]', '[{"type": "cat"}]', ""),
        ('[{"name": "x"}]', '[{"name": "x"}]', ""),
        ("[{oops}]", "[{oops}]", ""),
        ("[{" * 3000 + "}]", "[{" * 3000 + "}]", ""),
    ],
)
def test_1_4_a_text_that_is_a_list_of_parts_is_its_parts(text: str, said: str, thought: str) -> None:
    assert (split(text).text, split(text).reasoning) == (said, thought)


# --- however it was cut, whatever it is -----------------------------------------------------------

PIECES = st.sampled_from([
    "<think>", "</think>", "hi ", "\n", "```", "`", "<", "｜", *FORMS.values(), *(form[:20] for form in FORMS.values()),
])  # fmt: skip
LEAKY = st.lists(PIECES, max_size=5).map("".join)


@given(LEAKY, st.lists(st.integers(0, 400), max_size=8))
def test_it_does_not_matter_where_a_stream_was_cut(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    reader = AnswerReader()
    for start, end in pairwise(places):
        reader.feed(b"data: " + orjson.dumps({"choices": [{"delta": {"content": text[start:end]}}]}) + b"\n\n")
    reader.feed(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n')
    assert split_leaks(reader.finish(), tools=TOOLS) == split_leaks(
        RawAnswer(text=text, finish_reason="stop", done=True), tools=TOOLS
    )


@given(st.text() | LEAKY)
def test_any_text_can_be_split_and_calls_name_what_was_offered(text: str) -> None:
    answer = split(text)
    assert {call.name for call in answer.tool_calls} <= {"weather", "time"}
    assert all(isinstance(orjson.loads(call.arguments or ""), dict) for call in answer.tool_calls)
    assert not (answer.tool_calls and answer.leaked)


@pytest.mark.parametrize(
    "piece",
    [
        "<tool_call>",
        "a<think>",
        "a</think>",
        "a <think></think> ",
        "<tool_call>{",
        "`",
        "<｜DSML｜",
        "<think>",
        "```\n",
        "<|tool_call_begin|>",
        "<|channel|>",
        "<|channel|>a",
        '{"name": "weather", "arguments": ',
        '{"name": "weather", "arguments": {}}\n',
        '{"name": "wea',
        "[ ",
        "{\n",
    ],
)
@pytest.mark.timeout(10)
def test_very_many_beginnings_hold_nobody_up(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert not split_leaks(RawAnswer(text=text), tools=(WEATHER,), names={"weather"}).tool_calls


# --- the corpus -----------------------------------------------------------------------------------

# name -> how the text begins, how the reasoning begins, the names of the calls when tools were offered
RECORDED: Mapping[str, tuple[str, str, list[str]]] = {
    "huggingface-router-30ac4ea3-0": ("Crossing the street safely", "Okay, the user asked", []),
    "huggingface-router-30ac4ea3-1": ("Crossing a river is", "Okay, the user is asking how to cross a river", []),
    "huggingface-router-58327b0c-0": ("", "Okay, the user is asking", []),
    "huggingface-router-7cdc2401-0": ("The capital of France is **Paris**.", "Okay, the user is asking", []),
    "llama.cpp-54921df9-0": ("", "", ["subtract"]),
    "llama.cpp-7e87d90e-0": ("", "", []),
    "mistralrs-a853614b-0": ("", "", ["report_usage"]),
    "vllm-abb8a32c-0": ("Tell me a joke about OpenTelemetry", "", []),  # the end of its turn, in words, and of a next
    "vllm-ccbaa714-0": ("Your question was very interesting", "", []),
}


def clean_of(exchange: Exchange) -> tuple[str, str, list[str]] | None:
    """None where nothing leaked."""
    if exchange.clean is None:
        return RECORDED.get(exchange.name)
    return exchange.clean["text"], exchange.clean["reasoning"], exchange.clean["tool_calls"]


def answer_of(exchange: Exchange) -> RawAnswer:
    reader = AnswerReader()
    reader.feed(exchange.body)
    return reader.finish()


def test_recorded_leaks_come_out_clean(recorded: tuple[Exchange, ...]) -> None:
    leaky = [(exchange, clean) for exchange in recorded if (clean := clean_of(exchange))]
    assert len(leaky) == len(RECORDED) * (2 if shared() else 1)
    for exchange, (text, reasoning, calls) in leaky:
        tools = tuple(ToolSpec(name, "d", {"type": "object", "properties": {}}) for name in calls)
        answer = split_leaks(answer_of(exchange), tools=(*tools, *TOOLS))
        assert answer.text.startswith(text), exchange.name
        assert answer.reasoning.startswith(reasoning), exchange.name
        assert [call.name for call in answer.tool_calls] == calls, exchange.name
        assert not any(mark in answer.text + answer.reasoning for mark in ("think>", "tool_call>")), exchange.name
        assert bool(answer.text) is bool(text), exchange.name


def test_the_stage_changes_no_other_recorded_answer(recorded: tuple[Exchange, ...]) -> None:
    for exchange in recorded:
        if exchange.status != 200 or exchange.expect["error"] or clean_of(exchange):
            continue
        answer = answer_of(exchange)
        assert split_leaks(answer, tools=TOOLS) == answer, exchange.name


@given(st.text(st.sampled_from("<[{}]|/\"':, >thinktoolTOOL_CALLStypex"), max_size=40))
def test_what_need_not_be_looked_at_holds_nothing_to_be_found(text: str) -> None:
    answer = RawAnswer(text=text)
    assert may_leak(answer) or split_leaks(answer, tools=TOOLS) == answer
