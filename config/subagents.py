"""The file of subagents (SUBAGENTS_FILE): what a row may say, and reading it (`docs/subagents.md`
has each field).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from bot.domain.errors import Problem
from config import values
from config.tables import complaints, read_rows

SETTING = "SUBAGENTS_FILE"
MEND = "Correct it as docs/subagents.md says"
CODER = "Coder"  # the one that is there without a file, with a description and a prompt of its own
NESTED = "use_subagent"
TABLE = "subagent"
NAME = re.compile(r"[\w-]{1,32}")


def _check_name(name: str) -> str:
    # Not by a pattern of the library's: of 32 letters of any alphabet it takes 3.7 MB.
    if not NAME.fullmatch(name):
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
    rows, wrong = read_rows(file, TABLE)
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
    return tuple(good.values()), tuple(Problem(SETTING, what, MEND) for what in wrong)


def key_names(file: Path | None) -> tuple[str, ...]:
    """The variables that the file names, as far as it can be read."""
    if file is None:
        return ()
    named = [row.get("api_key") for row in read_rows(file, TABLE)[0] if isinstance(row, dict)]
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
