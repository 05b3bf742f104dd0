"""What a person may set (design: "What users type"), checked once at start and frozen from then on.

A field is called like its variable in small letters: `LLM_BASE_URL` is `settings.llm_base_url`. `Settings(...)`
reads nothing by itself; `load_settings` reads what it is given and reports every problem at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, assert_never

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.domain.errors import ConfigError, Problem
from config import sources, values
from config.endpoints import Endpoint, in_order
from config.subagents import key_names, read_subagents

DEFAULT_PERSONA = Path(__file__).parent / "personas" / "default.md"
DEFAULT_STORE = "sqlite+aiosqlite:///data/frostagent.db"
WEAK_TOKEN = 8

PLACEHOLDER = re.compile(
    r"(sk-)?(x{3,}|\.{3,}|…+|your[-_ ].*|change[-_ ]?(me|this)|replace[-_ ]?(me|this|with).*|.*[-_]here|你的.*)|<.*>",
    re.IGNORECASE,
)
"""What examples and guides write where a person should put something of their own."""

EXAMPLE_HOST = re.compile(r"[/.]example(\.(com|org|net))?(?=[:/]|$)", re.IGNORECASE)

DIALECTS = (
    "plain", "anthropic", "dashscope", "deepseek", "gemini", "glm", "groq", "kimi", "mimo", "mistral", "openai",
    "openrouter", "stepfun",
)  # fmt: skip
"""What LLM_DIALECT may be; a test holds it to the rows of `adapters/openai/dialects.py`."""

SERVICE_FAMILIES = ("LLM_", "ONEBOT_", "UPSTREAM_")

HOW_TO_MAKE_ONE = (
    "Make one with `openssl rand -hex 16` or `python3 -c 'import secrets; print(secrets.token_hex(16))'`, set it here"
    " and as the token in your OneBot server (NapCat, LLBot)"
)

Names = Annotated[tuple[str, ...], BeforeValidator(values.names)]
QQNumbers = Annotated[frozenset[int], BeforeValidator(values.qq_numbers)]
Host = Annotated[str, AfterValidator(values.host)]
BaseUrl = Annotated[str, AfterValidator(values.base_url)]
Secret = Annotated[SecretStr, AfterValidator(values.secret)]
Keys = Annotated[SecretStr, AfterValidator(values.keys)]
FilePath = Annotated[Path, BeforeValidator(values.path)]
Mode = Literal["reverse", "forward"]
MediaSend = Literal["base64", "file"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LogFormat = Literal["console", "json"]


class Settings(BaseSettings):
    """Everything a person may set, with its default; `.env.example` explains each."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    llm_base_url: BaseUrl = ""
    llm_api_key: Keys = SecretStr("")
    llm_model: str = ""
    llm_dialect: Annotated[str, BeforeValidator(values.one_of("", *DIALECTS))] = ""
    llm_fallbacks: Annotated[tuple[Endpoint, ...], BeforeValidator(values.fallbacks)] = ()
    llm_vision_model: str = ""
    llm_context: Annotated[int, BeforeValidator(values.whole(0, values.MAX_CONTEXT))] = 0
    llm_prices: FilePath | None = None

    onebot_mode: Annotated[Mode, BeforeValidator(values.one_of("reverse", "forward"))] = "reverse"
    onebot_host: Host = "0.0.0.0"  # noqa: S104  # the OneBot server is usually another container
    onebot_port: Annotated[int, BeforeValidator(values.whole(0, 65535))] = 6199
    onebot_url: Annotated[str, AfterValidator(values.socket_url)] = ""
    onebot_access_token: Secret = SecretStr("")

    bot_name: str = "FrostAgent"
    bot_aliases: Names = ()
    bot_owners: QQNumbers = frozenset()
    bot_persona: FilePath | None = None
    system_prompt: str = ""
    bot_groups: QQNumbers = frozenset()
    bot_users: QQNumbers = frozenset()
    bot_block: QQNumbers = frozenset()
    bot_max_steps: Annotated[int, BeforeValidator(values.whole(1, 64))] = 12
    bot_history_tokens: Annotated[int, BeforeValidator(values.whole(500, values.MAX_CONTEXT))] = 12_000
    bot_send_rate: Annotated[float, BeforeValidator(values.number(0, 1000))] = 1.0

    coder_base_url: BaseUrl = ""
    coder_api_key: Keys = SecretStr("")
    coder_model: str = ""

    store_url: Annotated[SecretStr, AfterValidator(values.database)] = SecretStr(DEFAULT_STORE)
    store_keep_days: Annotated[int, BeforeValidator(values.whole(0, 36_500))] = 90
    store_keep_messages: Annotated[int, BeforeValidator(values.whole(0, 10**12))] = 1_000_000

    web_host: Host = "127.0.0.1"
    web_port: Annotated[int, BeforeValidator(values.whole(0, 65535))] = 8080

    tools_deny: Names = ()
    tools_approve: Names = ()
    tools_dir: FilePath | None = None
    tools_mirrors: Annotated[dict[str, str], BeforeValidator(values.mirrors)] = Field(default_factory=dict)

    games_file: FilePath | None = None
    subagents_file: FilePath | None = None
    subagent_keys: dict[str, SecretStr] = Field(default_factory=dict, exclude=True)

    tools_contact: Annotated[str, AfterValidator(values.contact)] = ""
    qweather_host: Annotated[str, AfterValidator(values.api_host)] = ""
    qweather_key: Secret = SecretStr("")
    qweather_jwt_project: str = ""
    qweather_jwt_key_id: str = ""
    qweather_jwt_private_key: Annotated[SecretStr, AfterValidator(values.ed25519_key)] = SecretStr("")
    amap_key: Secret = SecretStr("")

    media_dir: FilePath = Path("data/media")
    media_send: Annotated[MediaSend, BeforeValidator(values.one_of("base64", "file"))] = "base64"

    log_level: Annotated[
        LogLevel, BeforeValidator(values.one_of("DEBUG", "INFO", "WARNING", "ERROR", warn="WARNING"))
    ] = "INFO"
    log_format: Annotated[LogFormat, BeforeValidator(values.one_of("console", "json"))] = "console"
    log_content: Annotated[bool, BeforeValidator(values.switch)] = False
    log_runs: FilePath | None = None

    @classmethod
    def settings_customise_sources(cls, *_: Any, **by_name: Any) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed in; `load_settings` does the reading, since it names each stranger and each problem."""
        return (by_name["init_settings"],)

    @property
    def main_model(self) -> Endpoint:
        """The model that answers; its base url is empty where none is configured."""
        return Endpoint(self.llm_base_url, self.llm_api_key, self.llm_model, self.llm_dialect, self.llm_context)

    @property
    def main_models(self) -> tuple[Endpoint, ...]:
        """Who is asked for an answer, in order: the main model, then those that stand in for it."""
        return in_order(self.main_model, *self.llm_fallbacks)

    @property
    def vision_models(self) -> tuple[Endpoint, ...]:
        """Who is asked where there are pictures to be seen; empty where that is nobody else than otherwise."""
        if self.llm_vision_model in {"", self.llm_model}:
            return ()
        seeing = replace(self.main_model, model=self.llm_vision_model, context=0)
        return in_order(seeing, *self.main_models)

    @property
    def coder_models(self) -> tuple[Endpoint, ...]:
        """Who is asked for the Coder, in order."""
        return in_order(self.coder_endpoint, *self.main_models)

    @property
    def coder_endpoint(self) -> Endpoint:
        """The Coder's model: the main one where nothing else is set. Key and dialect stay with the main base url."""
        elsewhere = self.coder_base_url not in {"", self.llm_base_url}
        key = self.coder_api_key if elsewhere or self.coder_api_key.get_secret_value() else self.llm_api_key
        dialect = "" if elsewhere else self.llm_dialect
        model = self.coder_model or self.llm_model
        context = self.llm_context if not elsewhere and model == self.llm_model else 0
        return Endpoint(self.coder_base_url or self.llm_base_url, key, model, dialect, context)


KNOWN = tuple(name.upper() for name, field in Settings.model_fields.items() if not field.exclude)
"""Every variable, in the order of the fields. `subagent_keys` is none: it holds those that SUBAGENTS_FILE names."""


def load_settings(
    *, environ: Mapping[str, str], env_file: Path | None, service: bool = True
) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings of this environment and `.env` file, with what to warn of. Reads no other source.

    The environment wins over the file, and that over what `init` made. `service=False` (chat) asks neither for a model
    nor for a token. Raises ConfigError with every problem at once, each under the name that was typed; only a `.env`
    that cannot be read is told alone, since nothing is known without it.
    """
    lines = sources.read_env_file(env_file)
    made, hidden = sources.read_made_file(env_file)
    given = sources.gather(environ, (*made, *lines), KNOWN)
    settings, problems = _validate(given)
    named = sources.gather(environ, lines, key_names(settings.subagents_file))
    keys = {name: SecretStr(value.text) for name, value in named.items()}
    settings = settings.model_copy(update={"subagent_keys": keys})
    for problem in _cross_check(settings, given, wrong=frozenset(problems), service=service):
        problems.setdefault(problem.name, problem)
    typed = {name: value.name for name, value in given.items()}
    found = [replace(problems[name], name=typed.get(name, name)) for name in KNOWN if name in problems]
    found += sources.strange_in_file(lines, (*KNOWN, *keys))
    strangers = tuple(sources.strange_in_environment(environ, (*KNOWN, *keys)))
    if found:
        # A stranger that looks like a name we miss is most likely the reason.
        raise ConfigError(*found, *hidden, *(hint for hint in strangers if any(name in hint.mend for name in problems)))
    doubts = (*sources.repeated(lines, KNOWN), *sources.socks(environ), *_doubts(settings, service=service))
    return settings, (*strangers, *doubts)


def is_configured(environ: Mapping[str, str], env_file: Path | None) -> bool:
    """Whether anything of a model or a OneBot server is set: then `run` is the service, else chat.

    A `.env` that cannot be read counts as configured, so that starting the service tells what is wrong with it.
    """
    try:
        lines = sources.read_env_file(env_file)
    except ConfigError:
        return True
    pairs = [*environ.items(), *((line.name, line.value) for line in lines)]
    return any(name.startswith(SERVICE_FAMILIES) and text.strip() for name, text in pairs)


def read_persona(settings: Settings) -> str:
    """Who the bot is: SYSTEM_PROMPT, else the file BOT_PERSONA, else the default. Raises ConfigError for the file."""
    if settings.system_prompt:
        return settings.system_prompt
    file = settings.bot_persona or DEFAULT_PERSONA
    shown = values.shown_path(file)
    mend = "Name a text file that says who the bot is, as config/personas/default.md does"
    try:
        text = file.read_text("utf-8-sig").strip()
    except OSError as error:
        raise ConfigError(Problem("BOT_PERSONA", f"{shown} cannot be read ({error.strerror})", mend)) from None
    except UnicodeDecodeError:
        raise ConfigError(Problem("BOT_PERSONA", f"{shown} is not UTF-8 text", "Save it once more as UTF-8")) from None
    if not text:
        raise ConfigError(Problem("BOT_PERSONA", f"{shown} is empty", mend))
    return text


def _validate(given: Mapping[str, sources.Given]) -> tuple[Settings, dict[str, Problem]]:
    """Each value on its own, problems by variable; where one is wrong, the settings have the default in its place."""
    texts = {name.lower(): value.text for name, value in given.items()}
    problems = {}
    try:
        settings = Settings.model_validate(texts)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            field = str(detail["loc"][0])
            wrong = detail.get("ctx", {}).get("error")
            what, mend = (wrong.what, wrong.mend) if isinstance(wrong, values.Wrong) else (detail["msg"], "Correct it")
            problems[field.upper()] = Problem(field.upper(), what, mend)
            texts.pop(field, None)
        settings = Settings.model_validate(texts)
    return settings, problems


# --- what is wrong only together ------------------------------------------------------------------


def _cross_check(
    settings: Settings, given: Mapping[str, sources.Given], *, wrong: frozenset[str], service: bool
) -> Iterator[Problem]:
    yield from _check_placeholders(given)
    yield from _check_model(settings, service=service)
    yield from _check_fallbacks(settings)
    if service and wrong.isdisjoint({"ONEBOT_MODE", "ONEBOT_HOST"}):
        yield from _check_onebot(settings)
    yield from _check_persona(settings)
    yield from _check_media(settings)
    yield from _check_folder("TOOLS_DIR", settings.tools_dir, "docs/tools.md")
    if settings.log_runs is not None and settings.log_runs.is_dir():
        yield Problem("LOG_RUNS", f"{settings.log_runs} is a folder", "Name a file in it, as data/runs.jsonl")
    yield from _check_file("GAMES_FILE", settings.games_file, "docs/games.md")
    yield from _check_subagents(settings)
    yield from _check_file("LLM_PRICES", settings.llm_prices, "docs/models.md")
    yield from _check_qweather(settings)


def _check_placeholders(given: Mapping[str, sources.Given]) -> Iterator[Problem]:
    for field in ("LLM_API_KEY", "LLM_MODEL", "ONEBOT_ACCESS_TOKEN", "CODER_API_KEY", "CODER_MODEL"):
        if field in given and PLACEHOLDER.fullmatch(given[field].text):
            yield Problem(field, "still has the text of an example", "Put your own in its place")
    for field in ("LLM_BASE_URL", "CODER_BASE_URL"):
        if field in given and EXAMPLE_HOST.search(given[field].text):
            yield Problem(
                field, "still has the host of an example", "Put the base url of your model service in its place"
            )


def _check_model(settings: Settings, *, service: bool) -> Iterator[Problem]:
    begun = service or settings.llm_model or settings.llm_api_key.get_secret_value()
    if begun and not settings.llm_base_url:
        yield Problem(
            "LLM_BASE_URL", "is not set", "Set the base url of an OpenAI-compatible API, as https://api.deepseek.com/v1"
        )
    if (begun or settings.llm_base_url) and not settings.llm_model:
        yield Problem("LLM_MODEL", "is not set", "Set the name of the model as its service spells it")


def _check_onebot(settings: Settings) -> Iterator[Problem]:
    match settings.onebot_mode:
        case "forward":
            if not settings.onebot_url:
                mend = "Set the address of your OneBot server's websocket, as ws://127.0.0.1:3001"
                yield Problem("ONEBOT_URL", "is not set, but ONEBOT_MODE=forward needs it", mend)
        case "reverse":
            open_to_all = not values.is_loopback(settings.onebot_host)
            if open_to_all and not settings.onebot_access_token.get_secret_value():
                what = f"is not set, but others than this machine can reach {settings.onebot_host}"
                yield Problem("ONEBOT_ACCESS_TOKEN", what, HOW_TO_MAKE_ONE)
        case _:
            assert_never(settings.onebot_mode)


def _check_persona(settings: Settings) -> Iterator[Problem]:
    if settings.system_prompt and settings.bot_persona:
        yield Problem("SYSTEM_PROMPT", "and BOT_PERSONA both say who the bot is", "Keep one of them")
        return
    try:
        read_persona(settings)
    except ConfigError as error:
        yield from error.problems


def _check_media(settings: Settings) -> Iterator[Problem]:
    """Only what it is: whether the folders can be written, the doctor tells of all of them alike."""
    folder = settings.media_dir.absolute()
    while not os.access(folder, os.F_OK) and folder != folder.parent:
        folder = folder.parent
    mend = "Name a folder that the bot may read and write, or may make"
    if not folder.is_dir():
        yield Problem("MEDIA_DIR", f"{folder} is a file", mend)


def _check_file(name: str, file: Path | None, description: str) -> Iterator[Problem]:
    """Only whether it can be read at all: what its rows say, its reader knows."""
    if file is not None and not (file.is_file() and os.access(file, os.R_OK)):
        what = f"{values.shown_path(file)} {'cannot be read' if file.exists() else 'is not there'}"
        yield Problem(name, what, f"Name a text file with rows as {description} describes them")


def _check_subagents(settings: Settings) -> Iterator[Problem]:
    _, problems = read_subagents(settings.subagents_file, settings.subagent_keys)
    if problems:
        yield replace(problems[0], what="; ".join(problem.what for problem in problems))


def _check_folder(name: str, folder: Path | None, description: str) -> Iterator[Problem]:
    """Only whether it can be read at all: what is wrong inside costs one tool, not the start."""
    if folder is not None and not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)):
        what = f"{values.shown_path(folder)} {'cannot be read as a folder' if folder.exists() else 'is not there'}"
        yield Problem(name, what, f"Name a folder with files as {description} describes them")


def _check_qweather(settings: Settings) -> Iterator[Problem]:
    """A host and one way to prove who asks; the three parts of a token only together."""
    parts = {
        "QWEATHER_JWT_PROJECT": settings.qweather_jwt_project,
        "QWEATHER_JWT_KEY_ID": settings.qweather_jwt_key_id,
        "QWEATHER_JWT_PRIVATE_KEY": settings.qweather_jwt_private_key.get_secret_value(),
    }
    if any(parts.values()):
        for name in (name for name, value in parts.items() if not value):
            yield Problem(name, "is not set, but the others of a token are", "Set all three as docs/weather.md says")
    credential = settings.qweather_key.get_secret_value() or all(parts.values())
    if credential and not settings.qweather_host:
        mend = "Set your account's API host, as abc1234xyz.def.qweatherapi.com (console, settings)"
        yield Problem("QWEATHER_HOST", "is not set, but a credential of QWeather is", mend)


def _check_fallbacks(settings: Settings) -> Iterator[Problem]:
    for number, endpoint in enumerate(settings.llm_fallbacks, 1):
        if endpoint.dialect not in {"", *DIALECTS}:
            mend = f"Write one of: {', '.join(DIALECTS)}"
            yield Problem("LLM_FALLBACKS", f"entry {number} has a dialect there is not", mend)
        texts = (endpoint.model, *endpoint.keys)
        if any(map(PLACEHOLDER.fullmatch, texts)) or EXAMPLE_HOST.search(endpoint.base_url):
            yield Problem(
                "LLM_FALLBACKS", f"entry {number} still has the text of an example", "Put your own in its place"
            )


def _doubts(settings: Settings, *, service: bool) -> Iterator[Problem]:
    """What works, but is probably not meant."""
    token = settings.onebot_access_token.get_secret_value()
    reverse = settings.onebot_mode == "reverse"
    if service and reverse and not values.is_loopback(settings.onebot_host) and len(token) < WEAK_TOKEN:
        yield Problem("ONEBOT_ACCESS_TOKEN", f"is shorter than {WEAK_TOKEN} characters: easy to guess", HOW_TO_MAKE_ONE)
    if settings.qweather_host and not (
        settings.qweather_key.get_secret_value() or settings.qweather_jwt_private_key.get_secret_value()
    ):
        yield Problem("QWEATHER_HOST", "is set but not used", "Set QWEATHER_KEY, or the three of QWEATHER_JWT_")
    if reverse and settings.onebot_url:
        yield Problem("ONEBOT_URL", "is set but not used", "Set ONEBOT_MODE=forward to connect to it, or remove it")
