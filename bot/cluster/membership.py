"""A bot's membership in a cluster: its partition of the accounts, and its broker connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from adapters.broker.account_locations import AccountLocations
from adapters.broker.calls import GatewayCalls
from adapters.broker.link import BrokerLink
from adapters.broker.notes import NoteExchange
from adapters.broker.partition_consumer import PartitionConsumer
from adapters.broker.partitions import ClusterPartition
from adapters.broker.queries import ClusterHandlers
from adapters.broker.requests import RequestExchange
from adapters.broker.worker import Worker
from adapters.metrics.metrics import Metrics
from adapters.metrics.work import Work
from adapters.onebot.accounts import Account
from adapters.onebot.protocol import ActionReply
from adapters.onebot.transport import OneBotTransport
from adapters.storage.leases import Lease
from adapters.web.file_offers import FileOffers
from bot.build import App
from bot.cluster.handlers import build_handlers
from bot.cluster.other_bots import ClusterBots, WideFeed
from bot.console.console_backend import read_status
from bot.core.console_views import Feed
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.other_bots import ALONE, Announcer
from bot.core.ports import EventSink
from bot.outbox.owner_alerts import StartupAlerts
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.types.ports import Clock, Ids


@dataclass(frozen=True, slots=True)
class RemotePeers:
    """The accounts of a partition, at all gateways; each is called by its number."""

    where: AccountLocations
    link: BrokerLink

    @property
    def reconnects(self) -> int:
        """Number of times an account connected again."""
        return self.where.reconnects

    @property
    def refused(self) -> str:
        """The account a gateway refused last, and why; or that the broker cannot be reached."""
        return self.where.refused if self.link.is_up else "the broker cannot be reached"

    def caller(self, account: int) -> int:
        """The account itself. Raises NotConnected if no gateway has it."""
        self.where.gateway_of(account)
        return account

    def server(self, account: int) -> str:
        return self.where.server(account)

    def accounts(self) -> tuple[Account, ...]:
        return tuple(Account(one.self_id, one.online, one.server) for one in self.where.accounts())


@dataclass(frozen=True, slots=True)
class RemoteCalls:
    calls: GatewayCalls

    async def make(
        self, account: int, action: str, params: Mapping[str, object], /, *, beside: int = 0
    ) -> ActionReply:
        """The server's answer. Raises NotConnected, ActionRefused, ActionUnanswered."""
        answer = await self.calls.make(account, action, params, beside=beside)
        match answer.outcome:
            case "answered":
                return ActionReply("", answer.ok, answer.retcode, answer.data, answer.wording)
            case "not_connected":
                raise NotConnected(answer.wording)
            case "refused":
                raise ActionRefused(action, retcode=answer.retcode, wording=answer.wording)
            case "unanswered":
                raise ActionUnanswered(answer.wording)


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """The accounts of a partition, with their events and calls through gateways."""

    peers: RemotePeers
    transport: OneBotTransport[int]
    worker: Worker

    @asynccontextmanager
    async def open(
        self,
        sink: EventSink,
        durable: Callable[[], Awaitable[bool]],
        handlers: ClusterHandlers,
        /,
    ) -> AsyncIterator[int]:
        """Take events from the broker while the block runs; no port is listened on, so it is 0.

        `durable` waits until the journal has everything put into it; False if it cannot promise
        that.
        """
        async with background(self.worker.run(sink, durable, handlers)):
            yield 0

    def open_for(
        self, app: App, sink: EventSink, at_work: Callable[[], Awaitable[None]]
    ) -> AbstractAsyncContextManager[int]:
        """Like `open`, for this bot and its answers; `at_work` returns once it takes events."""
        return self.open(sink, app.store.commit, build_handlers(app, at_work))


@dataclass(frozen=True, slots=True)
class Membership:
    """A bot in a cluster: its partition with the lease, and its exchanges with the other bots.
    `metrics`, `work` and `offers` belong to its process.
    """

    scope: ClusterPartition
    lease: Lease
    metrics: Metrics
    notices: NoteExchange
    asks: RequestExchange
    work: Work
    offers: FileOffers | None = None

    @property
    def announcer(self) -> Announcer:
        """Announces to the other bots; ALONE in a cluster with one partition."""
        return self.notices if self.scope.partitions > 1 else ALONE

    def build_others(self) -> ClusterBots:
        return ClusterBots(self.asks)

    def build_line(
        self, settings: Settings, *, clock: Clock, ids: Ids, alerts: StartupAlerts
    ) -> BrokerLine:
        """Build this bot's line, not open yet. Gateways find a partition's bot by its lease."""
        scope, lease = self.scope, self.lease
        where = AccountLocations(share=scope, clock=clock)
        link = BrokerLink(
            settings.broker_url.get_secret_value(), clock=clock, trouble=alerts.tell_once
        )
        self.work.links[scope.partition] = lambda: link.is_up
        calls = GatewayCalls(link=link, where=where, epoch=lambda: lease.epoch, ids=ids)
        consumer = PartitionConsumer(
            where, clock=clock, trouble=alerts.tell, lay_aside=self.work.lay_aside
        )
        worker = Worker(
            link=link,
            where=where,
            consumer=consumer,
            calls=calls,
            notices=self.notices,
            asks=self.asks,
            clock=clock,
            trouble=alerts.tell,
        )
        peers = RemotePeers(where, link)
        transport = OneBotTransport(
            peers=peers,
            calls=RemoteCalls(calls),
            pass_urls=settings.media_urls == "pass",
            offers=self.offers,
        )
        return BrokerLine(peers, transport, worker)

    @asynccontextmanager
    async def open_feed(self, app: App) -> AsyncIterator[Feed]:
        """The news of all bots, for this bot's console. The others are polled while the block runs
        and a page is watched.
        """
        scope, shown = app.journal.scope, app.journal.shown
        feed = WideFeed(app.newest, shown, ours=scope.has_place, clock=app.clock)

        async def look() -> None:
            await app.others.add_statuses(await read_status(app, with_drafts=False))

        if not (self.asks.count and scope.is_first):
            yield feed
            return
        async with background(feed.run(look)):
            yield feed
