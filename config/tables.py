"""TOML files of rows, each under its [[table]]: groups (GROUPS_FILE, `docs/personas.md`) and
subagents (SUBAGENTS_FILE, `docs/subagents.md`). What a row may say, and what is wrong with it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
)

from config import values
from config.values import hours
from frostagent.types.errors import Problem


def read_rows(file: Path, table: str) -> tuple[list[Any], list[str]]:
    """The rows under [[table]], unchecked, and what is wrong with the file itself."""
    shown = values.shown_path(file)
    try:
        data = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        return [], [f"{shown} cannot be read ({error.strerror})"]
    except UnicodeDecodeError:
        return [], [f"{shown} is not UTF-8 text"]
    except tomllib.TOMLDecodeError as error:
        return [], [f"{shown} is not TOML: {error}"]
    rows = data.pop(table, [])
    wrong = [f"{file.name} has {name}, which is no [[{table}]]" for name in data]
    if not isinstance(rows, list):
        return [], [*wrong, f"{file.name} has a [{table}]: each stands under [[{table}]]"]
    return rows, wrong


def complaints(error: ValidationError) -> Iterator[str]:
    """Each wrong field with its place; never its value."""
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ")
        yield f"{place}: {message}" if place else message


# --- groups ---------------------------------------------------------------------------------------


GROUPS_SETTING = "GROUPS_FILE"
GROUPS_MEND = "Correct it as docs/personas.md says"
GROUPS_TABLE = "group"
MAX_RULES = 500  # characters: they stand in front of every question


class GroupRow(BaseModel):
    """One group: who the bot is there (a key of a persona, empty for the usual one), what its house
    rules are, how often it joins in unasked (0 to 1), for whom tools are, when it keeps quiet and
    how (minutes of the day, as `hours` reads them), and what a day of it may take, in US dollars
    and in tokens (0: no limit); None is as everywhere.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, strict=True, defer_build=True
    )

    number: Annotated[int, Field(ge=1)]
    persona: Annotated[str, Field(max_length=64)] = ""
    rules: Annotated[str, Field(max_length=MAX_RULES)] = ""
    chance: Annotated[float, Field(ge=0, le=1)] | None = None
    quiet: Annotated[tuple[tuple[int, int], ...], BeforeValidator(hours)] | None = None
    quiet_mode: Literal["weak", "all"] | None = None
    day_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    day_tokens: Annotated[int, Field(ge=0)] | None = None
    tools_audience: dict[str, Literal["everyone", "group_admin", "owner"]] = Field(
        default_factory=dict
    )


def read_groups(
    file: Path | None, personas: Mapping[str, object]
) -> tuple[Mapping[int, GroupRow], tuple[Problem, ...]]:
    """The good rows by group, and a problem for all else; `personas` are all there are, by key."""
    if file is None:
        return {}, ()
    rows, wrong = read_rows(file, GROUPS_TABLE)
    good: dict[int, GroupRow] = {}
    for place, row in enumerate(rows, 1):
        try:
            read = GroupRow.model_validate(row)
        except ValidationError as error:
            wrong += [f"{file.name} row {place}: {complaint}" for complaint in complaints(error)]
            continue
        if read.number in good:
            wrong.append(f"{file.name} row {place}: an earlier row has the group {read.number}")
        elif read.persona and read.persona not in personas:
            there = ", ".join(sorted(personas))
            wrong.append(f"{file.name} row {place}: persona: there are only {there}")
        else:
            good[read.number] = read
    return good, tuple(Problem(GROUPS_SETTING, what, GROUPS_MEND) for what in wrong)


# --- subagents ------------------------------------------------------------------------------------


SUBAGENTS_SETTING = "SUBAGENTS_FILE"
SUBAGENTS_MEND = "Correct it as docs/subagents.md says"
CODER = "Coder"  # the one that is there without a file, with a description and a prompt of its own
NESTED = "use_subagent"
SUBAGENTS_TABLE = "subagent"
SUBAGENT_NAME = re.compile(r"[\w-]{1,32}")


def _check_name(name: str) -> str:
    # Not by a pattern of the library's: of 32 letters of any alphabet it takes 3.7 MB.
    if not SUBAGENT_NAME.fullmatch(name):
        raise ValueError("must be 1 to 32 letters, digits, - or _, without blanks")
    return name


def _check_tool(name: str) -> str:
    if name == NESTED:
        raise ValueError(f"a subagent cannot ask others: take {NESTED} out")
    return name


def _check_key(name: str) -> str:
    # What stands there may be a key, so it is not repeated.
    if name and not (name.isascii() and name.isidentifier()):
        raise ValueError("must be the NAME of an environment variable, never the key itself")
    return name


class SubagentRow(BaseModel):
    """One subagent, as the file says it. Empty model, base url and key are those of the Coder, or
    the main model's.

    `max_tokens` counts what all its requests and answers take, 0 for no limit; `deadline` is in
    seconds, less than a run has.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, strict=True, defer_build=True
    )

    name: Annotated[str, AfterValidator(_check_name)]
    description: Annotated[str, Field(max_length=500)] = ""
    prompt: Annotated[str, Field(max_length=50_000)] = ""
    base_url: Annotated[str, AfterValidator(values.base_url)] = ""
    model: str = ""
    api_key: Annotated[str, AfterValidator(_check_key)] = ""
    tools: list[Annotated[str, AfterValidator(_check_tool)]] = Field(default_factory=list)
    max_steps: Annotated[int, Field(ge=1, le=64)] = 8
    max_tokens: Annotated[int, Field(ge=0, le=10_000_000)] = 200_000
    deadline: Annotated[float, Field(ge=5, le=240)] = 120.0

    @property
    def is_coder(self) -> bool:
        """Whether it stands in for the built-in one."""
        return self.name.casefold() == CODER.casefold()


def read_subagents(
    file: Path | None, keys: Mapping[str, SecretStr]
) -> tuple[tuple[SubagentRow, ...], tuple[Problem, ...]]:
    """The good rows, and a problem for all else that is wrong; `keys` are the variables that may be
    named.
    """
    if file is None:
        return (), ()
    rows, wrong = read_rows(file, SUBAGENTS_TABLE)
    good: dict[str, SubagentRow] = {}
    for number, row in enumerate(rows, 1):
        name = row.get("name") if isinstance(row, dict) else None
        place = f"{file.name} row {number}" + (
            f" ({name[:32]})" if isinstance(name, str) and name.isprintable() and name else ""
        )
        try:
            read = SubagentRow.model_validate(row)
        except ValidationError as error:
            wrong += [f"{place}: {complaint}" for complaint in complaints(error)]
            continue
        wrong += [f"{place}: {complaint}" for complaint in _wrong_with(read, keys)]
        if read.name.casefold() in good:
            wrong.append(f"{place}: an earlier row has the same name")
        good.setdefault(read.name.casefold(), read)
    return tuple(good.values()), tuple(
        Problem(SUBAGENTS_SETTING, what, SUBAGENTS_MEND) for what in wrong
    )


def key_names(file: Path | None) -> tuple[str, ...]:
    """The variables that the file names, as far as it can be read."""
    if file is None:
        return ()
    named = [
        row.get("api_key") for row in read_rows(file, SUBAGENTS_TABLE)[0] if isinstance(row, dict)
    ]
    return tuple(
        dict.fromkeys(name for name in named if isinstance(name, str) and name.isidentifier())
    )


def _wrong_with(row: SubagentRow, keys: Mapping[str, SecretStr]) -> Iterator[str]:
    if not row.is_coder:
        yield from (
            f"{field}: is missing"
            for field in ("description", "prompt")
            if not getattr(row, field).strip()
        )
    if row.api_key and row.api_key not in keys:
        yield f"api_key: the variable {row.api_key} was not set when the bot started"
    elif row.api_key:
        try:
            values.keys(keys[row.api_key])
        except values.Wrong as wrong:
            yield f"api_key: the variable {row.api_key} {wrong.what}"
