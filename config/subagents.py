"""The file of subagents (SUBAGENTS_FILE): what a row may say, and reading it (`docs/subagents.md`
has each field).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from bot.domain.errors import Problem
from config import values

SETTING = "SUBAGENTS_FILE"
MEND = "Correct it as docs/subagents.md says"
CODER = "Coder"  # the one that is there without a file, with a description and a prompt of its own
NESTED = "use_subagent"
TABLE = "subagent"


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

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=True)

    name: Annotated[str, Field(pattern=r"^[\w-]{1,32}$")]
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
    try:
        data = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        what = f"{values.shown_path(file)} cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        what = f"{file} is not UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        what = f"{file} is not TOML: {error}"
    else:
        return _read_rows(data, file.name, keys)
    return (), (Problem(SETTING, what, MEND),)


def key_names(file: Path | None) -> tuple[str, ...]:
    """The variables that the file names, as far as it can be read."""
    if file is None:
        return ()
    try:
        rows = tomllib.loads(file.read_text("utf-8-sig")).get(TABLE, [])
    except (OSError, ValueError):
        return ()
    named = (
        [row.get("api_key") for row in rows if isinstance(row, dict)]
        if isinstance(rows, list)
        else []
    )
    return tuple(
        dict.fromkeys(name for name in named if isinstance(name, str) and name.isidentifier())
    )


def _read_rows(
    data: dict[str, Any], file: str, keys: Mapping[str, SecretStr]
) -> tuple[tuple[SubagentRow, ...], tuple[Problem, ...]]:
    rows = data.pop(TABLE, [])
    problems = [
        Problem(SETTING, f"{file} has {name}, which is no [[{TABLE}]]", MEND) for name in data
    ]
    if not isinstance(rows, list):
        return (), (
            *problems,
            Problem(SETTING, f"{file} has a [{TABLE}]: each stands under [[{TABLE}]]", MEND),
        )
    good: dict[str, SubagentRow] = {}
    for number, row in enumerate(rows, 1):
        name = row.get("name") if isinstance(row, dict) else None
        place = f"{file} row {number}" + (
            f" ({name[:32]})" if isinstance(name, str) and name else ""
        )
        try:
            read = SubagentRow.model_validate(row)
        except ValidationError as error:
            problems += [
                Problem(SETTING, f"{place}: {complaint}", MEND) for complaint in _complaints(error)
            ]
            continue
        wrong = list(_wrong_with(read, keys))
        if read.name.casefold() in good:
            wrong.append("an earlier row has the same name")
        problems += [Problem(SETTING, f"{place}: {complaint}", MEND) for complaint in wrong]
        good.setdefault(read.name.casefold(), read)
    return tuple(good.values()), tuple(problems)


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


def _complaints(error: ValidationError) -> Iterator[str]:
    """Each wrong field with its place; never its value."""
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ")
        yield f"{place}: {message}" if place else message
