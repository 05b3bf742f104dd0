"""Values into the text of a `.env`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.setup.files import fill_env
from config.sources import read_env_file
from frostagent.types.errors import ConfigError
from tests.cases import each_case

EXAMPLE = Path(__file__).parents[4] / ".env.example"


def read(text: str) -> dict[str, str]:
    """The values our own reader finds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ".env"
        file.write_bytes(text.encode())
        return {line.name: line.value for line in read_env_file(file)}


def test_a_value_stands_where_its_name_was_set_and_the_comments_stay() -> None:
    text = "# why\nA=old\n\n# (1) the key\nB = 'x y' # remark\nC=1\n"
    assert fill_env(text, {"A": "new", "B": "z"}) == "# why\nA=new\n\n# (1) the key\nB=z # remark\nC=1\n"


def test_a_name_that_is_commented_out_is_switched_on_where_it_stands() -> None:
    assert fill_env("# about it\n#A=1\n# A=2\nB=\n", {"A": "7"}) == "# about it\nA=7\n# A=2\nB=\n"


def test_a_name_that_is_nowhere_comes_last() -> None:
    assert fill_env("A=1", {"B": "2", "C": ""}) == "A=1\nB=2\n"


def test_an_empty_value_empties_what_is_set_and_leaves_what_is_not() -> None:
    assert fill_env("A=1\n#B=1\n", {"A": "", "B": ""}) == "A=\n#B=1\n"


def test_a_name_that_is_set_twice_has_the_value_in_both_places() -> None:
    assert read(fill_env("A=1\nA='2\n3'\n", {"A": "4"})) == {"A": "4"}


def test_a_value_that_others_would_change_stands_in_single_quotes() -> None:
    assert fill_env("", {"A": "a$HOME #1"}) == "A='a$HOME #1'\n"


@each_case("value", ["it's", "a\\b", "a\nb"])
def test_a_value_no_env_file_holds_for_everybody_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="A: has a quote"):
        fill_env("", {"A": value})


writable = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="'\\\x85")
)


@given(st.dictionaries(st.sampled_from(["LLM_API_KEY", "LLM_MODEL", "BOT_OWNERS", "NEW"]), writable, min_size=1))
def test_what_is_written_is_what_is_read(values: dict[str, str]) -> None:
    text = EXAMPLE.read_text("utf-8")
    found = read(fill_env(text, values))
    assert {name: found.get(name, "") for name in values} == values
    assert {name: value for name, value in found.items() if name not in values} == {
        name: value for name, value in read(text).items() if name not in values
    }


def test_filling_twice_changes_nothing_more() -> None:
    values = {"LLM_API_KEY": "k", "BOT_OWNERS": "1", "NEW": "x y"}
    once = fill_env(EXAMPLE.read_text("utf-8"), values)
    assert fill_env(once, values) == once
