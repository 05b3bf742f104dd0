from __future__ import annotations

import json
from typing import Any

import pytest

from frostagent.engine.external_tools import foreign_tool
from frostagent.types.errors import InvalidArguments
from frostagent.types.schema import UnsuitableType
from tests.cases import each_case
from tests.frostagent.engine.test_external_tools import weather


def test_every_wrong_field_is_told_as_our_own_tools_tell_it() -> None:
    with pytest.raises(InvalidArguments) as caught:
        weather().read('{"unit": "kelvin", "days": [{"n": "x"}], "town": "Rome"}')
    assert caught.value.fields == (
        "location: required",
        "days.0.n: 'x' is not of type 'integer'",
        "unit: 'kelvin' is not one of ['celsius', 'fahrenheit']",
        "town: no such field, leave it out",
    )


@each_case("ref", ["file:///etc/hostname", "http://127.0.0.1:1/schema", "#/$defs/nope", "other.json"])
@each_case("depth", [0, 1])
def test_a_schema_that_refers_to_what_is_not_in_it_is_refused_where_the_tool_is_defined(ref: str, depth: int) -> None:
    node: dict[str, Any] = {"$ref": ref}
    schema = {"properties": {"a": {"anyOf": [True, node]} if depth else node}}
    with pytest.raises(UnsuitableType, match=r"the schema refers to .*, which is not in it"):
        foreign_tool("find_it", "Finds.", schema, None)


@each_case(
    ("pattern", "fits", "wrong"),
    [("^[a-z]+$", "abc", "abc\n"), ("^(a$|b)", "b\n", "a\n"), (r"^[$]\$$", "$$", "$$\n"), ("^[]$]$", "$", "$\n")],
)
def test_the_end_of_a_pattern_is_the_end_of_the_text(pattern: str, fits: str, wrong: str) -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    tool = foreign_tool("find_it", "Finds.", schema, None)
    assert tool.read(json.dumps({"a": fits})).plain == {"a": fits}
    with pytest.raises(InvalidArguments, match="does not match"):
        tool.read(json.dumps({"a": wrong}))
