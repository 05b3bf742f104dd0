"""The sources of settings: the environment and a `.env` file, merged into a table of texts."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from dotenv.parser import parse_stream

from bot.core.language import Bilingual
from config.values import QUOTES, WIDE_QUOTES, why_unreadable, without_quotes
from frostagent.types.errors import ConfigError, Problem

FAMILIES = (
    "BOT_",
    "LLM_",
    "ONEBOT_",
    "TOOLS_",
    "STORE_",
    "WEB_",
    "CONSOLE_",
    "CODER_",
    "MCP_",
    "MEDIA_",
    "LOG_",
    "QWEATHER_",
    "AMAP_",
    "SEARCH_",
)

ALIASES = {
    "UPSTREAM_ENDPOINT": "LLM_BASE_URL",
    "UPSTREAM_API_KEY": "LLM_API_KEY",
    "MODEL_NAME": "LLM_MODEL",
    "BOT_RUN_SENDS": "BOT_MAX_SENDS",
}
"""Names of the Go FrostAgent, and our former ones, that still work; the current one wins."""

MADE = Path("data", "tokens.env")
"""Beside `.env`: the tokens made by `init` that `.env` leaves out. In a container it exists without
a `.env`.
"""

EXAMPLE = ".env.example"
GONE = {"ONEBOT_WS_PATH": Bilingual("any path is accepted now", "现在任何路径都可以")}
ALIKE = 0.86  # similarity (0 to 1) at which a name counts as misspelt
NEIGHBOURS = ("NAPCAT_", "LLBOT_", "GRAFANA_", "COMPOSE_", "OTEL_")
"""Prefixes of neighbouring programs in the same .env."""


@dataclass(frozen=True, slots=True)
class EnvLine:
    """One `NAME=value` of a `.env` file; `number` counts from 1."""

    name: str
    value: str
    number: int


@dataclass(frozen=True, slots=True)
class Typed:
    """A value, and the name it was typed under."""

    name: str
    text: str


def read_env_file(path: Path | None) -> tuple[EnvLine, ...]:
    """The lines of a `.env` file, none if it is missing; `$` has no special meaning.

    Raises ConfigError for an unreadable file, with one problem per line that is not NAME=value.
    """
    lines, problems = read_legible_lines(path)
    if problems:
        raise ConfigError(*problems)
    return lines


def read_legible_lines(path: Path | None) -> tuple[tuple[EnvLine, ...], tuple[Problem, ...]]:
    """The lines of a `.env` file that are NAME=value, and a problem for each other line.

    Raises ConfigError for an unreadable file.
    """
    if path is None or not (path.exists() or path.is_symlink()):
        return (), ()
    if path.is_dir():
        # Docker creates an empty folder if a mounted file is missing.
        raise ConfigError(
            Problem(
                path.name,
                Bilingual("is a folder", "是目录"),
                Bilingual(
                    "Remove it and copy .env.example to .env", "删掉它，把 .env.example 复制成 .env"
                ),
            )
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        fix = Bilingual(
            "Give the bot's account permission to read it, or remove it",
            "让运行机器人的用户能读它，或者删掉它",
        )
        why = why_unreadable(error)
        raise ConfigError(
            Problem(path.name, Bilingual(f"cannot be read {why}", f"读不了{why.zh}"), fix)
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            Problem(
                path.name,
                Bilingual("is not UTF-8 text", "不是 UTF-8 文本"),
                Bilingual("Save it again as UTF-8", "重新存成 UTF-8"),
            )
        ) from None
    return _lines(text, path.name)


def read_example() -> str:
    """The text of this version's `.env.example`, in the package (by setup.py) or the checkout."""
    packaged = Path(__file__).with_name(EXAMPLE)
    file = packaged if packaged.is_file() else packaged.parents[1] / EXAMPLE
    return file.read_text("utf-8")


def read_made_file(env_file: Path | None) -> tuple[tuple[EnvLine, ...], tuple[Problem, ...]]:
    """The lines made by `init` that `.env` leaves out, and the problems; no lines if this account
    may not read them, which does not matter if `.env` is complete.
    """
    try:
        return read_env_file(env_file.parent / MADE if env_file else None), ()
    except ConfigError as error:
        return (), error.problems


def _lines(text: str, file: str) -> tuple[tuple[EnvLine, ...], tuple[Problem, ...]]:
    lines, problems = [], []
    for binding in parse_stream(io.StringIO(text)):
        if binding.error:
            # The line's text stays out of the message, because it may hold half a secret.
            what = Bilingual(
                "is not NAME=value, or a quote is not closed", "不是 NAME=value，或者引号没有闭合"
            )
            problems.append(
                Problem(
                    Bilingual(
                        f"{file} line {binding.original.line}",
                        f"{file} 第 {binding.original.line} 行",
                    ),
                    what,
                    Bilingual("Correct it, or put # in front", "改正它，或者在前面加 #"),
                )
            )
        elif binding.key is not None:
            lines.append(EnvLine(binding.key, binding.value or "", binding.original.line))
    return tuple(lines), tuple(problems)


def gather(
    environ: Mapping[str, str], lines: Iterable[EnvLine], known: Collection[str]
) -> dict[str, Typed]:
    """The known names that are set, with their texts: the environment wins over the file, our name
    over an alias.

    An empty text counts as unset.
    """
    texts = {line.name: text for line in lines if (text := meant(line.value, of_file=True))}
    texts |= {name: text for name, raw in environ.items() if (text := meant(raw))}
    aliases = {alias: ours for alias, ours in ALIASES.items() if alias in texts and ours in known}
    given = {ours: Typed(alias, texts[alias]) for alias, ours in aliases.items()}
    return given | {name: Typed(name, texts[name]) for name in known if name in texts}


def meant(text: str, *, of_file: bool = False) -> str:
    """The intended value: without full-width quotation marks around it.

    Plain ones are removed too, because `docker run --env-file` keeps them; but not `of_file`, where
    the reader of a `.env` has already done so.
    """
    return without_quotes(text, quotes=WIDE_QUOTES if of_file else QUOTES)


def strange_in_file(lines: Iterable[EnvLine], known: Collection[str]) -> Iterator[Problem]:
    """A problem for each name in the file that seems to be ours but is not a variable."""
    for line in lines:
        if _is_strange(line.name, known) or _looks_like_one(line.name, known):
            what = Bilingual(
                f"line {line.number} of .env sets it, but there is no such variable",
                f".env 第 {line.number} 行设置了它，但没有这个配置项",
            )
            yield Problem(line.name, what, _mend(line.name, known))


def strange_in_environment(environ: Iterable[str], known: Collection[str]) -> Iterator[Problem]:
    """The same for the environment, where others (Kubernetes, a shell) may have set it."""
    for name in sorted(environ):
        if _is_strange(name, known):
            yield Problem(
                name,
                Bilingual(
                    "is set, but there is no such variable: ignored", "没有这个配置项，已忽略"
                ),
                _mend(name, known),
            )


def repeated(lines: Iterable[EnvLine], known: Collection[str]) -> Iterator[Problem]:
    """A problem for each variable that the file sets more than once."""
    first: dict[str, int] = {}
    for line in lines:
        before = first.setdefault(line.name, line.number)
        if before != line.number and (line.name in known or line.name in ALIASES):
            what = Bilingual(
                f"is in .env twice, in lines {before} and {line.number}: the last one counts",
                f"在 .env 里写了两次（第 {before} 行和第 {line.number} 行），以最后一次为准",
            )
            yield Problem(line.name, what, Bilingual("Remove the other", "删掉另一行"))


def socks(environ: Mapping[str, str]) -> Iterator[Problem]:
    """A problem for each proxy variable of http or https requests that is a SOCKS proxy.

    Reported under the effective name, as urllib.request.getproxies reads it: lower case wins,
    `all_proxy` is last.
    """
    found = {
        name.lower(): name for name in sorted(environ) if environ[name].strip()
    }  # upper case sorts first
    counting = (
        found.get(f"{scheme}_proxy") or found.get("all_proxy") for scheme in ("https", "http")
    )
    for name in dict.fromkeys(filter(None, counting)):
        if environ[name].strip().lower().startswith("socks"):
            what = Bilingual(
                "names a SOCKS proxy, which is not supported: the model is asked directly,"
                " and tools reach nothing",
                "是 SOCKS 代理，这里不支持：模型会直连，工具什么也连不上",
            )
            fix = Bilingual(
                "Set HTTPS_PROXY and HTTP_PROXY to the proxy's HTTP port (most have one), or unset "
                "this one",
                "把 HTTPS_PROXY 和 HTTP_PROXY 设成代理的 HTTP 端口（一般都有），或者取消这一项",
            )
            yield Problem(name, what, fix)


def _is_strange(name: str, known: Collection[str]) -> bool:
    return name.upper().startswith(FAMILIES) and name not in known and name not in ALIASES


def _looks_like_one(name: str, known: Collection[str]) -> bool:
    """Whether it can only be a misspelt variable of ours: `TOOL_DENY`, `BOTGROUPS`."""
    if name in known or name in ALIASES or name.startswith(NEIGHBOURS):
        return False
    bare = {other.replace("_", "") for other in known}
    return bool(get_close_matches(name.upper().replace("_", ""), bare, n=1, cutoff=ALIKE))


def _mend(name: str, known: Collection[str]) -> str:
    if name in GONE:
        return Bilingual(f"Remove it: {GONE[name]}", f"删掉它：{GONE[name].zh}")
    words = set(name.upper().split("_"))
    # LLM_KEY means LLM_API_KEY, although LLM_MODEL has more letters in common.
    near = [other for other in known if words <= set(other.split("_"))] or get_close_matches(
        name.upper(), known, n=1
    )
    if near:
        return Bilingual(f"Did you mean {near[0]}?", f"是不是想写 {near[0]}？")
    return Bilingual(
        "Remove it; docs/settings.md lists them all",
        "删掉它；docs/zh/settings.md 里列出了全部配置项",
    )
