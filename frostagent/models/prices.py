"""The table of models (`models.toml`): context windows, token prices, vision.

An operator's rows (LLM_PRICES) take precedence. Nothing is guessed: an unlisted model has no
window, no price and no vision.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from frostagent.types.errors import ConfigError, Problem
from frostagent.types.messages import Usage

BUILT_IN = Path(__file__).with_name("models.toml")
MILLION = 1_000_000
DOLLAR = "USD"

EDITION = re.compile(r"(-(\d[\d-]*|latest|preview|exp))*")
"""What may follow a model's name without naming another model."""

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ModelRow(BaseModel):
    """One model. The keys are explained at the top of `models.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: Annotated[str, Field(min_length=1)]
    context: Annotated[int | None, Field(ge=1)] = None
    hosts: tuple[str, ...] = ()
    currency: str = DOLLAR
    input: Amount | None = None
    cached: Amount | None = None
    output: Amount | None = None
    pictures: bool | None = None

    @model_validator(mode="after")
    def _both_ways(self) -> ModelRow:
        if (self.input is None) != (self.output is None):
            raise ValueError("has only one of input and output")
        return self

    def names(self, model: str) -> bool:
        """Whether this row is for a model of that name, on any host."""
        found = model.lower().rsplit("/", 1)[-1].partition(":")[0]
        name = self.name.lower()
        return found.startswith(name) and EDITION.fullmatch(found[len(name) :]) is not None

    def holds_at(self, host: str) -> bool:
        """Whether the prices apply to that host."""
        return not self.hosts or any(
            host == known or host.endswith("." + known) for known in self.hosts
        )


class ModelTable(BaseModel):
    """A file of rows. `rates` are units of a currency per US dollar."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    rates: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {}
    model: tuple[ModelRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `cached` is for prompt tokens from the vendor's cache."""

    prompt: float
    cached: float
    completion: float

    def of(self, usage: Usage) -> float:
        """The price of that usage in US dollars."""
        cached = min(usage.cached, usage.prompt)
        fresh = usage.prompt - cached
        return (
            fresh * self.prompt + cached * self.cached + usage.completion * self.completion
        ) / MILLION


@dataclass(frozen=True, slots=True)
class KnownModels:
    """The tables of models; the first with a value wins."""

    tables: tuple[ModelTable, ...] = ()

    def window(self, model: str) -> int | None:
        """The model's context window in tokens, prompt and answer together; None if unknown."""
        found = (
            row.context
            for table in self.tables
            for row in table.model
            if row.context and row.names(model)
        )
        return next(found, None)

    def sees(self, model: str) -> bool:
        """Whether the model accepts pictures; False if unknown."""
        rows = (row for table in self.tables for row in table.model if row.names(model))
        return next((row.pictures for row in rows if row.pictures is not None), False)

    def price(self, model: str, host: str) -> Price | None:
        """The model's price at that host (with or without a port); None if unknown."""
        host = host.lower().partition(":")[0]
        for table in self.tables:
            for row in table.model:
                if (
                    row.input is not None
                    and row.output is not None
                    and row.names(model)
                    and row.holds_at(host)
                ):
                    rate = 1.0 if row.currency == DOLLAR else self._rate(row.currency)
                    cached = row.input if row.cached is None else row.cached
                    return Price(row.input / rate, cached / rate, row.output / rate)
        return None

    def _rate(self, currency: str) -> float:
        return next(table.rates[currency] for table in self.tables if currency in table.rates)


def read_known(file: Path | None = None) -> KnownModels:
    """The operator's table, if any, before the built-in one. Raises ConfigError for a bad file."""
    ours = _built_in()
    return KnownModels((_read(file, ours.rates), ours) if file else (ours,))


@cache
def _built_in() -> ModelTable:
    return _read(BUILT_IN, {})


def _read(file: Path, rates: Mapping[str, float]) -> ModelTable:
    """Read a file. `rates` are available in addition to its own."""
    fix = "Write its rows as docs/models.md describes them"
    try:
        table = ModelTable.model_validate(tomllib.loads(file.read_text("utf-8-sig")))
    except OSError as error:
        raise ConfigError(
            Problem("LLM_PRICES", f"{file} cannot be read ({error.strerror})", fix)
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(
            Problem("LLM_PRICES", f"{file} has a mistake at {place}: {first['msg']}", fix)
        ) from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise ConfigError(Problem("LLM_PRICES", f"{file} is not TOML ({error})", fix)) from None
    known = {DOLLAR, *table.rates, *rates}
    for row in table.model:
        if row.currency not in known:
            what = f"{file} has prices in {row.currency}, but no rate for it"
            raise ConfigError(
                Problem(
                    "LLM_PRICES", what, f"Say under [rates] how many {row.currency} a dollar is"
                )
            )
    return table
