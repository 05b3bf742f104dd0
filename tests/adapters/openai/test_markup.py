"""Where markup is in a text, and what calls it holds; what becomes of it is tested in `test_leaks`."""

from __future__ import annotations

import pytest

from adapters.openai.markup import MAX_BLOCK, Block, find_blocks
from bot.domain.chat import ToolSpec

TOOL = ToolSpec("f", "d", {"type": "object", "properties": {"a": {"type": "string"}}})
TOOLS = {"f": TOOL}


def found(text: str) -> list[Block]:
    return list(find_blocks(text, TOOLS))


def test_blocks_are_found_in_order_with_their_places() -> None:
    text = 'x <tool_call>{"name":"f","arguments":{}}</tool_call> y </tool_call> <tool_call>{"name'
    whole, stray, cut = found(text)
    assert text[whole.start : whole.end].endswith("}</tool_call>")
    assert whole.calls == [("f", {})]
    assert text[stray.start : stray.end] == "</tool_call>"
    assert stray.is_stray
    assert (text[cut.start :], cut.is_closed, cut.calls) == ('<tool_call>{"name', False, None)


@pytest.mark.parametrize(
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
