"""Checks of the settings: problems and warnings of loading them, weak tokens, the trusted proxy,
and what strangers may cost (a large group without limits, limits in money that do not count every
model).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import func, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from adapters.storage.database import Database
from adapters.storage.tables import speakers
from bot.chat_models import prices_asked
from bot.cli.checks import Check, describe, failures, ok, warning
from bot.core.language import CATALOGUE, Phrase
from bot.subagents import endpoints_of
from config.checks import HOW_TO_MAKE_ONE, WEAK_TOKEN
from config.endpoints import Endpoint
from config.loading import load_settings
from config.persona_files import read_personas
from config.settings import Settings
from config.tables import read_subagents
from config.values import is_loopback
from frostagent.models.prices import Price
from frostagent.types.errors import ConfigError

TOKEN = "ONEBOT_ACCESS_TOKEN"  # noqa: S105  # its name
FEW_CHARACTERS = 5
"""The least number of different characters; a random token of 8 letters and digits practically
never has fewer.
"""


USABLE: Final = Phrase("可以用", "can be used")
NO_TOKEN: Final = Phrase(
    "没设 {setting}：分不清连上来的是 OneBot 服务还是陌生人",
    "{setting} is not set: anyone can pass for the OneBot server",
)
EASY_TO_GUESS: Final = Phrase("{setting} 太容易猜到", "{setting} is easy to guess")
TOKEN_LENGTH: Final = Phrase("有 {count} 位", "has {count} characters")
TOKEN_LENGTHS: Final = Phrase(
    "有 {count} 位；单独设了令牌的账号：{accounts}",
    "has {count} characters; accounts with their own token: {accounts}",
)
LARGE_GROUP: Final = Phrase(
    "群 {group} 有 {people} 人，他们能花多少还没有都设上限",
    "group {group} has {people} members, and not all of their cost is limited",
)
SET_LIMITS: Final = Phrase(
    "设置 {settings}（docs/zh/limits.md）", "Set {settings} (docs/limits.md)"
)
NAME_PRICES: Final = Phrase(
    "在 LLM_PRICES 指定的文件里写上价格（docs/zh/models.md）",
    "Give its price in a file that LLM_PRICES names (docs/models.md)",
)
PRICES_OR_TOKENS: Final = Phrase(
    "{fix}，或者同时设置 {settings}", "{fix}, or set {settings} beside it"
)
UNKNOWN_PRICES: Final = Phrase(
    "不知道 {models} 的价格，{limits} 没把它算进去",
    "the price of {models} is unknown, so {limits} cannot count it",
)
PROXY_BELIEVED: Final = Phrase(
    "采信 {proxy} 说的来访地址：它必须自己写 X-Forwarded-For，否则谁都能冒填",
    "{proxy} is trusted to name the visitor: it must set X-Forwarded-For itself, or anyone"
    " can forge it",
)
LOCAL_PROXY_BELIEVED: Final = Phrase(
    "{said}；本机的任何进程和隧道也都能冒填",
    "{said}, and so can any process on this machine or tunnel to it",
)
CATALOGUE.register(__name__, globals())


def check_settings(
    *, environ: Mapping[str, str], env_file: Path | None
) -> tuple[Settings | None, list[Check]]:
    """The settings of the service, None if they are unusable, and the checks of them."""
    try:
        settings, warnings = load_settings(environ=environ, env_file=env_file)
    except ConfigError as error:
        return None, failures("settings", error.problems)
    told = [
        warning("settings", describe(doubt), doubt.fix) for doubt in warnings if doubt.name != TOKEN
    ]
    return settings, [
        *(told or [ok("settings", USABLE)]),
        *check_trust(settings),
    ]


def check_trust(settings: Settings) -> list[Check]:
    """Checks of how others are identified: the token of OneBot servers, and the proxy in front of
    the console.
    """
    proxy = settings.console_proxy
    if not proxy:
        return [check_token(settings)]
    said = PROXY_BELIEVED.fill(proxy=proxy)
    if is_loopback(proxy):
        said = LOCAL_PROXY_BELIEVED.fill(said=said)
    return [check_token(settings), ok("console proxy", said)]


def check_token(settings: Settings) -> Check:
    """Whether a token shared with OneBot servers is easy to guess."""
    tokens = settings.access_tokens.all
    if not tokens:
        return warning(
            "token",
            NO_TOKEN,
            HOW_TO_MAKE_ONE,
            setting=TOKEN,
        )
    if any(len(token) < WEAK_TOKEN or len(set(token)) < FEW_CHARACTERS for token in tokens):
        return warning(
            "token",
            EASY_TO_GUESS,
            HOW_TO_MAKE_ONE,
            setting=TOKEN,
        )
    accounts = ", ".join(map(str, settings.access_tokens.accounts))
    shortest = min(map(len, tokens))
    if not accounts:
        return ok("token", TOKEN_LENGTH, count=shortest)
    return ok(
        "token",
        TOKEN_LENGTHS,
        count=shortest,
        accounts=accounts,
    )


# --- costs that strangers may cause ---------------------------------------------------------------


MANY_MEMBERS = 200
LIMITED = ("user", "group", "all")
RATE_SETTINGS = ("bot_user_rate", "bot_group_rate")


def check_limits(settings: Settings) -> list[Check]:
    """Whether limits in money count every model; and, if no OneBot server can list the groups,
    whether one in the journal has many members. Blocks.
    """
    told = list(_uncounted(settings))
    if settings.onebot_mode == "reverse":
        told += check_groups(settings, _heard_in(settings))
    return told


def check_groups(settings: Settings, groups: Iterable[tuple[int, int]]) -> list[Check]:
    """Warn about missing limits in the largest of these groups (number, members), if it has more
    than MANY members and a model is or may be paid for.
    """
    group, people = max(groups, key=lambda one: one[1], default=(0, 0))
    if people <= MANY_MEMBERS or not (lacking := list(_lacking(settings))):
        return []
    return [
        warning(
            "limits",
            LARGE_GROUP,
            SET_LIMITS,
            settings=", ".join(lacking),
            group=group,
            people=people,
        )
    ]


def _lacking(settings: Settings) -> Iterator[str]:
    """The settings that would add the missing limits, one for a person and one for all."""
    prices = [price for _, price in _prices(settings)]
    if not any(price is None or price.prompt or price.completion for price in prices):
        return
    kind = "tokens" if None in prices else "cost"
    limited = {who for who in LIMITED if getattr(settings, f"bot_day_{kind}_{who}")}
    limited |= {who for who in LIMITED if getattr(settings, f"bot_day_tokens_{who}")}
    if limited.isdisjoint({"group", "all"}):
        yield f"BOT_DAY_{kind.upper()}_ALL"
    if "user" not in limited:
        yield f"BOT_DAY_{kind.upper()}_USER"
    yield from (name.upper() for name in RATE_SETTINGS if not getattr(settings, name))


def _prices(settings: Settings) -> tuple[tuple[str, Price | None], ...]:
    """All models in use, including those of personas, subagents and transcription."""
    rows, _ = read_subagents(settings.subagents_file, settings.subagent_keys)
    personas, _ = read_personas(settings.personas_dir)
    heads = [file.head for file in personas.values()]
    more = [endpoints_of(row, settings)[0] for row in rows]
    more += [settings.models_named(head.model)[0] for head in heads if head.model]
    if settings.stt_base_url:
        more.append(Endpoint(settings.stt_base_url, settings.stt_api_key, settings.stt_model))
    return prices_asked(settings, *more)


def _uncounted(settings: Settings) -> Iterator[Check]:
    """The limits in money, and the models whose requests they do not count."""
    unknown = dict.fromkeys(model for model, price in _prices(settings) if price is None)
    limits = [who for who in LIMITED if getattr(settings, f"bot_day_cost_{who}")]
    if not (unknown and limits):
        return
    names = ", ".join(f"BOT_DAY_COST_{who.upper()}" for who in limits)
    beside = [
        f"BOT_DAY_TOKENS_{who.upper()}"
        for who in limits
        if not getattr(settings, f"bot_day_tokens_{who}")
    ]
    fix = NAME_PRICES.fill()
    if beside:
        fix = PRICES_OR_TOKENS.fill(fix=fix, settings=", ".join(beside))
    said = UNKNOWN_PRICES.fill(models=", ".join(unknown), limits=names)
    yield warning("limits", said, fix)


def _heard_in(settings: Settings) -> list[tuple[int, int]]:
    """The groups in the journal with the number of people ever seen there; empty if it does not
    open, which `check_store` reports.
    """
    try:
        database = Database(settings.store_url.get_secret_value(), migrate=lambda _: None)
        with closing(database):
            if database.file is not None and not database.file.exists():
                return []
            with database.reading() as connection:
                if not inspect(connection).has_table(speakers.name):
                    return []
                place = speakers.c.conversation
                people = select(place, func.count()).where(place.like("%:group:%"))
                rows = connection.execute(people.group_by(place)).all()
    except (ConfigError, OSError, SQLAlchemyError):
        return []
    return [(int(here.rpartition(":")[2]), number) for here, number in rows]
