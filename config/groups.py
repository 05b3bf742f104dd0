"""The file of groups (GROUPS_FILE): what is otherwise in one of them than the settings say.

TOML, a [[group]] for each (`docs/personas.md` has each field).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.domain.errors import Problem
from config import values

SETTING = "GROUPS_FILE"
MEND = "Correct it as docs/personas.md says"
TABLE = "group"
MAX_RULES = 500  # characters: they stand in front of every question


class GroupRow(BaseModel):
    """One group: who the bot is there (a key of a persona, empty for the usual one), what its house
    rules are, how often it joins in unasked (0 to 1, None for BOT_CHANCE), and for whom tools are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=True)

    number: Annotated[int, Field(ge=1)]
    persona: Annotated[str, Field(max_length=64)] = ""
    rules: Annotated[str, Field(max_length=MAX_RULES)] = ""
    chance: Annotated[float, Field(ge=0, le=1)] | None = None
    tools_audience: dict[str, Literal["everyone", "group_admin", "owner"]] = Field(
        default_factory=dict
    )


def read_groups(
    file: Path | None, personas: Mapping[str, object]
) -> tuple[Mapping[int, GroupRow], tuple[Problem, ...]]:
    """The good rows by group, and a problem for all else; `personas` are all there are, by key."""
    if file is None:
        return {}, ()
    shown = values.shown_path(file)
    try:
        data = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        what = f"{shown} cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        what = f"{shown} is not UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        what = f"{shown} is not TOML: {error}"
    else:
        return _read_rows(data, file.name, personas)
    return {}, (Problem(SETTING, what, MEND),)


def _read_rows(
    data: dict[str, Any], file: str, personas: Mapping[str, object]
) -> tuple[Mapping[int, GroupRow], tuple[Problem, ...]]:
    rows = data.pop(TABLE, [])
    wrong = [f"{file} has {name}, which is no [[{TABLE}]]" for name in data]
    if not isinstance(rows, list):
        rows, wrong = [], [*wrong, f"{file} has a [{TABLE}]: each stands under [[{TABLE}]]"]
    good: dict[int, GroupRow] = {}
    for place, row in enumerate(rows, 1):
        try:
            read = GroupRow.model_validate(row)
        except ValidationError as error:
            wrong += [f"{file} row {place}: {complaint}" for complaint in _complaints(error)]
            continue
        if read.number in good:
            wrong.append(f"{file} row {place}: an earlier row has the group {read.number}")
        elif read.persona and read.persona not in personas:
            there = ", ".join(sorted(personas))
            wrong.append(f"{file} row {place}: persona: there are only {there}")
        else:
            good[read.number] = read
    return good, tuple(Problem(SETTING, what, MEND) for what in wrong)


def _complaints(error: ValidationError) -> Iterator[str]:
    """Each wrong field with its place; never its value."""
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in detail["loc"])
        yield f"{place}: {detail['msg']}" if place else detail["msg"]
