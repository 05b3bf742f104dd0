"""A cluster: the broker can be reached and has our partitions, workers take from them, gateways are
there.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.cli.doctor.checks import Check, warn, well, wrong, wrong_settings
from bot.domain.errors import ConfigError
from bot.domain.ports import Clock
from config.settings import Settings

OLDEST = (3, 10)
"""The first RabbitMQ whose quorum queues do what is asked of them."""

START = "Start it, or correct BROKER_URL: its host, its user, its password"
LOOK = "The log of the workers says why; once that is mended: rabbitmqctl purge_queue frost.dead"


async def check_cluster(settings: Settings, *, clock: Clock) -> list[Check]:
    """Check the broker and who is there."""
    from adapters.broker.survey import Unreachable, survey

    url, partitions = settings.broker_url.get_secret_value(), settings.broker_partitions
    try:
        found = await survey(url, partitions, clock=clock)
    except ConfigError as error:
        return wrong_settings("broker", error.problems)
    except Unreachable as error:
        return [wrong("broker", f"RabbitMQ cannot be reached ({error})", START)]
    name = f"RabbitMQ {found.version}".rstrip()
    if _parts(found.version) < OLDEST:
        return [wrong("broker", f"{name} is too old", "Install RabbitMQ 3.10 or newer")]
    if not found.partitions:
        return [well("broker", f"{name} is empty: gateways and workers make their queues")]
    waiting = sum(one.waiting for one in found.partitions)
    idle = [number for number, one in enumerate(found.partitions) if not one.is_worked]
    accounts = [
        f"{one.self_id}{' OFFLINE' if one.online is False else ''}"
        for told in found.gateways
        for one in told.accounts
    ]
    return [
        well("broker", f"{name}: {waiting} events wait in {partitions} partitions"),
        *_of_workers(idle, waiting, partitions),
        *_of_gateways(len(found.gateways), accounts, is_worked=len(idle) < partitions),
        *([warn("broker", f"{found.dead} events were set aside", LOOK)] if found.dead else []),
    ]


def _of_workers(idle: list[int], waiting: int, partitions: int) -> Iterator[Check]:
    if not idle:
        yield well("workers", "every partition has one")
    elif len(idle) == partitions and not waiting:
        yield well("workers", "none is at work yet")
    else:
        numbers = ", ".join(map(str, idle))
        mend = "Start a worker (BOT_ROLE=worker); its log says what it waits for"
        yield wrong("workers", f"nobody takes from partition {numbers}", mend)


def _of_gateways(number: int, accounts: list[str], *, is_worked: bool) -> Iterator[Check]:
    if number:
        there = ", ".join(accounts) or "no account"
        yield well("gateways", f"{number}, with {there}")
    elif is_worked:
        mend = "Start a gateway (BOT_ROLE=gateway); its log says why it does not reach the broker"
        yield wrong("gateways", "none is there: nobody is heard", mend)
    else:
        yield well("gateways", "none is there yet")


def _parts(version: str) -> tuple[int, ...]:
    """The numbers of a version; one that says none counts as new enough."""
    told = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    return told or OLDEST
