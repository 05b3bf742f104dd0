"""A call of a worker ends at its own end as it ended at the gateway's."""

from __future__ import annotations

from typing import cast

import pytest
from pydantic import SecretStr

from adapters.broker.account_locations import AccountLocations
from adapters.broker.calls import GatewayCalls
from adapters.broker.link import BrokerLink
from adapters.broker.partitions import ClusterPartition
from adapters.broker.payloads import AccountPresence, CallEnd, GatewayCall, Presence
from adapters.onebot.accounts import Account
from adapters.onebot.protocol import ActionReply
from adapters.onebot.sockets import Sockets
from bot.cluster.membership import RemoteCalls, RemotePeers
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.gateway import build_gateway
from config.settings import Settings
from tests.fakes import CountingIds, ManualClock


class PaperCalls:
    def __init__(self, answer: CallEnd) -> None:
        self.answer = answer
        self.calls: list[tuple[int, str, object, int]] = []

    async def make(self, account: int, action: str, params: object, *, beside: int) -> CallEnd:
        self.calls.append((account, action, params, beside))
        return self.answer


async def made(answer: CallEnd) -> ActionReply:
    paper = PaperCalls(answer)
    reply = await RemoteCalls(cast("GatewayCalls", paper)).make(10001, "send_msg", {"a": 1}, beside=9)
    assert paper.calls == [(10001, "send_msg", {"a": 1}, 9)]
    return reply


async def test_an_answer_is_the_server_s_own() -> None:
    assert await made(CallEnd("answered", True, 0, {"message_id": 5})) == ActionReply("", True, 0, {"message_id": 5})
    assert await made(CallEnd("answered", False, 1200, wording="被禁言")) == ActionReply(
        "", False, 1200, None, "被禁言"
    )


async def test_every_other_end_is_the_error_that_it_was() -> None:
    with pytest.raises(NotConnected, match="gone"):
        await made(CallEnd("not_connected", wording="gone"))
    with pytest.raises(ActionUnanswered, match="too slow"):
        await made(CallEnd("unanswered", wording="too slow"))
    with pytest.raises(ActionRefused, match="too large") as refused:
        await made(CallEnd("refused", retcode=413, wording="too large"))
    assert refused.value.retcode == 413


def test_the_accounts_of_gateways_are_shown_as_our_own_would_be() -> None:
    where = AccountLocations(share=ClusterPartition(), clock=ManualClock())
    where.update(Presence("a", (AccountPresence(10001, True, "NapCat", 2),), "10009: a wrong token", 4))
    link = BrokerLink("amqp://queue/", clock=ManualClock(), trouble=lambda _: None)
    peers = RemotePeers(where, link)
    assert peers.refused == "the broker cannot be reached"
    link.is_up = True
    assert peers.accounts() == (Account(10001, True, "NapCat"),)
    assert (peers.caller(10001), peers.server(10001)) == (10001, "NapCat")
    assert (peers.refused, peers.reconnects) == ("10009: a wrong token", 4)
    with pytest.raises(NotConnected):
        peers.caller(10002)


@pytest.mark.parametrize(
    ("raised", "answer"),
    [
        (None, CallEnd("answered", True, 0, {"message_id": 5}, "fine")),
        (NotConnected("gone"), CallEnd("not_connected", wording="gone")),
        (ActionUnanswered("too slow"), CallEnd("unanswered", wording="too slow")),
        (ActionRefused("x", retcode=413, wording="large"), CallEnd("refused", retcode=413, wording="large")),
    ],
)
async def test_a_gateway_tells_how_a_call_ended(
    raised: Exception | None, answer: CallEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, ids = ManualClock(), CountingIds()
    settings = Settings(broker_url=SecretStr("amqp://queue/"))
    sockets = Sockets(
        host="127.0.0.1", port=0, url="", token="", account_tokens={}, pass_urls=False, clock=clock, ids=ids
    )
    put = []

    async def make(peer: object, action: str, params: object, *, beside: int) -> ActionReply:
        put.append((peer, action, params, beside))
        if raised is not None:
            raise raised
        return ActionReply("echo", True, 0, {"message_id": 5}, "fine")

    monkeypatch.setattr(sockets.peers, "caller", lambda account: f"peer of {account}")
    monkeypatch.setattr(sockets.calls, "make", make)
    gateway = build_gateway(settings, sockets, clock=clock, ids=ids, trouble=lambda _: None)
    assert await gateway._calls(GatewayCall(10001, "send_msg", {"a": 1}, beside=9)) == answer
    assert put == [("peer of 10001", "send_msg", {"a": 1}, 9)]
    assert gateway._here() == Presence(gateway._name, now=clock.now(), ticks=clock.monotonic())
