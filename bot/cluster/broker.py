"""The same line over a broker: what gateways do with their sockets, what workers do without."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.broker.account_locations import AccountLocations
from adapters.broker.calls import GatewayCalls
from adapters.broker.gateway import Gateway
from adapters.broker.link import BrokerLink
from adapters.broker.partition_consumer import PartitionConsumer
from adapters.broker.payloads import AccountPresence, CallEnd, GatewayCall, Presence
from adapters.broker.worker import Worker
from adapters.onebot.peers import Account
from adapters.onebot.protocol import ActionReply
from adapters.onebot.sockets import Sockets
from adapters.onebot.transport import OneBotTransport
from bot.cluster.line import Durable, Hearing, Seat
from bot.domain.cancellation import background
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.language import NotifyOwners
from bot.domain.ports import Clock, EventSink, Ids
from bot.speaking.startup_alerts import StartupAlerts
from config.settings import Settings


@dataclass(frozen=True, slots=True)
class RemotePeers:
    """The accounts of a share, at all gateways. Each is called by its number."""

    where: AccountLocations
    link: BrokerLink

    @property
    def reconnects(self) -> int:
        """Connections of accounts that had one before."""
        return self.where.reconnects

    @property
    def refused(self) -> str:
        """Who was refused last, and why; that nobody can be reached, where that is so."""
        return self.where.refused if self.link.is_up else "the broker cannot be reached"

    def caller(self, account: int) -> int:
        """The account itself. Raises NotConnected where no gateway has it."""
        self.where.gateway_of(account)
        return account

    def server(self, account: int) -> str:
        """The name and version of its server."""
        return self.where.server(account)

    def accounts(self) -> tuple[Account, ...]:
        """All that can be asked to do something now."""
        return tuple(Account(one.self_id, one.online, one.server) for one in self.where.accounts())


@dataclass(frozen=True, slots=True)
class RemoteCalls:
    """Calls that a gateway makes for us."""

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
    async def open(self, sink: EventSink, durable: Durable, ears: Hearing, /) -> AsyncIterator[int]:
        """Take events from the broker while the block runs; nothing is listened on."""
        async with background(self.worker.run(sink, durable, ears())):
            yield 0


def build_broker_line(
    settings: Settings, seat: Seat, *, clock: Clock, ids: Ids, troubles: StartupAlerts
) -> BrokerLine:
    """The line of a worker's share of the accounts, not open yet. Every bot of the process sees
    that the broker is away: one of them tells it.
    """
    share, lease = seat.share, seat.lease
    where = AccountLocations(share=share, clock=clock)
    link = BrokerLink(
        settings.broker_url.get_secret_value(), clock=clock, trouble=troubles.tell_once
    )
    seat.work.links[share.partition] = link
    calls = GatewayCalls(link=link, where=where, epoch=lambda: lease.epoch, ids=ids)
    consumer = PartitionConsumer(
        where, clock=clock, trouble=troubles.tell, lay_aside=seat.work.lay_aside
    )
    worker = Worker(
        link=link,
        where=where,
        consumer=consumer,
        calls=calls,
        notices=seat.notices,
        asks=seat.asks,
        clock=clock,
        trouble=troubles.tell,
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
    """The composition behind the sockets of a gateway."""

    async def put(call: GatewayCall) -> CallEnd:
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

    def accounts() -> Presence:
        here = tuple(
            AccountPresence(one.self_id, one.online, one.server) for one in sockets.peers.accounts()
        )
        return Presence("", here, sockets.peers.refused, sockets.peers.reconnects)

    return Gateway(
        f"frost.gateway.{ids.trace()}",
        link=BrokerLink(settings.broker_url.get_secret_value(), clock=clock, trouble=trouble),
        partitions=settings.broker_partitions,
        calls=put,
        accounts=accounts,
        clock=clock,
    )
