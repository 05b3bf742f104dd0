"""What the doctor says of a cluster; that a broker is seen rightly: tests/adapters/broker/test_status.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

import pytest
from pydantic import SecretStr
from sqlalchemy import Connection, create_engine

from adapters.broker import status as module
from adapters.broker.partitions import ClusterPartition
from adapters.broker.payloads import AccountPresence, Presence
from adapters.broker.status import BrokerStatus, BrokerUnreachable, PartitionStatus
from adapters.fetching.client import HttpxWeb
from adapters.storage import url
from adapters.storage.leases import Lease, name_of
from adapters.storage.url import read_url
from bot.cli.checks import Check, Outcome
from bot.cli.doctor.cluster import check_cluster, online_anywhere
from bot.cli.doctor.run import probes
from config.settings import Settings
from frostagent.clock import RandomIds
from frostagent.types.errors import ConfigError, Problem
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import Desk, worker_of
from tests.cases import each_case
from tests.fakes import ManualClock

SETTINGS = Settings(broker_url=SecretStr("amqp://frost:hidden@queue/"), broker_partitions=3, bot_role="gateway")
WEB = HttpxWeb(clock=ManualClock(), user_agent="test", base_urls={})  # never asked, so never opened
GATEWAYS = (Presence("a", (AccountPresence(10001, True), AccountPresence(10002, False))), Presence("b"))


def partitions(*waiting: int, worked: Sequence[int] = (0, 1, 2)) -> tuple[PartitionStatus, ...]:
    return tuple(PartitionStatus(number, place in worked) for place, number in enumerate(waiting))


async def told(monkeypatch: pytest.MonkeyPatch, found: BrokerStatus | Exception) -> list[tuple[Outcome, str, str]]:
    async def survey(address: str, number: int, *, clock: ManualClock) -> BrokerStatus:
        assert (address, number) == ("amqp://frost:hidden@queue/", 3)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(module, "read_status", survey)
    checks: list[Check] = await check_cluster(SETTINGS, clock=ManualClock())
    assert "hidden" not in str(checks)
    return [(one.outcome, one.name, one.said) for one in checks]


async def test_the_accounts_that_are_online_at_any_gateway_are_known_and_none_without_a_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await told(monkeypatch, BrokerStatus("4.1.0", partitions(0), gateways=GATEWAYS))
    assert await online_anywhere(SETTINGS, clock=ManualClock()) == {10001}
    await told(monkeypatch, BrokerUnreachable("refused"))
    assert await online_anywhere(SETTINGS, clock=ManualClock()) == set()


async def test_a_whole_cluster_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    found = BrokerStatus("4.1.0", partitions(0, 7, 0), gateways=GATEWAYS)
    assert await told(monkeypatch, found) == [
        (Outcome.OK, "broker", "RabbitMQ 4.1.0: 7 events wait in 3 partitions"),
        (Outcome.OK, "workers", "every partition has one"),
        (Outcome.OK, "gateways", "2, with 10001, 10002 OFFLINE"),
    ]


async def test_without_the_driver_of_the_database_the_broker_is_looked_at_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(url, "find_spec", lambda _: None)
    worker = {"bot_role": "worker", "store_url": SecretStr("postgresql://frost@127.0.0.1:1/frost")}
    monkeypatch.setattr(f"{__name__}.SETTINGS", SETTINGS.model_copy(update=worker))
    checks = await told(monkeypatch, BrokerStatus("4.1.0", partitions(0, 7, 0), gateways=GATEWAYS))
    assert [verdict for verdict, _, _ in checks] == [Outcome.OK] * 3


async def test_before_anything_was_started_it_is_well_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await told(monkeypatch, BrokerStatus("3.10.8")) == [
        (Outcome.OK, "broker", "RabbitMQ 3.10.8 is empty: gateways and workers make their queues")
    ]
    nobody = BrokerStatus("", partitions(0, 0, 0, worked=()))
    assert {verdict for verdict, _, _ in await told(monkeypatch, nobody)} == {Outcome.OK}


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (BrokerUnreachable("Connection refused"), ("broker", "RabbitMQ cannot be reached (Connection refused)")),
        (ConfigError(Problem("BROKER_PARTITIONS", "is 3", "Set it")), ("broker", "BROKER_PARTITIONS is 3")),
        (BrokerStatus("3.9.27", partitions(0, 0, 0)), ("broker", "RabbitMQ 3.9.27 is too old")),
        (
            BrokerStatus("4.1", partitions(0, 5, 0, worked=(0,)), gateways=GATEWAYS),
            ("workers", "no worker reads partition 1, 2"),
        ),
        (
            BrokerStatus("4.1", partitions(0, 5, 0, worked=()), gateways=GATEWAYS),
            ("workers", "no worker reads partition 0, 1, 2"),
        ),
        (BrokerStatus("4.1", partitions(0, 0, 0)), ("gateways", "none is running: no message arrives")),
    ],
)
async def test_what_is_wrong_is_one_line(
    monkeypatch: pytest.MonkeyPatch, found: BrokerStatus | Exception, wrong: tuple[str, str]
) -> None:
    checks = await told(monkeypatch, found)
    assert [(check, said) for verdict, check, said in checks if verdict is Outcome.PROBLEM] == [wrong]


async def test_events_that_were_set_aside_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = await told(monkeypatch, BrokerStatus("4.1", partitions(0, 0, 0), dead=2, gateways=GATEWAYS))
    assert checks[-1] == (Outcome.WARNING, "broker", "2 events were set aside")


@pytest.fixture
def leasing(postgres: str) -> Iterator[Connection]:
    """What leases are taken and given back over."""
    engine = create_engine(read_url(postgres))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


async def found_in(broker: str, store_url: str, role: str = "worker") -> list[tuple[Outcome, str, str]]:
    """What it says of workers and leases."""
    urls = {"broker_url": broker, "store_url": store_url}
    settings = Settings.model_validate({**urls, "broker_partitions": PARTITIONS, "bot_role": role})
    checks = await check_cluster(settings, clock=ManualClock())
    return [(one.outcome, one.name, one.said) for one in checks if one.name in {"workers", "leases"}]


def leased(leasing: Connection, number: int) -> Lease:
    lease = Lease(name_of(number), seconds=600.0, holder=f"7.{number}@host")
    lease.take(leasing, "the place")
    return lease


async def test_a_partition_is_worked_by_who_holds_its_lease_and_takes_from_it(
    broker: str, postgres: str, leasing: Connection
) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(worker_of(broker, Desk(), share=ClusterPartition(0, PARTITIONS)))
        unheld = "the worker that reads partition 0 has no lease and cannot answer"
        idle = Outcome.PROBLEM, "workers", "no worker reads partition 1, 2"
        assert await found_in(broker, postgres) == [idle, (Outcome.WARNING, "leases", unheld)]
        leased(leasing, 1)
        silent = "the worker with the lease reads nothing from partition 1 (7.1@host)"
        assert await found_in(broker, postgres) == [
            (Outcome.PROBLEM, "workers", "no worker reads partition 2"),
            (Outcome.WARNING, "leases", unheld),
            (Outcome.WARNING, "leases", silent),
        ]
        first, _ = leased(leasing, 0), leased(leasing, 2)
        for number in (1, 2):
            await stack.enter_async_context(worker_of(broker, Desk(), share=ClusterPartition(number, PARTITIONS)))
        well = [(Outcome.OK, "workers", "every partition has one")]
        assert await found_in(broker, postgres) == well
        first.give_back(leasing)
        assert await found_in(broker, postgres) == [(Outcome.WARNING, "leases", unheld)]
        # Who knows no journal, or finds it away, believes whoever takes from a partition.
        assert await found_in(broker, postgres, role="gateway") == well
        assert await found_in(broker, "postgresql://frost@127.0.0.1:1/frost") == well


async def test_a_lease_without_anybody_at_work_is_told(broker: str, postgres: str, leasing: Connection) -> None:
    async with worker_of(broker, Desk(), share=ClusterPartition(0, PARTITIONS)):
        pass  # it made its queue
    assert await found_in(broker, postgres) == [(Outcome.OK, "workers", "none is running yet")]
    leased(leasing, 0)
    silent = "the worker with the lease reads nothing from partition 0 (7.0@host)"
    assert await found_in(broker, postgres) == [
        (Outcome.PROBLEM, "workers", "no worker reads partition 1, 2"),
        (Outcome.WARNING, "leases", silent),
    ]


@each_case(
    ("role", "has", "has_not"),
    [
        ("gateway", {"broker", "ports"}, {"model", "store", "weather"}),
        ("worker", {"broker", "model", "store"}, {"ports", "onebot"}),
        ("all", {"broker", "model", "store", "ports"}, set()),
    ],
)
def test_each_role_looks_at_what_it_needs(role: str, has: set[str], has_not: set[str]) -> None:
    settings = Settings.model_validate({"broker_url": "amqp://queue/", "bot_role": role})
    names = {probe.name for probe in probes(settings, web=WEB, clock=ManualClock(), ids=RandomIds())}
    assert has <= names
    assert not has_not & names


def test_a_bot_alone_looks_at_no_broker() -> None:
    names = {probe.name for probe in probes(Settings(), web=WEB, clock=ManualClock(), ids=RandomIds())}
    assert "broker" not in names
