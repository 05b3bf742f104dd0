"""What is told of an answer that is still on its way is a prefix of what is left of it in the end."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, pairwise

import aiohttp
import orjson
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.models.openai.answer import RawAnswer
from frostagent.models.openai.client import OpenAIModel
from frostagent.models.openai.dialects import OPENAI, PLAIN, Dialect
from frostagent.models.openai.history import Origin
from frostagent.models.openai.stream import AnswerReader
from frostagent.models.openai.streaming import InlineThoughts, StreamedText, TextGate
from frostagent.models.openai.wire import known_names, read_answer
from frostagent.types.errors import ModelError, ModelTransport
from frostagent.types.messages import (
    Completion,
    Delta,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextDiscarded,
    ToolSpec,
    UserMessage,
)
from tests.cases import each_case
from tests.data.markup import entries, leaked_calls, pairs
from tests.frostagent.openai.conftest import Vendor
from tests.frostagent.openai.test_leaked_markup import TOOLS

LOOKS_BACK = ("</think>", "</thinking>", "</mm:think>", "</analysis>", "assistantfinal")
"""Ends of thoughts which, without a beginning, make thoughts of the text before them."""


def corpus() -> Iterator[tuple[str, str]]:
    """Texts, and the reasoning that came in a field before."""
    for text, _ in (*pairs("thoughts.txt"), *pairs("citations.txt")):
        has_field = text.startswith("+reasoning\n")
        yield text.removeprefix("+reasoning\n"), "hm" if has_field else ""
    yield from ((text, "") for _, text, _, _ in leaked_calls())
    yield from ((text, "") for text in entries("honest.txt"))


def left(text: str, reasoning: str, *, tools: tuple[ToolSpec, ...] = TOOLS, dialect: Dialect = PLAIN) -> str | None:
    """The text that is left of the whole answer; None where the model is asked again."""
    ids = map(str, count())
    try:
        return read_answer(
            RawAnswer(text=text, reasoning=reasoning, finish_reason="stop"),
            request=ModelRequest((UserMessage("小明: 北京天气"),), tools),
            origin=Origin("api.example", "m"),
            dialect=dialect,
            new_id=lambda: next(ids),
        ).message.text.strip()
    except ModelError:
        return None


def told(
    pieces: list[str], *, reasoning: str = "", within: bool = False, marked: bool = True, tools: bool = True
) -> str:
    names = [tool.name for tool in TOOLS] if tools else []
    gate = TextGate(names=names, is_marked=marked, within_thoughts=within, has_field=bool(reasoning))
    return "".join(map(gate.feed, pieces))


def cut(text: str, places: list[int]) -> list[str]:
    places = [0, *sorted({place for place in places if 0 < place < len(text)}), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def looks_back(text: str) -> bool:
    """Whether it has an end of thoughts that were not opened at the beginning."""
    return any(end in text for end in LOOKS_BACK) and not text.lstrip().startswith(("<", "analysis"))


@each_case("within", [False, True])
def test_at_every_boundary_of_the_corpora_what_is_told_is_left_in_the_end(within: bool) -> None:
    wrong = []
    for tools, dialect in ((TOOLS, PLAIN), ((), PLAIN), (TOOLS, OPENAI)):
        for text, reasoning in corpus():
            if (final := left(text, reasoning, tools=tools, dialect=dialect)) is None:
                continue
            if not within and dialect.leaks and looks_back(text):
                continue  # nobody can know; see the tests of the next section
            places = range(1, len(text)) if dialect.leaks and tools else ()
            for pieces in (list(text), *([text[:place], text[place:]] for place in places)):
                shown = told(pieces, reasoning=reasoning, within=within, marked=dialect.leaks, tools=bool(tools))
                if not final.startswith(shown):
                    wrong.append((text, reasoning, shown, final))
                    break
    assert wrong == []


FRAGMENTS = (
    *("<think>", "hm", "你好", "。", " ", "\n", "\n\n", "`", "```\n", "```json\n", "~~~\n", "> ", "* ", "**"),
    *("Hello", "world", "<tool_call>", "</tool_call>", '{"name": "get_weather", "arguments": {"city": "北京"}}'),
    *("get_weather", "(", ")", "city=1", "Action: ", "Action Input:", "to=", "functions.x", "final ", "fin"),
    *("al ", "assistant ", "stay_silent", "NO_REPLY", "[", "]", "【", "】", "(调用工具: f)", "[TOOL_CALLS]", "<b>"),
    *("</b>", "<", "< ", "1", "[^1^]", "cite", "turn", "0se", "citeturn0search0", "turn1news2", "【3†source】"),
    *("<co: 0>", "\ue200cite\ue202turn0search0\ue201", "<answer>", "<analysis>", "court", "call", "invoke name="),
    *("xai:", '<xai:function_call name="get_weather">', "<|im_end|>", "<|im_start|>user", "✿FUNCTION✿: ", "{"),
    *("}", '"', ":", ",", "tool_call>", "😀", "time", "{}", "functools[{", "image", "i", "t", "```time\n"),
)  # fmt: skip


@given(
    st.lists(st.sampled_from(FRAGMENTS), max_size=9).map("".join),
    st.lists(st.integers(1, 60), max_size=30),
    st.booleans(),
)
@example("~~~\n```time\n~~~\nAction Input:<|im_start|>user(", [3], True)
@example("final to=functions.x{}", [6, 8], True)
@example("你好citeturn0search0。", [4, 6, 8], True)
def test_whatever_is_said_and_however_it_is_cut(text: str, places: list[int], tools: bool) -> None:
    final = left(text, "", tools=TOOLS if tools else ())
    if final is not None and not re.search(r"\w:(?:invoke|tool_call>)", text):  # any word may be a namespace
        assert final.startswith(told(cut(text, places), tools=tools))
        assert final.startswith(told(list(text), tools=tools))


@each_case(
    "text",
    [
        "你好呀，今天天气不错。",
        "if a < b and b > c: print(x[0])",
        "See [the docs](https://a.cn/x) (all of them): **bold**, `code` and <b>tags</b>.",
        "```python\nfor i in range(3):\n    print(i < 2, [1], {'a': 1})\n```\nThat is all.",
        "1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "The final analysis: turn to the assistant, cite it, call it in action.",
        "【标题】正文（见下）……「引用」",
    ],
)
def test_plain_words_and_code_are_told_as_they_come(text: str) -> None:
    gate = TextGate(names=("get_weather",))
    shown, behind = "", 0
    for index, letter in enumerate(text, 1):
        shown += gate.feed(letter)
        behind = max(behind, index - len(shown))
    assert shown == text.strip() or text.strip().startswith(shown)
    assert behind <= 14  # the longest here is a span of code, or the line that opens a fence


def test_thoughts_that_open_at_the_beginning_are_told_as_thoughts() -> None:
    gate = TextGate()
    assert "".join(map(gate.feed, "\n<think>\n想想看。\n</think>\n\n你好呀。")) == "你好呀。"
    assert "".join(gate.thoughts).strip() == "想想看。"


# --- thoughts without a beginning -----------------------------------------------------------------

INLINE = "想想用户要什么。\n</think>\n\n你好呀。"


def chunk(**delta: str) -> bytes:
    return b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": delta}]}) + b"\n\n"


END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def stream(text: str, inline: InlineThoughts, *, reasoning: str = "") -> tuple[list[Delta], str]:
    """The deltas of an answer that comes letter by letter, and its final text."""
    reader, deltas, request = AnswerReader(), list[Delta](), ModelRequest((UserMessage("hi"),))
    streamed = StreamedText(reader, deltas.append, names=known_names(request), is_marked=True, inline=inline)
    for piece in (chunk(reasoning_content=reasoning), *(chunk(content=letter) for letter in text), END):
        reader.feed(piece)
        streamed.read()
    answer = reader.finish()
    said = read_answer(answer, request=request, origin=Origin("a", "m"), dialect=PLAIN, new_id=str)
    return deltas, streamed.finish(said, answer).message.text


def text_of(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@each_case("model", ["deepseek-r1:14b", "QwQ-32B", "qwen3-30b-thinking", "MiniMax-M2", "gpt-oss-20b"])
def test_a_model_that_is_known_to_think_in_its_text_is_held_until_its_thoughts_end(model: str) -> None:
    deltas, text = stream(INLINE, InlineThoughts(model))
    assert (text, text_of(deltas)) == ("你好呀。", "你好呀。")
    assert deltas[0] == ReasoningDelta("想想用户要什么。")
    assert len(deltas) == 5  # the words one by one


def test_a_server_that_was_seen_doing_so_is_held_from_then_on() -> None:
    inline = InlineThoughts("m")
    deltas, text = stream(INLINE, inline)
    assert text_of(deltas) == text == "想想用户要什么。\n\n你好呀。"  # what was told is not taken back
    deltas, text = stream(INLINE, inline)
    assert text_of(deltas) == text == "你好呀。"
    for pieces in (1, 1, 1, 4):  # until it is seen to do so no more
        deltas, text = stream("你好呀。", inline)
        assert (text_of(deltas), len(deltas)) == (text, pieces)


def test_halves_of_a_character_are_told_as_one() -> None:
    gate = TextGate()
    assert "".join(map(gate.feed, ["好", "\ud83d", "\ude00", "。\ud83d", "x"])) == "好😀。\ufffdx"


def test_a_model_of_such_a_name_that_does_not_do_so_is_held_once() -> None:
    inline = InlineThoughts("deepseek-r1")
    for pieces in (1, 4):
        deltas, text = stream("你好呀。", inline)
        assert (text_of(deltas), len(deltas)) == (text, pieces)


def test_thoughts_in_a_field_of_their_own_are_apart() -> None:
    deltas, text = stream("你好呀。", InlineThoughts("deepseek-r1"), reasoning="hm")
    assert (text, deltas[0], len(deltas)) == ("你好呀。", ReasoningDelta("hm"), 5)


@each_case("model", ["gpt-4.1", "qwen3-max", "claude-sonnet-4-5", "grok-4-1-fast-non-reasoning", "deepseek-v4-flash"])
def test_other_models_are_not_held(model: str) -> None:
    assert not InlineThoughts(model).may_begin(has_field=False)


@given(st.lists(st.sampled_from((*FRAGMENTS, *LOOKS_BACK, "<|channel|>final<|message|>")), max_size=8).map("".join))
@example("Question: 你好</think>\n好")
def test_the_final_text_of_a_streamed_answer_is_what_was_told(text: str) -> None:
    try:
        deltas, final = stream(text, InlineThoughts("m"))
    except (ModelError, ModelTransport):
        return
    assert text_of(deltas) == final.strip()


# --- over HTTP ------------------------------------------------------------------------------------

Ask = Callable[[Callable[[Delta], None]], Awaitable[Completion]]


@pytest.fixture
def ask(vendor: Vendor, session: aiohttp.ClientSession) -> Ask:
    """Ask the vendor, and be told the deltas."""
    model = OpenAIModel(session=session, base_url=vendor.url, api_key="", model="m")
    return lambda tell: model.complete(ModelRequest((UserMessage("hi"),), on_delta=tell))


async def test_chunks_that_are_cut_anywhere_are_told_whole(vendor: Vendor, ask: Ask) -> None:
    body = b"".join(
        [chunk(reasoning_content="想"), *(chunk(content=letter) for letter in "苍鹭吃🐟，<b>frogs</b>。"), END]
    )
    vendor.say(*(body[at : at + 7] for at in range(0, len(body), 7)))
    deltas: list[Delta] = []
    completion = await ask(deltas.append)
    assert text_of(deltas) == completion.message.text == "苍鹭吃🐟，<b>frogs</b>。"
    assert deltas[0] == ReasoningDelta("想")


async def test_the_first_words_are_told_while_the_rest_is_still_to_come(vendor: Vendor, ask: Ask) -> None:
    told_first = asyncio.Event()
    times: list[float] = []
    deltas: list[Delta] = []

    async def play(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(chunk(role="assistant"))
        times.append(time.monotonic())
        await response.write(chunk(content="hel"))
        await told_first.wait()
        await response.write(chunk(content="lo") + END)
        return response

    def hear(delta: Delta) -> None:
        deltas.append(delta)
        times.append(time.monotonic())
        told_first.set()

    vendor.plays.append(play)
    async with asyncio.timeout(10):
        assert (await ask(hear)).message.text == "hello"
    assert deltas == [TextDelta("hel"), TextDelta("lo")]
    assert times[1] - times[0] < 0.1  # it takes under 5 ms; this machine may be busy


async def test_an_answer_that_is_asked_for_twice_is_discarded_before(vendor: Vendor, ask: Ask) -> None:
    vendor.say(chunk(content="one"), b"data: [DONE]\n\n")
    vendor.say(chunk(content="two"), END)
    deltas: list[Delta] = []
    assert (await ask(deltas.append)).message.text == "two"
    assert deltas == [TextDelta("one"), TextDiscarded(), TextDelta("two")]


def test_who_listens_makes_no_other_request() -> None:
    request = ModelRequest((UserMessage("hi"),))
    assert replace(request, on_delta=print) == request
