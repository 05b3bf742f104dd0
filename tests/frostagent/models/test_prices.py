from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.prices import KnownModels, ModelRow, Price, read_known
from frostagent.types.errors import ConfigError
from frostagent.types.messages import Usage
from tests.cases import each_case

KNOWN = read_known()


def own(tmp_path: Path, text: str) -> KnownModels:
    """The tables with an operator's file of this text."""
    file = tmp_path / "prices.toml"
    file.write_text(text, "utf-8")
    return read_known(file)


def problem(tmp_path: Path, text: str) -> str:
    """What is said about such a file."""
    with pytest.raises(ConfigError) as caught:
        own(tmp_path, text)
    [problem] = caught.value.problems
    assert problem.name == "LLM_PRICES"
    return str(problem)


# --- whose row it is --------------------------------------------------------------------------------


@each_case("model", ["gpt-4o", "GPT-4o", "openai/gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-latest", "gpt-4o:free"])
def test_a_row_is_for_a_model_whatever_its_edition(model: str) -> None:
    assert ModelRow(name="gpt-4o").names(model)


@each_case("model", ["gpt-4o-mini", "gpt-4", "gpt-4o-audio-preview", "my-gpt-4o", ""])
def test_a_row_is_for_no_other_model(model: str) -> None:
    assert not ModelRow(name="gpt-4o").names(model)


def test_a_price_holds_at_its_hosts_and_a_window_everywhere() -> None:
    price = KNOWN.price("gpt-4o-mini", "api.openai.com")
    assert price == Price(prompt=0.15, cached=0.075, completion=0.6)
    assert KNOWN.price("gpt-4o-mini", "API.OpenAI.com:443") == price
    assert KNOWN.price("gpt-4o-mini", "proxy.test") is None
    assert KNOWN.window("gpt-4o-mini") == KNOWN.window("openai/gpt-4o-mini") == 128_000


def test_what_nobody_knows_has_neither_price_nor_window() -> None:
    assert KNOWN.price("frost-1", "api.openai.com") is None
    assert KNOWN.window("frost-1") is None
    assert not KNOWN.sees("frost-1")


def test_a_price_in_yuan_is_told_in_dollars() -> None:
    price = KNOWN.price("deepseek-v4-pro", "api.deepseek.com")
    assert price is not None
    assert price.prompt == pytest.approx(9 / 7.1)
    assert price.cached < price.prompt < price.completion


def test_who_sees_pictures_is_known_of_some_and_the_operators_word_counts(tmp_path: Path) -> None:
    assert KNOWN.sees("openai/gpt-4o-2024-08-06")
    assert not KNOWN.sees("deepseek-chat")
    rows = '[[model]]\nname = "{}"\n'
    known = own(tmp_path, rows.format("gpt-4o") + "pictures = false\n" + rows.format("frost-1") + "pictures = true\n")
    assert known.sees("frost-1")
    assert not known.sees("gpt-4o")
    assert known.sees("gpt-4o-mini")
    assert own(tmp_path, rows.format("gpt-4o")).sees("gpt-4o")


def test_every_row_of_ours_can_be_looked_up_by_its_own_name() -> None:
    [table] = KNOWN.tables
    assert len({row.name for row in table.model}) == len(table.model)
    for row in table.model:
        assert KNOWN.window(row.name) == row.context
        assert (KNOWN.price(row.name, row.hosts[0] if row.hosts else "") is None) is (row.input is None)
        assert row.hosts or row.input is None, "our prices are some host's"


# --- what it comes to -------------------------------------------------------------------------------


def test_cached_tokens_cost_what_the_vendor_asks_for_them() -> None:
    price = Price(prompt=2, cached=0.5, completion=8)
    assert price.of(Usage(prompt=3_000_000, cached=1_000_000, completion=500_000)) == 4 + 0.5 + 4
    assert price.of(Usage()) == 0
    assert price.of(Usage(prompt=10, cached=20)) == price.of(Usage(prompt=10, cached=10))


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_more_tokens_never_cost_less(prompt: int, cached: int, completion: int) -> None:
    price = Price(prompt=2, cached=0.5, completion=8)
    cost = price.of(Usage(prompt, completion, cached))
    assert 0 <= cost <= price.of(Usage(prompt + 1, completion, cached))
    assert cost <= price.of(Usage(prompt, completion + 1, cached))


# --- an operator's own ------------------------------------------------------------------------------

MINE = """
[rates]
EUR = 0.9

[[model]]
name = "frost-1"
context = 4096
currency = "EUR"
input = 0.9
output = 1.8

[[model]]
name = "gpt-4o"
hosts = ["api.openai.com"]
input = 1
output = 2

[[model]]
name = "glm-4.6"
currency = "CNY"
input = 14.2
cached = 7.1
output = 14.2
"""


def test_an_operators_rows_win_and_the_others_stay(tmp_path: Path) -> None:
    known = own(tmp_path, MINE)
    assert known.window("frost-1") == 4096
    assert known.price("frost-1", "anywhere.test") == Price(prompt=1, cached=1, completion=2)
    assert known.price("gpt-4o", "api.openai.com") == Price(prompt=1, cached=1, completion=2)
    assert known.window("gpt-4o") == 128_000
    assert known.price("glm-4.6", "anywhere.test") == Price(prompt=2, cached=1, completion=2)
    assert known.price("gpt-4o-mini", "api.openai.com") == KNOWN.price("gpt-4o-mini", "api.openai.com")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[model]\n", "is not TOML"),
        ("[[model]]\ncontext = 1\n", "model.0.name"),
        ('[[model]]\nname = "m"\ninput = 1\n', "only one of input and output"),
        ('[[model]]\nname = "m"\ninput = -1\noutput = 1\n', "model.0.input"),
        ('[[model]]\nname = "m"\ninptu = 1\n', "model.0.inptu"),
        ('[[model]]\nname = "m"\ncurrency = "XAU"\ninput = 1\noutput = 1\n', "no rate for it"),
        ("[rates]\nCNY = 0\n", "rates.CNY"),
    ],
)
def test_a_mistake_in_it_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert said in problem(tmp_path, text)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="LLM_PRICES"):
        read_known(tmp_path / "no.toml")
    (tmp_path / "prices.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="LLM_PRICES"):
        read_known(tmp_path / "prices.toml")
