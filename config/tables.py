"""TOML files of rows under a [[table]]: groups (GROUPS_FILE, `docs/personas.md`) and subagents
(SUBAGENTS_FILE, `docs/subagents.md`). Defines the fields of a row and reports problems.
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

from bot.core.language import Bilingual, Language, Phrase, text_in, text_of
from config import values
from config.values import clock_time, hours
from frostagent.types.errors import Problem

TOML_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)$")
NEAR = Phrase("第 {line} 行第 {column} 个字附近", "near line {line}, column {column}")
UNFINISHED = Phrase("到末尾还没写完", "the end of the file comes too early")
UNREADABLE = Phrase("{file} 读不了{why}", "{file} cannot be read {why}")
NOT_UTF8 = Phrase("{file} 不是 UTF-8 文本", "{file} is not UTF-8 text")
NOT_TOML = Phrase("{file} 不是正确的 TOML：{place}", "{file} is not TOML: {place}")
STRANGE = Phrase(
    "{file} 里有 {name}，只能写 [[{table}]]", "{file} has {name}, but may only have [[{table}]]"
)
ONE_TABLE = Phrase(
    "{file} 里写了 [{table}]：每一项都要写在 [[{table}]] 下面",
    "{file} has [{table}]: write each row under [[{table}]]",
)
AT = Phrase("{place}：{what}", "{place}: {what}")
AT_ROW = Phrase("{file} 第 {row} 项{name}", "{file} row {row}{name}")
WHOLE = Phrase("要写整数", "must be a whole number")
DECIMAL = Phrase("要写数字", "must be a number")
TABLE = Phrase("要写成表", "must be a table")
FIELD: Mapping[str, Phrase] = {
    "missing": Phrase("没有写", "is missing"),
    "extra_forbidden": Phrase("没有这一项", "is not a known field"),
    "bool_type": Phrase("要写 true 或 false", "must be true or false"),
    "int_type": WHOLE,
    "int_parsing": WHOLE,
    "int_from_float": WHOLE,
    "float_type": DECIMAL,
    "float_parsing": DECIMAL,
    "finite_number": Phrase("要写有限的数字", "must be a finite number"),
    "string_type": Phrase("要写文字", "must be text"),
    "string_too_short": Phrase(
        "至少 {min_length} 个字", "must have at least {min_length} characters"
    ),
    "string_too_long": Phrase(
        "最多 {max_length} 个字", "must have at most {max_length} characters"
    ),
    "too_long": Phrase("最多 {max_length} 项", "must have at most {max_length} items"),
    "list_type": Phrase("要写列表", "must be a list"),
    "dict_type": TABLE,
    "model_type": TABLE,
    "greater_than": Phrase("要大于 {gt}", "must be greater than {gt}"),
    "greater_than_equal": Phrase("不能小于 {ge}", "must be at least {ge}"),
    "less_than": Phrase("要小于 {lt}", "must be less than {lt}"),
    "less_than_equal": Phrase("不能大于 {le}", "must be at most {le}"),
    "literal_error": Phrase("只能写 {expected}", "must be {expected}"),
}
"""The error text for each of pydantic's error types."""
UNFIT = Phrase("写法不对", "is not written as it should be")
SENTENCES = Phrase("{what}。{fix}", "{what}. {fix}")


def read_rows(file: Path, table: str) -> tuple[list[Any], list[Bilingual]]:
    """The unchecked rows under [[table]], and the problems of the file itself."""
    shown = values.shown_path(file)
    try:
        data = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        return [], [UNREADABLE.fill(file=shown, why=values.why_unreadable(error))]
    except UnicodeDecodeError:
        return [], [NOT_UTF8.fill(file=shown)]
    except tomllib.TOMLDecodeError as error:
        found = TOML_PLACE.search(str(error))
        zh = NEAR.fill(line=found[1], column=found[2]) if found else UNFINISHED.fill()
        return [], [NOT_TOML.fill(file=shown, place=Bilingual(str(error), zh.zh))]
    rows = data.pop(table, [])
    wrong = [STRANGE.fill(file=file.name, name=name, table=table) for name in data]
    if not isinstance(rows, list):
        return [], [*wrong, ONE_TABLE.fill(file=file.name, table=table)]
    return rows, wrong


def complaints(error: ValidationError) -> Iterator[Bilingual]:
    """Each invalid field with its place, but never its value."""
    for detail in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in detail["loc"])
        message = field_complaint(detail)
        yield AT.fill(place=place, what=message) if place else message


def field_complaint(detail: ErrorDetails) -> Bilingual:
    """The problem of one field. Contains no value, unless one of our validators repeats it."""
    context = detail.get("ctx", {})
    match context.get("error"):
        case values.Wrong() as wrong:
            return SENTENCES.fill(what=wrong.what, fix=wrong.fix)
        case Exception() as error:
            return text_of(error)
        case _:
            return FIELD.get(detail["type"], UNFIT).fill(
                **{name: _fact(fact) for name, fact in context.items()}
            )


def _fact(fact: object) -> str:
    """A limit, or the allowed values."""
    text = f"{fact:.12g}" if isinstance(fact, float) else str(fact)
    return Bilingual(text, text.replace(" or ", " 或 "))


def _at_row(file: Path, row: int, name: str = "") -> Bilingual:
    return AT_ROW.fill(file=file.name, row=row, name=name)


# --- groups ---------------------------------------------------------------------------------------


GROUPS_SETTING = "GROUPS_FILE"
GROUPS_MEND = Bilingual("Correct it as docs/personas.md says", "按 docs/zh/personas.md 改正")
GROUPS_TABLE = "group"
MAX_RULES = 500  # characters; they precede every question
MAX_GREETING = 200  # characters


class JoinRow(BaseModel):
    """A rule for applicants to a group: accept or refuse if their answer contains this word or
    /regular expression/. A refused applicant receives the `reason`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, strict=True, defer_build=True
    )

    match: Annotated[str, Field(min_length=1, max_length=200)]
    then: Literal["accept", "refuse"]
    reason: Annotated[str, Field(max_length=60)] = ""


class GroupRow(BaseModel):
    """One group: its persona's key (empty: the default), house rules, chance of joining in unasked
    (0 to 1), audiences of tools, quiet hours and their mode (minutes of the day, as `hours` reads
    them), rules for applicants, greetings, the time of the daily recap (empty: none), and daily
    limits in US dollars and tokens (0: none).
    None means the general setting.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, strict=True, defer_build=True
    )

    number: Annotated[int, Field(ge=1)]
    persona: Annotated[str, Field(max_length=64)] = ""
    rules: Annotated[str, Field(max_length=MAX_RULES)] = ""
    chance: Annotated[float, Field(ge=0, le=1)] | None = None
    chime_in: Annotated[float, Field(ge=0, le=1)] | None = None
    quiet: Annotated[tuple[tuple[int, int], ...], BeforeValidator(hours)] | None = None
    quiet_mode: Literal["weak", "all"] | None = None
    join: tuple[JoinRow, ...] = Field(default=(), strict=False, max_length=50)
    welcome: Annotated[str, Field(max_length=MAX_GREETING)] = ""
    farewell: Annotated[str, Field(max_length=MAX_GREETING)] = ""
    recap: Annotated[str, BeforeValidator(clock_time)] | None = None
    day_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    day_tokens: Annotated[int, Field(ge=0)] | None = None
    tools_audience: dict[str, Literal["everyone", "group_admin", "owner"]] = Field(
        default_factory=dict
    )


def read_groups(
    file: Path | None, personas: Mapping[str, object]
) -> tuple[Mapping[int, GroupRow], tuple[Problem, ...]]:
    """The valid rows by group, and the problems. `personas` has all personas by key."""
    if file is None:
        return {}, ()
    rows, wrong = read_rows(file, GROUPS_TABLE)
    good: dict[int, GroupRow] = {}
    for number, row in enumerate(rows, 1):
        place = _at_row(file, number)
        try:
            read = GroupRow.model_validate(row)
        except ValidationError as error:
            wrong += [AT.fill(place=place, what=complaint) for complaint in complaints(error)]
            continue
        if read.number in good:
            earlier = Bilingual(
                f"an earlier row has the group {read.number}", f"前面已经写过群 {read.number}"
            )
            wrong.append(AT.fill(place=place, what=earlier))
        elif read.persona and read.persona not in personas:
            there = ", ".join(sorted(personas))
            only = Bilingual(f"persona: there are only {there}", f"persona：只有 {there}")
            wrong.append(AT.fill(place=place, what=only))
        else:
            good[read.number] = read
    return good, tuple(Problem(GROUPS_SETTING, what, GROUPS_MEND) for what in wrong)


# --- subagents ------------------------------------------------------------------------------------


SUBAGENTS_SETTING = "SUBAGENTS_FILE"
SUBAGENTS_MEND = Bilingual("Correct it as docs/subagents.md says", "按 docs/zh/subagents.md 改正")
CODER = "Coder"  # built in, with its own description and prompt
NESTED = "use_subagent"
SUBAGENTS_TABLE = "subagent"
SUBAGENT_NAME = re.compile(r"[\w-]{1,32}")


def _check_name(name: str) -> str:
    # not a pydantic pattern, which takes 3.7 MB for 32 letters of any alphabet
    if not SUBAGENT_NAME.fullmatch(name):
        raise ValueError(
            Bilingual(
                "must be 1 to 32 letters, digits, - or _, without spaces",
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
    # the value may be a key, so it is not repeated
    if name and not (name.isascii() and name.isidentifier()):
        raise ValueError(
            Bilingual(
                "must be the NAME of an environment variable, never the key itself",
                "要写环境变量的名字，不能写密钥本身",
            )
        )
    return name


class SubagentRow(BaseModel):
    """A subagent's row. Empty model, base URL and key mean those of the Coder, or of the main
    model.

    `max_tokens` counts all its requests and answers, 0 for no limit; `deadline` is in seconds, less
    than a run's.
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
        """Whether this row replaces the built-in Coder."""
        return self.name.casefold() == CODER.casefold()


def read_subagents(
    file: Path | None, keys: Mapping[str, SecretStr]
) -> tuple[tuple[SubagentRow, ...], tuple[Problem, ...]]:
    """The valid rows, and the problems. `keys` are the variables that a row may name."""
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
            wrong += [AT.fill(place=place, what=complaint) for complaint in complaints(error)]
            continue
        wrong += [AT.fill(place=place, what=complaint) for complaint in _wrong_with(read, keys)]
        if read.name.casefold() in good:
            earlier = Bilingual("an earlier row has the same name", "前面已经有同名的一项")
            wrong.append(AT.fill(place=place, what=earlier))
        good.setdefault(read.name.casefold(), read)
    return tuple(good.values()), tuple(
        Problem(SUBAGENTS_SETTING, what, SUBAGENTS_MEND) for what in wrong
    )


def key_names(file: Path | None) -> tuple[str, ...]:
    """The variables named in the file, as far as it can be read."""
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
