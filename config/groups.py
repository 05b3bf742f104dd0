"""The file of groups (GROUPS_FILE): what is otherwise in one of them than the settings say.

TOML, a [[group]] for each (`docs/personas.md` has each field).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.domain.errors import Problem
from config.tables import complaints, read_rows
from config.values import hours

SETTING = "GROUPS_FILE"
MEND = "Correct it as docs/personas.md says"
TABLE = "group"
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
    rows, wrong = read_rows(file, TABLE)
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
    return good, tuple(Problem(SETTING, what, MEND) for what in wrong)
