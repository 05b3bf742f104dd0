"""Files of personas (`docs/personas.md` describes each field).

A file is a prompt, optionally preceded by TOML between two lines of `+++`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.core.language import Bilingual
from config import values
from config.tables import field_complaint
from frostagent.types.errors import ConfigError, Problem

SETTING = "PERSONAS_DIR"
MEND = Bilingual("Correct it as docs/personas.md says", "按 docs/zh/personas.md 改正")
BUILT_IN = Path(__file__).parent / "personas"
IN_CHECKOUT = Path("config", "personas")
FENCE = "+++"
NOT_TOML = Bilingual("the front matter is not TOML", "文件头不是正确的 TOML")
UNFINISHED = Bilingual("the end comes too early", "到末尾还没写完")
MAX_PROMPT = 50_000  # characters

Name = Annotated[str, Field(min_length=1, max_length=24)]
Words = Annotated[str, Field(min_length=1, max_length=2000)]


class PersonaExample(BaseModel):
    """A question, and this persona's answer."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=True)

    user: Words
    bot: Words


class PersonaHead(BaseModel):
    """The front matter; empty name, model and groups mean those of the settings.

    `temperature` is 0 to 2, None for the service's default; `tools_deny` are tools this persona
    never uses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=True)

    name: Annotated[str, Field(max_length=24)] = ""
    aliases: list[Name] = Field(default_factory=list, max_length=20)
    groups: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    model: Annotated[str, Field(max_length=200)] = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    tools_deny: list[Name] = Field(default_factory=list)
    examples: list[PersonaExample] = Field(default_factory=list, max_length=20)


class PersonaFile(BaseModel):
    """A persona; `key` is its file's name: `fox` for fox.md."""

    model_config = ConfigDict(frozen=True)

    key: str
    head: PersonaHead
    prompt: str


def find_persona(file: Path) -> Path:
    """Return the file; if it is missing, the built-in persona that a checkout has under that name,
    as config/personas/default.md.
    """
    built_in = BUILT_IN / file.name
    named = file.parent == IN_CHECKOUT and not file.exists() and built_in.is_file()
    return built_in if named else file


def read_persona_file(file: Path, *, setting: str = SETTING) -> PersonaFile:
    """Read a persona. Raises ConfigError with all problems, by line."""
    shown = values.shown_path(file)
    try:
        text = file.read_text("utf-8-sig")
    except OSError as error:
        why = values.why_unreadable(error)
        what = Bilingual(f"{shown} cannot be read {why}", f"{shown} 读不了{why.zh}")
        raise ConfigError(Problem(setting, what, MEND)) from None
    except UnicodeDecodeError:
        what = Bilingual(f"{shown} is not UTF-8 text", f"{shown} 不是 UTF-8 文本")
        raise ConfigError(
            Problem(setting, what, Bilingual("Save it again as UTF-8", "重新存成 UTF-8"))
        ) from None
    head, prompt, line = _parts(text)
    problems = [_at_line(number, what) for number, what in _wrong_with_text(head, prompt, line)]
    if head is not None and not problems:
        try:
            return PersonaFile(
                key=file.stem,
                head=PersonaHead.model_validate(tomllib.loads(head)),
                prompt=prompt.strip(),
            )
        except tomllib.TOMLDecodeError as error:
            problems = [_not_toml(str(error))]
        except ValidationError as error:
            problems = list(_complaints(error, head))
    raise ConfigError(
        *(
            Problem(setting, Bilingual(f"{shown} {what}", f"{shown} {what.zh}"), MEND)
            for what in problems
        )
    )


def read_personas(
    folder: Path | None, *, before: Mapping[str, PersonaFile] | None = None
) -> tuple[Mapping[str, PersonaFile], tuple[Problem, ...]]:
    """Return all personas by key, the operator's own before built-in ones, and the problems.

    An unusable file keeps its version in `before`. If two files claim one group, that is a problem,
    and neither gets it.
    """
    found: dict[str, PersonaFile] = {}
    problems: list[Problem] = []
    for place in (BUILT_IN, folder):
        if place is None:
            continue
        if not place.is_dir():
            what = Bilingual(
                f"{values.shown_path(place)} is not a folder",
                f"{values.shown_path(place)} 不是目录",
            )
            problems.append(
                Problem(
                    SETTING,
                    what,
                    Bilingual("Create it, or remove the setting", "建一个，或者不要设这一项"),
                )
            )
            found |= before or {}
            continue
        for file in sorted(place.glob("*.md")):
            try:
                found[file.stem] = read_persona_file(file)
            except ConfigError as error:
                problems += error.problems
                if before and file.stem in before:
                    found[file.stem] = before[file.stem]
    problems += _claimed_twice(found)
    return found, tuple(problems)


def by_group(personas: Mapping[str, PersonaFile]) -> Mapping[int, str]:
    """The persona of each group, by the front matters; groups claimed twice are left out."""
    claims: dict[int, set[str]] = {}
    for key, persona in personas.items():
        for group in persona.head.groups:
            claims.setdefault(group, set()).add(key)
    return {group: keys.pop() for group, keys in claims.items() if len(keys) == 1}


def _claimed_twice(personas: Mapping[str, PersonaFile]) -> Iterator[Problem]:
    first: dict[int, str] = {}
    for key, persona in personas.items():
        for group in persona.head.groups:
            other = first.setdefault(group, key)
            if other != key:
                what = Bilingual(
                    f"{other}.md and {key}.md both name the group {group}",
                    f"{other}.md 和 {key}.md 都写了群 {group}",
                )
                yield Problem(
                    SETTING, what, Bilingual("Name it in one of them", "只写在其中一个里")
                )


def _parts(text: str) -> tuple[str | None, str, int]:
    """The front matter (None if its end is missing), the prompt, and the prompt's line number."""
    lines = text.split("\n")
    if lines[0].strip() != FENCE:
        return "", text, 1
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == FENCE:
            head = "".join(f"{line}\n" for line in lines[1:number])
            return head, "\n".join(lines[number + 1 :]), number + 2
    return None, "", 1


def _wrong_with_text(head: str | None, prompt: str, line: int) -> Iterator[tuple[int, Bilingual]]:
    if head is None:
        yield (
            1,
            Bilingual(
                f"the front matter has no end: a second line of {FENCE}",
                f"文件头没有结束，缺第二行 {FENCE}",
            ),
        )
    elif prompt.lstrip().startswith("---\n") and not head:
        yield (
            line,
            Bilingual(
                f"the front matter is TOML between two lines of {FENCE}, not YAML",
                f"文件头要写成两行 {FENCE} 之间的 TOML，不是 YAML",
            ),
        )
    elif not prompt.strip():
        yield line, Bilingual("the prompt is empty", "提示词是空的")
    elif len(prompt) > MAX_PROMPT:
        yield (
            line,
            Bilingual(
                f"the prompt has more than {MAX_PROMPT} characters", f"提示词超过 {MAX_PROMPT} 个字"
            ),
        )


def _at_line(number: int, what: Bilingual) -> Bilingual:
    return Bilingual(f"line {number}: {what}", f"第 {number} 行：{what.zh}")


def _not_toml(complaint: str) -> Bilingual:
    """TOML's error with the line of the file: the front matter begins on line 2."""
    found = re.search(r"\s*\(at line (\d+), column \d+\)$", complaint)
    if found is None:  # "(at end of document)"
        what = Bilingual(f"{NOT_TOML}: {complaint}", f"{NOT_TOML.zh}，{UNFINISHED.zh}")
        return _at_line(2, what)
    what = Bilingual(f"{NOT_TOML}: {complaint[: found.start()]}", NOT_TOML.zh)
    return _at_line(int(found[1]) + 1, what)


def _complaints(error: ValidationError, head: str) -> Iterator[Bilingual]:
    """Each invalid field with its line; never its value."""
    for detail in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in detail["loc"])
        message = field_complaint(detail)
        what = Bilingual(f"{place}: {message}", f"{place}：{message.zh}")
        yield _at_line(_line_of(detail["loc"], head), what)


def _line_of(place: tuple[Any, ...], head: str) -> int:
    """The line of a field in the file, found by a text search."""
    field, more = str(place[0]), place[1:]
    key = re.compile(rf"\s*(?:\[\[?\s*)?{re.escape(field)}\b")
    lines = [number for number, line in enumerate(head.split("\n"), 2) if key.match(line)]
    number = more[0] if more and isinstance(more[0], int) else 0
    return lines[number] if number < len(lines) else next(iter(lines), 2)
