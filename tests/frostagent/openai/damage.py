"""Histories with every kind of damage, and schemas of every kind, for the property tests of the writer."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from frostagent.models.openai.history import Origin
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

ORIGIN = Origin("api.example", "m")
PICTURE = "data:image/png;base64,AA=="

TEXTS = st.sampled_from(["", " \n", "\0", "\0hi\0", "\ud83d", "😀", "hi", "a\n\nb", "{}", '{"a":1}', "[1]", "x" * 50])
IDS = st.sampled_from([
    "a", "b", "", " ", "0", "call_1", "functions.f:0", "functions.f:1", "f:2", "abcdefghi", "日本", "x" * 41, "y" * 90,
    "chatcmpl-tool-0123456789abcdef0123456789abcdef", "a.b/c", "\ud83d",
])  # fmt: skip
NAMES = st.sampled_from(["f", "g", "get_weather", "天气.查询", "", " ", "a.b", "a:b", "_x", "9", "x" * 100, "mcp__a-b"])
ARGUMENTS = st.sampled_from(["{}", '{"a":1}', "", "null", "[]", '{"a"', "{}{}", '"{}"', '{"a":"\\ud83d"}', "\0{}"])
EXTRAS = st.sampled_from([
    "", "{", "[]", '{"note":1}', '{"id":"stolen"}', '{"extra_content":{"google":{"thought_signature":"s"}}}',
    '{"extra_content":{"google":null}}', '{"extra_content":5}',
])  # fmt: skip
OWNERS = st.sampled_from(
    [(ORIGIN.endpoint, ORIGIN.model), (ORIGIN.endpoint, "m2"), ("elsewhere.example", "m"), ("", "")]
)
DETAILS = st.sampled_from(["", "[]", "{", '[{"type":"reasoning.text","text":"x"}]'])
IMAGES = st.lists(
    st.sampled_from([PICTURE, "data:image/heic;base64,AA", "https://a.example/b.png", "data:image/gif;base64,"]),
    max_size=2,
).map(tuple)

calls = st.builds(ToolCall, IDS, NAMES, ARGUMENTS, EXTRAS)
reasonings = st.builds(
    lambda text, owner, details: Reasoning(text, owner[0], owner[1], "reasoning_content", details),
    TEXTS,
    OWNERS,
    DETAILS,
)
systems = st.builds(SystemMessage, TEXTS)
users = st.builds(UserMessage, TEXTS, IMAGES)
assistants = st.builds(AssistantMessage, TEXTS, st.lists(calls, max_size=3).map(tuple), st.none() | reasonings)
results = st.builds(ToolMessage, IDS, NAMES, TEXTS, st.booleans(), IMAGES)
messages: st.SearchStrategy[Message] = systems | users | assistants | results


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Message, ...]:
    """A transcript as it should be, with messages lost, said twice, or in another place."""
    whole: list[Message] = [SystemMessage("be kind")]
    for _ in range(draw(st.integers(1, 3))):
        whole.append(draw(users))
        for assistant in draw(st.lists(assistants, max_size=2)):
            whole.append(assistant)
            whole += (
                ToolMessage(call.id, call.name, draw(TEXTS), images=draw(IMAGES)) for call in assistant.tool_calls
            )
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(whole) - 1))
        match draw(st.sampled_from(["lose", "repeat", "move", "strange"])):
            case "lose" if len(whole) > 1:
                del whole[place]
            case "repeat":
                whole.insert(place, whole[place])
            case "move":
                whole.insert(draw(st.integers(0, len(whole) - 1)), whole.pop(place))
            case _:
                whole.insert(place, draw(messages))
    return tuple(whole)


WORDS = st.sampled_from([
    "type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "$schema", "$defs", "const", "enum",
    "additionalProperties", "default", "title", "format", "uniqueItems", "strict", "nullable", "description",
])  # fmt: skip
ANYTHING = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["string", "array", "null", "a", "#", "#/$defs/a"])
)
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/properties/a", "https://a.example/schema"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["a", "b", "type", "const"]), inner, max_size=3)
    word = st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", "integer", "null", ["null", "array"], ["x"], "any"]),
            "properties": named | ANYTHING,
            "required": st.lists(st.sampled_from(["a", "b", "c"]), max_size=2) | ANYTHING,
            "items": inner | st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=3) | ANYTHING,
            "allOf": st.lists(inner, max_size=2),
            "$ref": REFERENCES | ANYTHING,
            "$defs": named,
            "const": ANYTHING,
            "additionalProperties": inner,
        },
    )
    return word | st.dictionaries(WORDS, inner, max_size=3)


schemas: st.SearchStrategy[Any] = st.recursive(ANYTHING, _schemas, max_leaves=12)
objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(WORDS, schemas, max_size=4) | schemas.filter(
    lambda schema: isinstance(schema, dict)
)
tools = st.lists(
    st.builds(ToolSpec, NAMES, TEXTS, objects), max_size=3, unique_by=lambda tool: tool.name
).map(tuple)  # fmt: skip

requests = st.builds(ModelRequest, damaged() | st.lists(messages, max_size=8).map(tuple), tools)
