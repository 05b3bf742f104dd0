"""The costs that strangers may cause: a group of many that nothing limits, and limits in money that
count nothing of a model, since nobody knows its price.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from sqlalchemy import func, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from adapters.storage.database import Database
from adapters.storage.tables import speakers
from bot.cli.doctor.checks import Check, warn
from bot.cli.doctor.chinese import sentence
from bot.domain.errors import ConfigError
from bot.policy.prices import Price
from bot.wiring.models import prices_asked
from bot.wiring.subagents import endpoints_of
from config.endpoints import Endpoint
from config.persona_files import read_personas
from config.settings import Settings
from config.subagents import read_subagents

MANY = 200  # members
WHO = ("user", "group", "all")
RATES = ("bot_user_rate", "bot_group_rate")


def check_limits(settings: Settings) -> list[Check]:
    """Whether limits in money count every model; and, where no OneBot server can be asked for
    groups, whether one of those in the journal has many people. Blocks.
    """
    told = list(_uncounted(settings))
    if settings.onebot_mode == "reverse":
        told += judge_groups(settings, _heard_in(settings))
    return told


def judge_groups(settings: Settings, groups: Iterable[tuple[int, int]]) -> list[Check]:
    """Warn of what is not limited in the largest of these groups (number, people), where it has
    more than MANY, and a model that is paid for, or may be.
    """
    group, people = max(groups, key=lambda one: one[1], default=(0, 0))
    if people <= MANY or not (lacking := list(_lacking(settings))):
        return []
    said = sentence(
        "group {} has {} people, and not all that they may cost is limited", group, people
    )
    return [warn("limits", said, sentence("Set {} (docs/limits.md)", ", ".join(lacking)))]


def _lacking(settings: Settings) -> Iterator[str]:
    """The settings that would limit what is not limited: one of those of a person and of all."""
    prices = [price for _, price in _prices(settings)]
    if not any(price is None or price.prompt or price.completion for price in prices):
        return
    kind = "tokens" if None in prices else "cost"
    limited = {who for who in WHO if getattr(settings, f"bot_day_{kind}_{who}")}
    limited |= {who for who in WHO if getattr(settings, f"bot_day_tokens_{who}")}
    if limited.isdisjoint({"group", "all"}):
        yield f"BOT_DAY_{kind.upper()}_ALL"
    if "user" not in limited:
        yield f"BOT_DAY_{kind.upper()}_USER"
    yield from (name.upper() for name in RATES if not getattr(settings, name))


def _prices(settings: Settings) -> tuple[tuple[str, Price | None], ...]:
    """Of all that is asked: also of personas and subagents with a model of their own, and of who
    makes text of speech.
    """
    rows, _ = read_subagents(settings.subagents_file, settings.subagent_keys)
    personas, _ = read_personas(settings.personas_dir)
    heads = [file.head for file in personas.values()]
    more = [endpoints_of(row, settings)[0] for row in rows]
    more += [settings.models_named(head.model)[0] for head in heads if head.model]
    if settings.stt_base_url:
        more.append(Endpoint(settings.stt_base_url, settings.stt_api_key, settings.stt_model))
    return prices_asked(settings, *more)


def _uncounted(settings: Settings) -> Iterator[Check]:
    """Limits in money, and models of whose requests they count nothing."""
    unknown = dict.fromkeys(model for model, price in _prices(settings) if price is None)
    limits = [who for who in WHO if getattr(settings, f"bot_day_cost_{who}")]
    if not (unknown and limits):
        return
    names = ", ".join(f"BOT_DAY_COST_{who.upper()}" for who in limits)
    beside = [
        f"BOT_DAY_TOKENS_{who.upper()}"
        for who in limits
        if not getattr(settings, f"bot_day_tokens_{who}")
    ]
    mend = sentence("Give its price in a file that LLM_PRICES names (docs/models.md)")
    if beside:
        mend = sentence("{}, or set {} beside it", mend, ", ".join(beside))
    said = sentence(
        "nobody knows the price of {}: {} counts nothing of it", ", ".join(unknown), names
    )
    yield warn("limits", said, mend)


def _heard_in(settings: Settings) -> list[tuple[int, int]]:
    """The groups in the journal, and how many people were ever heard there; none where it does not
    open, which `check_store` tells.
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
