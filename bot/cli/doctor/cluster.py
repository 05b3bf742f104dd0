"""Checks of a cluster: the broker is reachable and has our partitions, workers hold leases and read
their partitions, gateways are running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import SQLAlchemyError

from adapters.storage.database import Database
from adapters.storage.leases import leases_of, name_of
from bot.cli.checks import Check, failure, failures, ok, warning
from bot.core.language import CATALOGUE, Phrase
from config.settings import Settings
from frostagent.types.errors import ConfigError
from frostagent.types.ports import Clock

if TYPE_CHECKING:  # a library of an extra
    from adapters.broker.status import PartitionStatus

OLDEST = (3, 10)
"""The first RabbitMQ whose quorum queues can do what we need."""

START = Phrase(
    "启动它，或者改正 BROKER_URL 里的地址、用户名、密码",
    "Start it, or correct BROKER_URL: its host, its user, its password",
)
LOOK = Phrase(
    "worker 的日志里写着原因；解决以后执行 rabbitmqctl purge_queue frost.dead",
    "The workers' log says why; once that is fixed: rabbitmqctl purge_queue frost.dead",
)


UNREACHABLE: Final = Phrase("连不上 RabbitMQ（{why}）", "RabbitMQ cannot be reached ({why})")
TOO_OLD: Final = Phrase("{broker} 太旧", "{broker} is too old")
INSTALL_NEWER: Final = Phrase("请装 RabbitMQ 3.10 或更新的版本", "Install RabbitMQ 3.10 or newer")
EMPTY: Final = Phrase(
    "{broker} 是空的，gateway 和 worker 会建队列",
    "{broker} is empty: gateways and workers make their queues",
)
EVENTS_WAIT: Final = Phrase(
    "{broker}：{waiting} 个事件在 {partitions} 个分区里等着",
    "{broker}: {waiting} events wait in {partitions} partitions",
)
SET_ASIDE: Final = Phrase("有 {count} 个事件被放到一边", "{count} events were set aside")
EVERY_PARTITION_HELD: Final = Phrase("每个分区都有", "every partition has one")
NO_WORKERS: Final = Phrase("还没有启动的", "none is running yet")
START_WORKER: Final = Phrase(
    "启动一个 worker（BOT_ROLE=worker）；它的日志里写着在等什么",
    "Start a worker (BOT_ROLE=worker); its log says what it is waiting for",
)
NOT_CONSUMED: Final = Phrase(
    "分区 {partitions} 没有 worker 在取", "no worker reads partition {partitions}"
)
CHECK_WORKER: Final = Phrase(
    "如果一直这样：看看这个 worker 连不连得上 PostgreSQL、有没有卡死，各处的 "
    "STORE_URL 是不是同一个；然后重启它",
    "If this lasts: check that its worker reaches PostgreSQL and is not frozen, and that"
    " STORE_URL is the same everywhere; restart that worker",
)
HOLDS_NO_LEASE: Final = Phrase(
    "在取分区 {partitions} 的 worker 没有租约，答复不了",
    "the worker that reads partition {partitions} has no lease and cannot answer",
)
CHECK_RABBITMQ: Final = Phrase(
    "如果一直这样：从日志看这个 worker 连不连得上 RabbitMQ，然后重启它",
    "If this lasts: check in its log that this worker reaches RabbitMQ, and restart it",
)
TAKES_NOTHING: Final = Phrase(
    "持有租约的 worker 没有在取分区 {partitions}",
    "the worker with the lease reads nothing from partition {partitions}",
)
NO_ACCOUNT: Final = Phrase("没有", "no account")
GATEWAYS_FOUND: Final = Phrase("{count} 个，账号：{accounts}", "{count}, with {accounts}")
START_GATEWAY: Final = Phrase(
    "启动一个 gateway（BOT_ROLE=gateway）；它的日志里写着为什么连不上 RabbitMQ",
    "Start a gateway (BOT_ROLE=gateway); its log says why it does not reach the broker",
)
NO_GATEWAY: Final = Phrase("一个也没有：谁说话都听不到", "none is running: no message arrives")
NO_GATEWAY_YET: Final = Phrase("还没有", "none is running yet")
CATALOGUE.register(__name__, globals())


async def check_cluster(settings: Settings, *, clock: Clock) -> list[Check]:
    """Check the broker, the workers and the gateways."""
    from adapters.broker.status import BrokerUnreachable, read_status

    url, partitions = settings.broker_url.get_secret_value(), settings.broker_partitions
    try:
        found = await read_status(url, partitions, clock=clock)
    except ConfigError as error:
        return failures("broker", error.problems)
    except BrokerUnreachable as error:
        return [
            failure(
                "broker",
                UNREACHABLE,
                START,
                why=error,
            )
        ]
    name = f"RabbitMQ {found.version}".rstrip()
    if _parts(found.version) < OLDEST:
        return [
            failure(
                "broker",
                TOO_OLD,
                INSTALL_NEWER,
                broker=name,
            )
        ]
    if not found.partitions:
        return [
            ok(
                "broker",
                EMPTY,
                broker=name,
            )
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
        ok(
            "broker",
            EVENTS_WAIT,
            broker=name,
            waiting=waiting,
            partitions=partitions,
        ),
        *_of_workers(found.partitions, leases),
        *_of_gateways(len(found.gateways), accounts, is_worked=is_worked),
        *(
            [
                warning(
                    "broker",
                    SET_ASIDE,
                    LOOK,
                    count=found.dead,
                )
            ]
            if found.dead
            else []
        ),
    ]


async def online_anywhere(settings: Settings, *, clock: Clock) -> frozenset[int]:
    """The accounts connected to any gateway and not reported offline; none if the broker is
    unreachable, which `check_cluster` reports.
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
    """The holder of each lease by its name; None if unknown: a gateway has no journal, and
    `check_store` reports one that does not open. Blocks.
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
    """If the `leases` are unknown, a worker that reads a partition is assumed to hold its lease."""
    everything = set(range(len(partitions)))
    taken = {number for number in everything if partitions[number].is_worked}
    held = {number for number in everything if leases and name_of(number) in leases}
    believed = taken if leases is None else held
    if taken == believed == everything:
        yield ok("workers", EVERY_PARTITION_HELD)
    elif not taken | believed and not any(one.waiting for one in partitions):
        yield ok("workers", NO_WORKERS)
    elif nobody := everything - taken - believed:
        fix = START_WORKER
        yield failure(
            "workers",
            NOT_CONSUMED,
            fix,
            partitions=_listed(nobody),
        )
    if without := taken - believed:
        fix = CHECK_WORKER
        yield warning(
            "leases",
            HOLDS_NO_LEASE,
            fix,
            partitions=_listed(without),
        )
    if leases and (silent := believed - taken):
        fix = CHECK_RABBITMQ
        holders = ", ".join(f"{number} ({leases[name_of(number)]})" for number in sorted(silent))
        yield warning(
            "leases",
            TAKES_NOTHING,
            fix,
            partitions=holders,
        )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _of_gateways(number: int, accounts: list[str], *, is_worked: bool) -> Iterator[Check]:
    if number:
        there = ", ".join(accounts) or NO_ACCOUNT
        yield ok(
            "gateways",
            GATEWAYS_FOUND,
            count=number,
            accounts=there,
        )
    elif is_worked:
        fix = START_GATEWAY
        yield failure("gateways", NO_GATEWAY, fix)
    else:
        yield ok("gateways", NO_GATEWAY_YET)


def _parts(version: str) -> tuple[int, ...]:
    """The numbers of a version; one without numbers counts as new enough."""
    told = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    return told or OLDEST
