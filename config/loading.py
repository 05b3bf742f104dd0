"""Reads the settings once, at the start. All problems are reported together, each under the name
that was typed.
"""

from __future__ import annotations

import ctypes
import locale
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace
from pydantic import SecretStr, ValidationError

from bot.core.language import Bilingual, Language
from config import sources, values
from config.checks import cross_check, find_doubts
from config.mcp_servers import read_servers, variables_in
from config.settings import DEFAULT_STORE, KNOWN, Settings
from config.tables import field_complaint, key_names
from frostagent.types.errors import ConfigError, Problem

PROSE = {"SYSTEM_PROMPT"}  # may begin or end with quotation marks
SERVICE_FAMILIES = ("LLM_", "ONEBOT_", "UPSTREAM_", "BROKER_", "BOT_ROLE")


def load_settings(
    *, environ: Mapping[str, str], env_file: Path | None, service: bool = True
) -> tuple[Settings, tuple[Problem, ...]]:
    """Return the settings of this environment and `.env` file, and the warnings. Reads nothing
    else.

    The environment wins over the file, which wins over what `init` made. `service=False` (chat)
    requires neither a model nor a token. Raises ConfigError with all problems at once, each under
    the name that was typed; only an unreadable `.env` is reported alone, because nothing is known
    without it.
    """
    lines = sources.read_env_file(env_file)
    made, hidden = sources.read_made_file(env_file)
    given = sources.gather(environ, (*made, *lines), KNOWN)
    settings, problems = _validate(given)
    named = sources.gather(environ, lines, key_names(settings.subagents_file))
    keys = {name: SecretStr(value.text) for name, value in named.items()}
    named = sources.gather(environ, lines, variables_in(settings.mcp_file))
    mcp_keys = {name: SecretStr(value.text) for name, value in named.items()}
    servers, _ = read_servers(settings.mcp_file, mcp_keys)
    secrets = tuple(SecretStr(one) for row in servers.values() for one in row.secrets)
    settings = settings.model_copy(
        update={"subagent_keys": keys, "mcp_keys": mcp_keys, "mcp_secrets": secrets}
    )
    keys |= mcp_keys
    for problem in cross_check(settings, given, wrong=frozenset(problems), service=service):
        problems.setdefault(problem.name, problem)
    typed = {name: value.name for name, value in given.items()}
    found = [
        replace(problems[name], name=typed.get(name, name)) for name in KNOWN if name in problems
    ]
    found += sources.strange_in_file(lines, (*KNOWN, *keys))
    told = {problem.name for problem in found}
    strangers = tuple(
        stranger
        for stranger in sources.strange_in_environment(environ, (*KNOWN, *keys))
        if stranger.name not in told  # the same name in both, as after `set -a; . .env`
    )
    if found:
        # a misspelt name is the likely reason for a missing variable
        raise ConfigError(
            *found,
            *hidden,
            *(hint for hint in strangers if any(name in hint.fix for name in problems)),
        )
    doubtful = (
        *sources.repeated(lines, KNOWN),
        *sources.socks(environ),
        *find_doubts(settings, service=service),
    )
    return settings, (*strangers, *doubtful)


def read_store_url(*, environ: Mapping[str, str], env_file: Path | None) -> str:
    """STORE_URL or its default, even if other settings are invalid.

    Raises ConfigError for an unreadable `.env`.
    """
    lines, _ = sources.read_legible_lines(env_file)
    given = sources.gather(environ, lines, ("STORE_URL",)).get("STORE_URL")
    return DEFAULT_STORE if given is None else given.text


def terminal_language(*, environ: Mapping[str, str], env_file: Path | None) -> Language:
    """The language of commands: BOT_LANGUAGE, even if other settings are invalid, else that of the
    system.

    A BOT_LANGUAGE other than `zh` and `en` is ignored here; loading the settings reports it.
    """
    try:
        lines, _ = sources.read_legible_lines(env_file)
    except ConfigError:
        lines = ()
    given = sources.gather(environ, lines, ("BOT_LANGUAGE",)).get("BOT_LANGUAGE")
    match "" if given is None else values.to_half_width(given.text).casefold():
        case "zh":
            return Language.CHINESE
        case "en":
            return Language.ENGLISH
        case _:
            is_chinese = _system_locale(environ).lower().startswith("zh")
            return Language.CHINESE if is_chinese else Language.ENGLISH


def _system_locale(environ: Mapping[str, str]) -> str:
    """The locale of messages, such as zh_CN.UTF-8; on Windows that of the system, unless a variable
    sets one.
    """
    named = next(filter(None, map(environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    if sys.platform == "win32" and not named:
        return locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage(), "")
    return named


def is_configured(environ: Mapping[str, str], env_file: Path | None) -> bool:
    """Whether a model or a OneBot server is configured: then `run` is the service, else chat.

    An unreadable `.env` counts as configured, so that starting the service reports its problem.
    """
    try:
        lines = sources.read_env_file(env_file)
    except ConfigError:
        return True
    pairs = [*environ.items(), *((line.name, line.value) for line in lines)]
    return any(name.startswith(SERVICE_FAMILIES) and text.strip() for name, text in pairs)


def _validate(given: Mapping[str, sources.Typed]) -> tuple[Settings, dict[str, Problem]]:
    """Validate each value separately. Returns problems by variable; the settings have the default
    in place of a wrong value.
    """
    texts = {name.lower(): value.text for name, value in given.items()}
    problems = {}
    for name in given.keys() - PROSE:
        try:
            values.check_quotes(given[name].text)
        except values.Wrong as half:
            problems[name] = Problem(name, half.what, half.fix)
            del texts[name.lower()]
    try:
        settings = Settings.model_validate(texts)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            field = str(detail["loc"][0])
            wrong = detail.get("ctx", {}).get("error")
            what, fix = (
                (wrong.what, wrong.fix)
                if isinstance(wrong, values.Wrong)
                else (field_complaint(detail), Bilingual("Correct it", "改正它"))
            )
            problems[field.upper()] = Problem(field.upper(), what, fix)
            texts.pop(field, None)
        settings = Settings.model_validate(texts)
    return settings, problems
