"""All that a person may set (design: "What users type"), frozen once it is read.

A field is called like its variable in small letters: `LLM_BASE_URL` is `settings.llm_base_url`.
`Settings(...)` reads nothing by itself; `config/loading.py` does, and `config/checks.py` looks at
what is wrong only together.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.core.language import Bilingual
from config import tokens, values
from config.endpoints import Endpoint, fallbacks, in_order
from config.persona_files import PersonaFile, PersonaHead, find_persona, read_persona_file
from config.values import Owners, hours, owners, time_of_day, zone
from frostagent.types.errors import ConfigError, Problem

DEFAULT_PERSONA = Path(__file__).parent / "personas" / "default.md"
DEFAULT_STORE = "sqlite+aiosqlite:///data/frostagent.db"

DIALECTS = (
    "plain", "anthropic", "dashscope", "deepseek", "gemini", "glm", "groq", "kimi", "mimo",
    "mistral", "openai", "openrouter", "stepfun",
)  # fmt: skip
"""What LLM_DIALECT may be: the rows of `frostagent/models/openai/dialects.py` (a test compares)."""

Names = Annotated[tuple[str, ...], BeforeValidator(values.names)]
QQNumbers = Annotated[frozenset[int], BeforeValidator(values.qq_numbers)]
Host = Annotated[str, AfterValidator(values.host)]
BaseUrl = Annotated[str, AfterValidator(values.base_url)]
Secret = Annotated[SecretStr, AfterValidator(values.secret)]
Keys = Annotated[SecretStr, AfterValidator(values.keys)]
FilePath = Annotated[Path, BeforeValidator(values.path)]
Dollars = Annotated[float, BeforeValidator(values.number(0, 1_000_000))]
Tokens = Annotated[int, BeforeValidator(values.whole(0, 10**12))]
Often = tuple[int, float] | None
Mode = Literal["reverse", "forward"]
Scope = Literal["group", "member"]
Hours = Annotated[tuple[tuple[int, int], ...], BeforeValidator(hours)]
NewGroup = Literal["ask", "live", "shadow", "off"]
QuietMode = Literal["weak", "all"]
Accept = Literal["ask", "friends", "none"]
Language = Literal["", "zh", "en"]
MediaSend = Literal["base64", "file"]
MediaUrls = Literal["fetch", "pass"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LogFormat = Literal["console", "json"]
BotRole = Literal["all", "gateway", "worker"]
Level = Annotated[
    LogLevel, BeforeValidator(values.one_of("DEBUG", "INFO", "WARNING", "ERROR", warn="WARNING"))
]
ByTool = Annotated[dict[str, str], BeforeValidator(values.audiences)]
Mirrors = Annotated[dict[str, str], BeforeValidator(values.mirrors)]
SigningKey = Annotated[SecretStr, AfterValidator(values.ed25519_key)]
History = Annotated[int, BeforeValidator(values.whole(500, values.MAX_CONTEXT))]


class Settings(BaseSettings):
    """Everything a person may set, with its default; `.env.example` explains each."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    llm_base_url: BaseUrl = ""
    llm_api_key: Keys = SecretStr("")
    llm_model: str = ""
    llm_dialect: Annotated[str, BeforeValidator(values.one_of("", *DIALECTS))] = ""
    llm_fallbacks: Annotated[tuple[Endpoint, ...], BeforeValidator(fallbacks)] = ()
    llm_vision_model: str = ""
    llm_cheap_model: str = ""
    llm_context: Annotated[int, BeforeValidator(values.whole(0, values.MAX_CONTEXT))] = 0
    llm_parallel: Annotated[int, BeforeValidator(values.whole(0, 1000))] = 0
    llm_first_token: Annotated[float, BeforeValidator(values.number(0, 3600))] = 60.0
    llm_prices: FilePath | None = None

    onebot_mode: Annotated[Mode, BeforeValidator(values.one_of("reverse", "forward"))] = "reverse"
    onebot_host: Host = "0.0.0.0"  # noqa: S104  # the OneBot server is usually another container
    onebot_port: Annotated[int, BeforeValidator(values.whole(0, 65535))] = 6199
    onebot_url: Annotated[str, AfterValidator(values.socket_url)] = ""
    onebot_access_token: Annotated[SecretStr, AfterValidator(tokens.tokens)] = SecretStr("")

    bot_name: str = "FrostAgent"
    bot_aliases: Names = ()
    bot_language: Annotated[Language, BeforeValidator(values.one_of("", "zh", "en"))] = ""
    bot_owners: Annotated[Owners, PlainValidator(owners)] = Owners()
    bot_persona: FilePath | None = None
    system_prompt: str = ""
    personas_dir: FilePath | None = None
    groups_file: FilePath | None = None
    words_file: FilePath | None = None
    bot_accept: Annotated[Accept, BeforeValidator(values.one_of("ask", "friends", "none"))] = "ask"
    bot_groups: QQNumbers = frozenset()
    bot_new_group: Annotated[NewGroup, BeforeValidator(values.one_of(*get_args(NewGroup)))] = "ask"
    bot_users: QQNumbers = frozenset()
    bot_block: QQNumbers = frozenset()
    bot_robots: QQNumbers = frozenset()
    bot_prefixes: Names = ()
    bot_digest: Annotated[float | None, BeforeValidator(time_of_day)] = 9 * 3600.0
    bot_at_all: Annotated[bool, BeforeValidator(values.switch)] = False
    bot_chance: Annotated[float, BeforeValidator(values.number(0, 1))] = 0.0
    bot_stale: Annotated[float, BeforeValidator(values.number(0, 86_400))] = 120.0
    bot_quiet: Hours = ()
    bot_quiet_mode: Annotated[QuietMode, BeforeValidator(values.one_of("weak", "all"))] = "weak"
    bot_loop: Annotated[int, BeforeValidator(values.whole(0, 1000))] = 6
    bot_user_rate: Annotated[Often, BeforeValidator(values.rate)] = (6, 60.0)
    bot_group_rate: Annotated[Often, BeforeValidator(values.rate)] = (20, 60.0)
    bot_steer: Annotated[bool, BeforeValidator(values.switch)] = True
    bot_debounce: Annotated[float, BeforeValidator(values.number(0, 60))] = 1.2
    bot_scope: Annotated[Scope, BeforeValidator(values.one_of("group", "member"))] = "group"
    bot_lane: Annotated[int, BeforeValidator(values.whole(0, 10_000))] = 64
    bot_memory: Annotated[bool, BeforeValidator(values.switch)] = True
    bot_max_steps: Annotated[int, BeforeValidator(values.whole(1, 64))] = 12
    bot_run_requests: Annotated[int, BeforeValidator(values.whole(0, 1000))] = 24
    bot_run_tokens: Annotated[int, BeforeValidator(values.whole(0, 10**9))] = 0
    bot_max_sends: Annotated[int, BeforeValidator(values.whole(0, 100))] = 5
    bot_day_cost_user: Dollars = 0.0
    bot_day_cost_group: Dollars = 0.0
    bot_day_cost_all: Dollars = 0.0
    bot_day_tokens_user: Tokens = 0
    bot_day_tokens_group: Tokens = 0
    bot_day_tokens_all: Tokens = 0
    bot_history_tokens: History = 12_000
    bot_send_rate: Annotated[float, BeforeValidator(values.number(0, 1000))] = 1.0
    bot_send_burst: Annotated[int, BeforeValidator(values.whole(0, 1000))] = 3
    bot_pace: Annotated[bool, BeforeValidator(values.switch)] = True

    coder_base_url: BaseUrl = ""
    coder_api_key: Keys = SecretStr("")
    coder_model: str = ""

    stt_base_url: BaseUrl = ""
    stt_api_key: Keys = SecretStr("")
    stt_model: str = "whisper-1"

    store_url: Annotated[SecretStr, AfterValidator(values.database)] = SecretStr(DEFAULT_STORE)
    store_keep_days: Annotated[int, BeforeValidator(values.whole(0, 36_500))] = 90
    store_keep_messages: Annotated[int, BeforeValidator(values.whole(0, 10**12))] = 1_000_000

    bot_role: Annotated[BotRole, BeforeValidator(values.one_of(*get_args(BotRole)))] = "all"
    broker_url: Annotated[SecretStr, AfterValidator(values.broker_url)] = SecretStr("")
    broker_partitions: Annotated[int, BeforeValidator(values.whole(1, 64))] = 1

    web_host: Host = "127.0.0.1"
    web_port: Annotated[int, BeforeValidator(values.whole(0, 65535))] = 8080

    console_host: Host = "127.0.0.1"
    console_port: Annotated[int, BeforeValidator(values.whole(0, 65535))] = 0
    console_token: Annotated[SecretStr, AfterValidator(tokens.console_token)] = SecretStr("")
    console_totp: Annotated[SecretStr, AfterValidator(tokens.console_totp)] = SecretStr("")
    console_origin: Annotated[str, AfterValidator(values.origin)] = ""
    console_proxy: Annotated[str, AfterValidator(values.proxy_address)] = ""

    tools_deny: Names = ()
    tools_approve: Names = ()
    tools_audience: ByTool = Field(default_factory=dict)
    tools_group: Annotated[bool, BeforeValidator(values.switch)] = False
    tools_max_calls: Annotated[int, BeforeValidator(values.whole(1, 1000))] = 16
    tools_dir: FilePath | None = None
    tools_mirrors: Mirrors = Field(default_factory=dict)

    games_file: FilePath | None = None
    subagents_file: FilePath | None = None
    subagent_keys: dict[str, SecretStr] = Field(default_factory=dict, exclude=True)
    mcp_file: FilePath | None = None
    mcp_keys: dict[str, SecretStr] = Field(default_factory=dict, exclude=True)
    mcp_secrets: tuple[SecretStr, ...] = Field(default=(), exclude=True)

    tools_contact: Annotated[str, AfterValidator(values.contact)] = ""
    qweather_host: Annotated[str, AfterValidator(values.api_host)] = ""
    qweather_key: Secret = SecretStr("")
    qweather_jwt_project: str = ""
    qweather_jwt_key_id: str = ""
    qweather_jwt_private_key: SigningKey = SecretStr("")
    amap_key: Secret = SecretStr("")

    media_dir: FilePath = Path("data/media")
    media_send: Annotated[MediaSend, BeforeValidator(values.one_of("base64", "file"))] = "base64"
    media_urls: Annotated[MediaUrls, BeforeValidator(values.one_of("fetch", "pass"))] = "fetch"
    media_url: Annotated[str, AfterValidator(values.media_url)] = ""

    log_level: Level = "INFO"
    log_format: Annotated[LogFormat, BeforeValidator(values.one_of("console", "json"))] = "console"
    log_content: Annotated[bool, BeforeValidator(values.switch)] = False
    log_runs: FilePath | None = None

    tz: Annotated[str, AfterValidator(zone)] = ""

    @classmethod
    def settings_customise_sources(
        cls, *_: Any, **by_name: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed in: pydantic-settings' own sources know no line numbers, no strangers
        and no name that was typed, all of which `load_settings` tells of.
        """
        return (by_name["init_settings"],)

    @property
    def access_tokens(self) -> tokens.AccessTokens:
        """The tokens by which OneBot servers and the bot know each other."""
        return tokens.read_tokens(self.onebot_access_token.get_secret_value())

    @property
    def has_broker(self) -> bool:
        """Whether sockets and journal may be in different processes."""
        return bool(self.broker_url.get_secret_value())

    @property
    def main_model(self) -> Endpoint:
        """The model that answers; its base url is empty where none is configured."""
        return Endpoint(
            self.llm_base_url, self.llm_api_key, self.llm_model, self.llm_dialect, self.llm_context
        )

    @property
    def main_models(self) -> tuple[Endpoint, ...]:
        """Who is asked for an answer, in order: the main model, then those that stand in for it."""
        return in_order(self.main_model, *self.llm_fallbacks)

    @property
    def vision_models(self) -> tuple[Endpoint, ...]:
        """Who is asked where there are pictures to be seen; empty where that is nobody else than
        otherwise.
        """
        if self.llm_vision_model in {"", self.llm_model}:
            return ()
        seeing = replace(self.main_model, model=self.llm_vision_model, context=0)
        return in_order(seeing, *self.main_models)

    def models_named(self, model: str) -> tuple[Endpoint, ...]:
        """Who is asked where this model is wanted, in order."""
        wanted = replace(self.main_model, model=model)
        wanted = wanted if model == self.llm_model else replace(wanted, context=0)
        return in_order(wanted, *self.main_models)

    @property
    def cheap_models(self) -> tuple[Endpoint, ...]:
        """Who is asked for what nobody waits for, in order: the main models where none is named."""
        if self.llm_cheap_model in {"", self.llm_model}:
            return self.main_models
        return self.models_named(self.llm_cheap_model)

    @property
    def coder_models(self) -> tuple[Endpoint, ...]:
        """Who is asked for the Coder, in order."""
        return in_order(self.coder_endpoint, *self.main_models)

    @property
    def coder_endpoint(self) -> Endpoint:
        """The Coder's model: the main one where nothing else is set. Key and dialect stay with the
        main base url.
        """
        elsewhere = self.coder_base_url not in {"", self.llm_base_url}
        key = (
            self.coder_api_key
            if elsewhere or self.coder_api_key.get_secret_value()
            else self.llm_api_key
        )
        dialect = "" if elsewhere else self.llm_dialect
        model = self.coder_model or self.llm_model
        context = self.llm_context if not elsewhere and model == self.llm_model else 0
        return Endpoint(self.coder_base_url or self.llm_base_url, key, model, dialect, context)


KNOWN = tuple(name.upper() for name, field in Settings.model_fields.items() if not field.exclude)
"""Every variable, in the order of the fields. `subagent_keys` and `mcp_keys` are none: they hold
those that SUBAGENTS_FILE and MCP_FILE name; `mcp_secrets` are all that stand in MCP_FILE.
"""


def read_persona(settings: Settings) -> PersonaFile:
    """Who the bot usually is: SYSTEM_PROMPT, else the file BOT_PERSONA, else the default. Raises
    ConfigError for the file.
    """
    if settings.system_prompt:
        return PersonaFile(key="", head=PersonaHead(), prompt=settings.system_prompt)
    file = find_persona(settings.bot_persona or DEFAULT_PERSONA)
    shown = values.shown_path(file)
    mend = Bilingual(
        "Name a text file that says who the bot is, as config/personas/default.md does",
        "写一个说明机器人是谁的文本文件，可以参照 config/personas/default.md",
    )
    try:
        text = file.read_text("utf-8-sig").strip()
    except OSError as error:
        why = values.why_unreadable(error)
        what = Bilingual(f"{shown} cannot be read {why}", f"{shown} 读不了{why.zh}")
        raise ConfigError(Problem("BOT_PERSONA", what, mend)) from None
    except UnicodeDecodeError:
        raise ConfigError(
            Problem(
                "BOT_PERSONA",
                Bilingual(f"{shown} is not UTF-8 text", f"{shown} 不是 UTF-8 文本"),
                Bilingual("Save it once more as UTF-8", "重新存成 UTF-8"),
            )
        ) from None
    if not text:
        raise ConfigError(
            Problem("BOT_PERSONA", Bilingual(f"{shown} is empty", f"{shown} 是空的"), mend)
        )
    return read_persona_file(file, setting="BOT_PERSONA")
