"""Names and ids in the alphabets of the vendors, and the names' way back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.openai.dialects import DIALECTS, Dialect
from frostagent.models.openai.tools import names_back, read_name, write_id, write_name
from frostagent.types.messages import ToolSpec
from tests.cases import each_case

ROWS: Mapping[str, Dialect] = {row.name: row for row in reversed(DIALECTS)}


@given(st.text())
def test_6_6_every_name_can_be_written_and_found_again(name: str) -> None:
    written = write_name(name)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", written)
    assert write_name(written) == written
    assert read_name(written, names_back([ToolSpec(name, "d", {})])) == name


def test_6_6_what_can_stay_of_a_name_stays_and_like_names_differ() -> None:
    assert write_name("get_weather") == "get_weather"
    assert write_name("mcp.github.search").startswith("mcp_github_search_")
    assert write_name("天气").startswith("tool_")
    assert len({write_name(name) for name in ("a.b", "a:b", "a b", "天气", "时间")}) == 5


@each_case("name", ["f", "functions.f", "default_api:f", "tools.f", "f<|channel|>commentary", "functions.f:0", "f:12"])
def test_4_6_a_name_in_its_wrapping_is_found(name: str) -> None:
    assert read_name(name, {"f": "ours"}) == "ours"


@each_case("name", ["F", "ff", "functions.g", "", "xfunctions.f"])
def test_4_6_a_name_that_only_resembles_one_stays(name: str) -> None:
    assert read_name(name, {"f": "ours"}) == name


@given(st.text(), st.sampled_from(list(ROWS.values())), st.lists(st.text(), max_size=3), st.integers(0, 99))
def test_6_8_every_id_can_be_written_once_for_all(
    identity: str, dialect: Dialect, taken: list[str], index: int
) -> None:
    written = write_id(identity, "f", index, taken, dialect)
    assert re.fullmatch(dialect.ids, written)
    assert written not in taken
    assert write_id(written, "f", index, taken, dialect) == written
    assert write_id(identity, "f", index, taken, dialect) == written


def test_6_8_the_forms_vendors_know_best() -> None:
    assert write_id("call_1", "f", 3, (), ROWS["kimi"]) == "functions.f:3"
    assert write_id("functions.f:7", "f", 3, (), ROWS["kimi"]) == "functions.f:7"
    assert len(write_id("call_1", "f", 3, (), ROWS["mistral"])) == 9
    assert write_id("x" * 41, "f", 3, (), ROWS["openai"]).startswith("call_")
