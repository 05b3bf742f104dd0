"""A cluster: the broker can be reached and has our partitions, workers hold their leases and take
from them, gateways are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from adapters.storage.database import Database
from adapters.storage.leases import leases_of, name_of
from bot.cli.doctor.checks import Check, warn, well, wrong, wrong_settings
from bot.cli.doctor.chinese import sentence
from bot.domain.errors import ConfigError
from bot.domain.ports import Clock
from config.settings import Settings

if TYPE_CHECKING:  # an extra's library: not for everybody
    from adapters.broker.status import PartitionStatus

OLDEST = (3, 10)
"""The first RabbitMQ whose quorum queues do what is asked of them."""

START = "Start it, or correct BROKER_URL: its host, its user, its password"
LOOK = "The log of the workers says why; once that is mended: rabbitmqctl purge_queue frost.dead"


async def check_cluster(settings: Settings, *, clock: Clock) -> list[Check]:
    """Check the broker and who is there."""
    from adapters.broker.status import BrokerUnreachable, read_status

    url, partitions = settings.broker_url.get_secret_value(), settings.broker_partitions
    try:
        found = await read_status(url, partitions, clock=clock)
    except ConfigError as error:
        return wrong_settings("broker", error.problems)
    except BrokerUnreachable as error:
        return [wrong("broker", sentence("RabbitMQ cannot be reached ({})", error), START)]
    name = f"RabbitMQ {found.version}".rstrip()
    if _parts(found.version) < OLDEST:
        return [wrong("broker", sentence("{} is too old", name), "Install RabbitMQ 3.10 or newer")]
    if not found.partitions:
        return [
            well("broker", sentence("{} is empty: gateways and workers make their queues", name))
        ]
    waiting = sum(one.waiting for one in found.partitions)
    is_worked = any(one.is_worked for one in found.partitions)
    leases = await asyncio.to_thread(_leases, settings)
    accounts = [
        f"{one.self_id}{' OFFLINE' if one.online is False else ''}"
        for told in found.gateways
        for one in told.accounts
    ]
    return [
        well("broker", sentence("{}: {} events wait in {} partitions", name, waiting, partitions)),
        *_of_workers(found.partitions, leases),
        *_of_gateways(len(found.gateways), accounts, is_worked=is_worked),
        *(
            [warn("broker", sentence("{} events were set aside", found.dead), LOOK)]
            if found.dead
            else []
        ),
    ]


async def online_anywhere(settings: Settings, *, clock: Clock) -> frozenset[int]:
    """The accounts that are connected to any gateway and not said to be offline; none where the
    broker cannot be asked, of which `check_cluster` tells.
    """
    from adapters.broker.status import BrokerUnreachable, read_status

    url = settings.broker_url.get_secret_value()
    try:
        found = await read_status(url, settings.broker_partitions, clock=clock)
    except (ConfigError, BrokerUnreachable):
        return frozenset()
    told = (one for gateway in found.gateways for one in gateway.accounts)
    return frozenset(one.self_id for one in told if one.online is not False)


def _leases(settings: Settings) -> Mapping[str, str] | None:
    """Who has which lease, by its name; None where nobody can say: a gateway knows no journal, and
    of one that does not open `check_store` tells. Blocks.
    """
    if settings.bot_role == "gateway":
        return None
    url = settings.store_url.get_secret_value()
    try:
        with (
            closing(Database(url, migrate=lambda _: None)) as database,
            database.reading() as connection,
        ):
            return leases_of(connection)
    except (ConfigError, OSError, SQLAlchemyError):
        return None


def _of_workers(
    partitions: tuple[PartitionStatus, ...], leases: Mapping[str, str] | None
) -> Iterator[Check]:
    """Where nobody can say who has the `leases`, who takes from a partition is believed to."""
    everything = set(range(len(partitions)))
    taken = {number for number in everything if partitions[number].is_worked}
    held = {number for number in everything if leases and name_of(number) in leases}
    believed = taken if leases is None else held
    if taken == believed == everything:
        yield well("workers", "every partition has one")
    elif not taken | believed and not any(one.waiting for one in partitions):
        yield well("workers", "none is at work yet")
    elif nobody := everything - taken - believed:
        mend = "Start a worker (BOT_ROLE=worker); its log says what it waits for"
        yield wrong("workers", sentence("nobody takes from partition {}", _listed(nobody)), mend)
    if without := taken - believed:
        mend = (
            "If that lasts: see that its worker reaches PostgreSQL and is not frozen, and that "
            "STORE_URL is the same everywhere; restart that worker"
        )
        said = sentence(
            "who takes from partition {} holds no lease, and cannot answer", _listed(without)
        )
        yield warn("leases", said, mend)
    if leases and (silent := believed - taken):
        mend = "If that lasts: see that this worker reaches RabbitMQ, by its log, and restart it"
        holders = ", ".join(f"{number} ({leases[name_of(number)]})" for number in sorted(silent))
        yield warn(
            "leases", sentence("who holds the lease takes nothing from partition {}", holders), mend
        )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _of_gateways(number: int, accounts: list[str], *, is_worked: bool) -> Iterator[Check]:
    if number:
        there = ", ".join(accounts) or sentence("no account")
        yield well("gateways", sentence("{}, with {}", number, there))
    elif is_worked:
        mend = "Start a gateway (BOT_ROLE=gateway); its log says why it does not reach the broker"
        yield wrong("gateways", "none is there: nobody is heard", mend)
    else:
        yield well("gateways", "none is there yet")


def _parts(version: str) -> tuple[int, ...]:
    """The numbers of a version; one that says none counts as new enough."""
    told = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    return told or OLDEST
