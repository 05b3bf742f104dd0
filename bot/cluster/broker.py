"""The line over a broker: for workers, which have no sockets, and for gateways, which have them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.broker.account_locations import AccountLocations
from adapters.broker.calls import GatewayCalls
from adapters.broker.gateway import Gateway
from adapters.broker.link import BrokerLink
from adapters.broker.notes import NoteExchange
from adapters.broker.partition_consumer import PartitionConsumer
from adapters.broker.payloads import AccountPresence, CallEnd, GatewayCall, Presence
from adapters.broker.requests import RequestExchange
from adapters.broker.worker import Worker
from adapters.metrics.metrics import Metrics
from adapters.metrics.work import Work
from adapters.onebot.accounts import Account
from adapters.onebot.protocol import ActionReply
from adapters.onebot.sockets import Sockets
from adapters.onebot.transport import OneBotTransport
from adapters.storage.leases import Lease
from adapters.web.file_offers import FileOffers
from bot.core.cluster_messages import ClusterPartition, ClusterPeers
from bot.core.cluster_queries import ClusterHandlers
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.ports import EventSink
from bot.outbox.owner_alerts import StartupAlerts
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.text.language import NotifyOwners
from frostagent.types.ports import Clock, Ids


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of one of several bots in a cluster: its partition and the lease on that, and its
    exchanges with the other bots. `metrics`, `work` and `offers` are those of its process.
    """

    share: ClusterPartition
    lease: Lease
    metrics: Metrics
    notices: NoteExchange
    asks: RequestExchange
    work: Work
    offers: FileOffers | None = None

    @property
    def neighbours(self) -> ClusterPeers | None:
        """The other bots; none if the cluster has a single partition."""
        return self.notices if self.share.partitions > 1 else None


@dataclass(frozen=True, slots=True)
class RemotePeers:
    """The accounts of a partition, at all gateways. Each is called by its number."""

    where: AccountLocations
    link: BrokerLink

    @property
    def reconnects(self) -> int:
        """Connections of accounts that had one before."""
        return self.where.reconnects

    @property
    def refused(self) -> str:
        """Whom a gateway refused last, and why; or that the broker cannot be reached."""
        return self.where.refused if self.link.is_up else "the broker cannot be reached"

    def caller(self, account: int) -> int:
        """The account itself. Raises NotConnected if no gateway has it."""
        self.where.gateway_of(account)
        return account

    def server(self, account: int) -> str:
        """The name and version of the account's server."""
        return self.where.server(account)

    def accounts(self) -> tuple[Account, ...]:
        """All accounts that a gateway has now."""
        return tuple(Account(one.self_id, one.online, one.server) for one in self.where.accounts())


@dataclass(frozen=True, slots=True)
class RemoteCalls:
    """Calls that gateways make for a worker."""

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
    """A `ClusterLine` without sockets."""

    peers: RemotePeers
    transport: OneBotTransport[int]
    worker: Worker

    @asynccontextmanager
    async def open(
        self,
        sink: EventSink,
        durable: Callable[[], Awaitable[bool]],
        build_handlers: Callable[[], ClusterHandlers],
        /,
    ) -> AsyncIterator[int]:
        """Take events from the broker while the block runs; no port is listened on."""
        async with background(self.worker.run(sink, durable, build_handlers())):
            yield 0


def build_broker_line(
    settings: Settings, seat: Seat, *, clock: Clock, ids: Ids, alerts: StartupAlerts
) -> BrokerLine:
    """The line of one partition of a worker, not open yet. Gateways find the partition's worker by
    the lease of the `seat`.
    """
    share, lease = seat.share, seat.lease
    where = AccountLocations(share=share, clock=clock)
    link = BrokerLink(settings.broker_url.get_secret_value(), clock=clock, trouble=alerts.tell_once)
    seat.work.links[share.partition] = lambda: link.is_up
    calls = GatewayCalls(link=link, where=where, epoch=lambda: lease.epoch, ids=ids)
    consumer = PartitionConsumer(
        where, clock=clock, trouble=alerts.tell, lay_aside=seat.work.lay_aside
    )
    worker = Worker(
        link=link,
        where=where,
        consumer=consumer,
        calls=calls,
        notices=seat.notices,
        asks=seat.asks,
        clock=clock,
        trouble=alerts.tell,
    )
    peers = RemotePeers(where, link)
    transport = OneBotTransport(
        peers=peers,
        calls=RemoteCalls(calls),
        pass_urls=settings.media_urls == "pass",
        offers=seat.offers,
    )
    return BrokerLine(peers, transport, worker)


def build_gateway(
    settings: Settings, sockets: Sockets, *, clock: Clock, ids: Ids, trouble: NotifyOwners
) -> Gateway:
    """A gateway between these sockets and the broker. `trouble` is told if the broker is away."""

    async def make_call(call: GatewayCall) -> CallEnd:
        try:
            peer = sockets.peers.caller(call.account)
            reply = await sockets.calls.make(peer, call.action, call.params, beside=call.beside)
        except NotConnected as error:
            return CallEnd("not_connected", wording=str(error))
        except ActionRefused as error:
            return CallEnd("refused", retcode=error.retcode, wording=error.wording)
        except ActionUnanswered as error:
            return CallEnd("unanswered", wording=str(error))
        return CallEnd("answered", reply.ok, reply.retcode, reply.data, reply.wording)

    def read_presence() -> Presence:
        here = tuple(
            AccountPresence(one.self_id, one.online, one.server) for one in sockets.peers.accounts()
        )
        return Presence("", here, sockets.peers.refused, sockets.peers.reconnects)

    return Gateway(
        f"frost.gateway.{ids.trace()}",
        link=BrokerLink(settings.broker_url.get_secret_value(), clock=clock, trouble=trouble),
        partitions=settings.broker_partitions,
        calls=make_call,
        accounts=read_presence,
        clock=clock,
    )
