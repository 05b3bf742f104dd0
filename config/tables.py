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
from pydantic_core import ErrorDetails

from config import values
from config.values import hours
from frostagent.text.language import Bilingual, Language, text_in, text_of
from frostagent.types.errors import Problem

TOML_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)$")
FIELD_ZH = {
    "missing": "没有写",
    "extra_forbidden": "没有这一项",
    "int_type": "要写整数",
    "float_type": "要写数字",
    "finite_number": "要写有限的数字",
    "string_type": "要写文字",
    "string_too_short": "至少 {min_length} 个字",
    "string_too_long": "最多 {max_length} 个字",
    "too_long": "最多 {max_length} 项",
    "list_type": "要写列表",
    "dict_type": "要写成表",
    "model_type": "要写成表",
    "greater_than_equal": "不能小于 {ge}",
    "less_than_equal": "不能大于 {le}",
    "literal_error": "只能写 {expected}",
}
"""What pydantic says of a field, by its type of error."""


def read_rows(file: Path, table: str) -> tuple[list[Any], list[Bilingual]]:
    """The rows under [[table]], unchecked, and what is wrong with the file itself."""
    shown = values.shown_path(file)
    try:
        data = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        why = values.why_unreadable(error)
        return [], [Bilingual(f"{shown} cannot be read {why}", f"{shown} 读不了{why.zh}")]
    except UnicodeDecodeError:
        return [], [Bilingual(f"{shown} is not UTF-8 text", f"{shown} 不是 UTF-8 文本")]
    except tomllib.TOMLDecodeError as error:
        found = TOML_PLACE.search(str(error))
        place = f"第 {found[1]} 行第 {found[2]} 个字附近" if found else "到末尾还没写完"
        what = Bilingual(f"{shown} is not TOML: {error}", f"{shown} 不是正确的 TOML：{place}")
        return [], [what]
    rows = data.pop(table, [])
    wrong = [
        Bilingual(
            f"{file.name} has {name}, which is no [[{table}]]",
            f"{file.name} 里有 {name}，只能写 [[{table}]]",
        )
        for name in data
    ]
    if not isinstance(rows, list):
        what = Bilingual(
            f"{file.name} has a [{table}]: each stands under [[{table}]]",
            f"{file.name} 里写了 [{table}]：每一项都要写在 [[{table}]] 下面",
        )
        return [], [*wrong, what]
    return rows, wrong


def complaints(error: ValidationError) -> Iterator[Bilingual]:
    """Each wrong field with its place; never its value."""
    for detail in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in detail["loc"])
        message = field_complaint(detail)
        yield _at(place, message) if place else message


def field_complaint(detail: ErrorDetails) -> Bilingual:
    """What is wrong with one field: never its value, unless a validator of ours repeats it."""
    message, context = detail["msg"].removeprefix("Value error, "), detail.get("ctx", {})
    match context.get("error"):
        case values.Wrong() as wrong:
            zh = f"{text_in(Language.CHINESE, wrong.what)}。{text_in(Language.CHINESE, wrong.mend)}"
        case Exception() as error:
            zh = text_of(error).zh
        case _:
            facts = {
                name: f"{fact:.12g}"
                if isinstance(fact, float)
                else str(fact).replace(" or ", " 或 ")
                for name, fact in context.items()
            }
            zh = FIELD_ZH.get(detail["type"], "写法不对").format(**facts)
    return Bilingual(message, zh)


def _at(place: str, what: str) -> Bilingual:
    """It with its place in front."""
    return Bilingual(
        f"{place}: {what}", f"{text_in(Language.CHINESE, place)}：{text_in(Language.CHINESE, what)}"
    )


def _at_row(file: Path, row: int, name: str = "") -> Bilingual:
    return Bilingual(f"{file.name} row {row}{name}", f"{file.name} 第 {row} 项{name}")


# --- groups ---------------------------------------------------------------------------------------


GROUPS_SETTING = "GROUPS_FILE"
GROUPS_MEND = Bilingual("Correct it as docs/personas.md says", "按 docs/zh/personas.md 改正")
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
    for number, row in enumerate(rows, 1):
        place = _at_row(file, number)
        try:
            read = GroupRow.model_validate(row)
        except ValidationError as error:
            wrong += [_at(place, complaint) for complaint in complaints(error)]
            continue
        if read.number in good:
            earlier = Bilingual(
                f"an earlier row has the group {read.number}", f"前面已经写过群 {read.number}"
            )
            wrong.append(_at(place, earlier))
        elif read.persona and read.persona not in personas:
            there = ", ".join(sorted(personas))
            only = Bilingual(f"persona: there are only {there}", f"persona：只有 {there}")
            wrong.append(_at(place, only))
        else:
            good[read.number] = read
    return good, tuple(Problem(GROUPS_SETTING, what, GROUPS_MEND) for what in wrong)


# --- subagents ------------------------------------------------------------------------------------


SUBAGENTS_SETTING = "SUBAGENTS_FILE"
SUBAGENTS_MEND = Bilingual("Correct it as docs/subagents.md says", "按 docs/zh/subagents.md 改正")
CODER = "Coder"  # the one that is there without a file, with a description and a prompt of its own
NESTED = "use_subagent"
SUBAGENTS_TABLE = "subagent"
SUBAGENT_NAME = re.compile(r"[\w-]{1,32}")


def _check_name(name: str) -> str:
    # Not by a pattern of the library's: of 32 letters of any alphabet it takes 3.7 MB.
    if not SUBAGENT_NAME.fullmatch(name):
        raise ValueError(
            Bilingual(
                "must be 1 to 32 letters, digits, - or _, without blanks",
                "要写 1 到 32 个文字、数字、- 或 _，不能有空格",
            )
        )
    return name


def _check_tool(name: str) -> str:
    if name == NESTED:
        raise ValueError(
            Bilingual(
                f"a subagent cannot ask others: take {NESTED} out",
                f"子代理不能再叫别的子代理，去掉 {NESTED}",
            )
        )
    return name


def _check_key(name: str) -> str:
    # What stands there may be a key, so it is not repeated.
    if name and not (name.isascii() and name.isidentifier()):
        raise ValueError(
            Bilingual(
                "must be the NAME of an environment variable, never the key itself",
                "要写环境变量的名字，不能写密钥本身",
            )
        )
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
        is_shown = isinstance(name, str) and name.isprintable() and name
        place = _at_row(file, number, f" ({str(name)[:32]})" if is_shown else "")
        try:
            read = SubagentRow.model_validate(row)
        except ValidationError as error:
            wrong += [_at(place, complaint) for complaint in complaints(error)]
            continue
        wrong += [_at(place, complaint) for complaint in _wrong_with(read, keys)]
        if read.name.casefold() in good:
            earlier = Bilingual("an earlier row has the same name", "前面已经有同名的一项")
            wrong.append(_at(place, earlier))
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


def _wrong_with(row: SubagentRow, keys: Mapping[str, SecretStr]) -> Iterator[Bilingual]:
    if not row.is_coder:
        yield from (
            Bilingual(f"{field}: is missing", f"{field}：没有写")
            for field in ("description", "prompt")
            if not getattr(row, field).strip()
        )
    if row.api_key and row.api_key not in keys:
        yield Bilingual(
            f"api_key: the variable {row.api_key} was not set when the bot started",
            f"api_key：启动时没有设置 {row.api_key}",
        )
    elif row.api_key:
        try:
            values.keys(keys[row.api_key])
        except values.Wrong as wrong:
            yield Bilingual(
                f"api_key: the variable {row.api_key} {wrong.what}",
                f"api_key：{row.api_key} {text_in(Language.CHINESE, wrong.what)}",
            )
