"""The line is sockets of our own, or those of gateways; who has no broker loads nothing of one."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import SecretStr

from adapters.broker.notes import NoteExchange
from adapters.broker.partitions import ClusterPartition
from adapters.broker.queries import ClusterHandlers, ClusterQuery, ClusterReply
from adapters.broker.requests import RequestExchange
from adapters.metrics.work import Work
from adapters.storage.ahead import AheadTransactions
from adapters.storage.day_totals import CountingTransactions
from adapters.storage.leases import Lease
from bot.app import open_service
from bot.budget.shared_spending import SharedSpending
from bot.budget.spending import Spending
from bot.cluster.membership import Membership
from bot.core.events import Event
from bot.core.other_bots import ALONE, Announcement
from bot.outbox.owner_alerts import StartupAlerts
from bot.web import build_file_offers, build_metrics
from config.settings import Settings
from tests.cases import each_case
from tests.fakes import CountingIds, ManualClock, until


class Silence:
    """Nothing comes to it: with what does, a test fails."""

    async def handle(self, event: Event) -> None:
        raise AssertionError(event)

    async def durable(self) -> bool:
        raise AssertionError

    async def hear(self, note: Announcement | None) -> None:
        raise AssertionError(note)

    async def answer(self, ask: ClusterQuery) -> ClusterReply:
        raise AssertionError(ask)

    async def at_work(self) -> None:
        raise AssertionError

    async def begin(self, event: str) -> int:
        raise AssertionError(event)

    def end(self, event: str) -> None:
        raise AssertionError(event)


def test_a_member_of_a_cluster_has_a_line_without_connections_at_first() -> None:
    alerts = StartupAlerts()
    clock, ids = ManualClock(), CountingIds()
    settings = Settings(broker_url=SecretStr("amqp://queue/"))
    member = Membership(
        ClusterPartition(),
        Lease(),
        build_metrics((), clock),
        NoteExchange("me"),
        RequestExchange("me", ClusterPartition()),
        Work(1),
    )
    line = member.build_line(settings, clock=clock, ids=ids, alerts=alerts)
    assert line.peers.accounts() == ()
    assert (line.peers.refused, line.peers.reconnects) == ("the broker cannot be reached", 0)


@pytest.mark.parametrize(
    ("share", "told"), [(ClusterPartition(), 1), (ClusterPartition(0, 8), 1), (ClusterPartition(3, 8), 0)]
)
async def test_that_a_broker_is_away_is_told_by_the_first_share(
    share: ClusterPartition, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock, ids = ManualClock(), CountingIds()
    settings = Settings(broker_url=SecretStr("amqp://127.0.0.1:1/"))
    member = Membership(
        share, Lease(), build_metrics((), clock), NoteExchange("me"), RequestExchange("me", share), Work(1)
    )
    alerts = StartupAlerts(speaks=member.scope.is_first)
    line, nobody = member.build_line(settings, clock=clock, ids=ids, alerts=alerts), Silence()
    with alerts.logged_at_the_end():
        ears = ClusterHandlers(nobody.hear, nobody.answer, nobody.at_work, nobody.begin, nobody.end)
        async with line.open(nobody, nobody.durable, ears):
            await until(lambda: len(clock.slept) > 2)
    assert caplog.text.count("The broker cannot be reached") == told


@each_case(
    ("url", "port", "offers"),
    [("http://bot:8080/media", 8080, True), ("http://bot:8080/media", 0, False), ("", 8080, False)],
)
def test_large_files_are_offered_where_somebody_listens_at_an_address_that_is_known(
    url: str, port: int, offers: bool
) -> None:
    found = build_file_offers(Settings(media_url=url, web_port=port))
    assert (found is not None) == offers
    if found is not None:
        with found.offer("AAAA") as offered:
            assert offered.url.startswith(f"{url}/")


def test_a_bot_that_has_all_accounts_tells_nobody_of_them() -> None:
    def member_of(share: ClusterPartition) -> Membership:
        metrics = build_metrics((), ManualClock())
        return Membership(
            share, Lease(), metrics, NoteExchange("me"), RequestExchange("me", share), Work(share.partitions)
        )

    one_of_two = member_of(ClusterPartition(1, 2))
    assert one_of_two.announcer is one_of_two.notices
    assert member_of(ClusterPartition()).announcer is ALONE


async def test_only_with_other_bots_the_journal_counts_what_all_of_them_take(tmp_path: Path) -> None:
    given = Settings.model_validate(
        {
            "store_url": f"sqlite:///{tmp_path}/bot.db",
            "broker_url": "amqp://127.0.0.1:1/",
            "web_port": 0,
            "llm_base_url": "http://127.0.0.1:1/v1",
            "llm_model": "none",
        }
    )
    for share, kind, writing in (
        (ClusterPartition(), Spending, AheadTransactions),
        (ClusterPartition(1, 2), SharedSpending, CountingTransactions),
    ):
        member = Membership(
            share, Lease(), build_metrics((), ManualClock()), NoteExchange("me"), RequestExchange("me", share), Work(2)
        )
        async with open_service(given, member=member) as service:
            transactions = service.app.journal._batches._transactions
            assert (type(service.app.spending), type(transactions)) == (kind, writing)


LONE_BOT = """
import asyncio, sys
from bot.app import open_service
import bot.cli.process
from config.settings import Settings

async def run():
    url = f"sqlite+aiosqlite:///{sys.argv[1]}/frost.db"
    model = {"llm_base_url": "http://127.0.0.1:1/v1", "llm_model": "none"}
    settings = Settings.model_validate({"store_url": url, "onebot_port": 0, "web_port": 0, **model})
    async with open_service(settings) as service:
        assert service.port
        print(*sys.modules)

asyncio.run(run())
"""
OF_CLUSTERS = {
    "adapters.metrics.cluster",
    "adapters.metrics.work",
    "adapters.storage.day_totals",
    "adapters.storage.leases",
    "bot.budget.shared_spending",
    "bot.worker",
}


@pytest.mark.system
def test_a_bot_alone_loads_nothing_of_a_cluster(tmp_path: Path) -> None:
    words = (sys.executable, "-c", LONE_BOT, str(tmp_path))
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=50)
    loaded = set(told.stdout.split())
    assert {"bot.app", "bot.cli.process", "adapters.storage.store", "adapters.onebot.sockets"} <= loaded
    assert all(find_spec(name) for name in OF_CLUSTERS)  # under these names they would be loaded
    libraries = ("adapters.broker", "bot.cluster", "aio_pika", "aiormq", "pamqp")
    assert {name for name in loaded if name in OF_CLUSTERS or name.startswith(libraries)} == set()


# Each is loaded by what needs it: pages, metrics, pictures, fetching, tools with schemas of others.
LATE = {"PIL", "aiohttp.web", "httpx", "jinja2", "jsonschema", "prometheus_client", "psycopg", "rapidfuzz"}


@pytest.mark.system
def test_a_bot_without_pages_loads_no_library_before_it_is_needed(tmp_path: Path) -> None:
    words = (sys.executable, "-c", LONE_BOT, str(tmp_path))
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=50)
    assert all(find_spec(name) for name in LATE - {"psycopg"})
    assert LATE & set(told.stdout.split()) == set()


def test_a_worker_loads_the_library_of_prometheus_when_it_is_asked_for_metrics() -> None:
    words = (sys.executable, "-c", "import sys, bot.worker; print(*sys.modules)")
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=50)
    assert "adapters.metrics.work" in told.stdout.split()
    assert "prometheus_client" not in told.stdout.split()
