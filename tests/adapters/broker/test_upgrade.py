"""Two versions side by side, as in a rolling upgrade: what the first one wrote is understood, it understands what is
written now, and what only a later one knows goes where the documents say.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from adapters.broker.payloads import VERSION, AccountPresence, CallEnd, GatewayCall, Presence, pack, unpack
from adapters.broker.queries import ClusterReply
from adapters.broker.topology import DEAD, EVENTS, PRESENCE
from bot.core.console_views import BotStatus, ModelState, State
from bot.core.erasure import SubjectErased
from bot.core.events import Event, Poked
from bot.core.other_bots import Announcement, PlaceChanged, RowChanged, UsageTaken
from tests.adapters.broker.street import ACCOUNT, OURS, PATIENCE, Desk, Sockets, gateway_of, next_in, said, worker_of
from tests.cases import each_case
from tests.fakes import until

PLACE = {"platform_id": ACCOUNT, "message_type": "group", "session_id": 4242, "via_group": 0}
WHERE = said(7).conversation
OLDER = "frost.gateway.older"

FIRST: list[tuple[Any, Any, dict[str, Any]]] = [
    (
        Event,
        said(7),
        {
            "type": "message_received",
            "self_id": ACCOUNT,
            "time": 1.0,
            "conversation": PLACE,
            "message_id": "7",
            "sender": {"user_id": 20001, "nickname": "小明", "card": "", "role": "unknown"},
            "segments": [{"type": "text", "text": "第7句"}],
            "sub_type": "",
            "message_seq": "",
            "group_name": "",
        },
    ),
    (
        Event,
        Poked(self_id=ACCOUNT, time=1.5, conversation=WHERE, user_id=20001, target_id=ACCOUNT),
        {
            "type": "poked",
            "self_id": ACCOUNT,
            "time": 1.5,
            "conversation": PLACE,
            "user_id": 20001,
            "target_id": ACCOUNT,
        },
    ),
    (
        GatewayCall,
        GatewayCall(ACCOUNT, "send_group_msg", {"group_id": 4242}, 3),
        {"account": ACCOUNT, "action": "send_group_msg", "params": {"group_id": 4242}, "epoch": 3},
    ),
    (
        CallEnd,
        CallEnd("answered", True, 0, {"message_id": 7}),
        {"outcome": "answered", "ok": True, "retcode": 0, "data": {"message_id": 7}, "wording": ""},
    ),
    (
        Presence,
        Presence(OLDER, (AccountPresence(ACCOUNT, True, "NapCat", 2),), "too late", 4),
        {
            "gateway": OLDER,
            "accounts": [{"self_id": ACCOUNT, "online": True, "server": "NapCat", "times": 2}],
            "refused": "too late",
            "reconnects": 4,
        },
    ),
    (
        Announcement,
        UsageTaken(WHERE, 777, 5.0, 0.1, 1.0, 2.0),
        {"type": "taken", "where": PLACE, "who": 777, "tokens": 5.0, "cost": 0.1, "at": 1.0, "told": 2.0},
    ),
    (Announcement, RowChanged("limits", "x"), {"type": "row_set", "name": "limits", "value": "x"}),
    (
        Announcement,
        PlaceChanged(WHERE, "hush", "mute"),
        {"type": "place_told", "where": PLACE, "name": "hush", "value": "mute"},
    ),
    (Announcement, SubjectErased(user=7, said=1.0), {"type": "forgotten", "user": 7, "group": 0, "said": 1.0}),
    (
        ClusterReply,
        BotStatus(0, State(models=(ModelState("m", 7.0),))),
        {"type": "glance", "partition": 0, "state": {"models": [{"name": "m", "rests": 7.0}]}},
    ),
]
"""What the first version wrote; nothing of it is ever changed here while VERSION is 1."""

EVENT, PRESENT, CALLED, ANSWERED = (FIRST[place][2] for place in (0, 4, 2, 3))


@each_case(("kind", "value", "written"), FIRST)
def test_what_the_first_version_wrote_is_understood(kind: Any, value: Any, written: dict[str, Any]) -> None:
    assert unpack(kind, json.dumps(written).encode(), 1) == value


def has(now: Any, written: Any) -> bool:
    """Whether all that is written is there; beside it in an object may be more."""
    if isinstance(written, dict):
        return all(name in now and has(now[name], value) for name, value in written.items())
    if isinstance(written, list):
        return len(now) == len(written) and all(has(*pair) for pair in zip(now, written, strict=True))
    return bool(now == written)


@each_case(("kind", "value", "written"), FIRST)
def test_what_is_written_now_has_all_that_the_first_version_reads(
    kind: Any, value: Any, written: dict[str, Any]
) -> None:
    assert VERSION == 1
    now = json.loads(pack(value))
    assert has(now, written)


@each_case(("kind", "value", "written"), FIRST)
def test_a_field_of_a_later_version_is_passed_over(kind: Any, value: Any, written: dict[str, Any]) -> None:
    assert unpack(kind, json.dumps({**written, "colour": {"of": ["blue"]}}).encode(), 1) == value


def message(value: object, version: int = 1, **more: Any) -> Message:
    return Message(json.dumps(value).encode(), headers={"version": version}, **more)


@asynccontextmanager
async def channel_of(url: str) -> AsyncIterator[AbstractChannel]:
    async with await aio_pika.connect(url) as connection:
        yield await connection.channel()


async def test_a_worker_takes_the_events_and_answers_of_an_older_gateway_and_sets_aside_those_of_a_later_one(
    broker: str,
) -> None:
    desk, told, calls = Desk(), list[str](), list[dict[str, Any]]()
    async with worker_of(broker, desk, epoch=3, told=told) as worker, channel_of(broker) as channel:
        queue = await channel.declare_queue(OLDER, exclusive=True)

        async def answer(call: AbstractIncomingMessage) -> None:
            calls.append(json.loads(call.body))
            reply = message(ANSWERED, correlation_id=call.correlation_id)
            await channel.default_exchange.publish(reply, call.reply_to or "")

        await queue.consume(answer, no_ack=True)
        presence = await channel.get_exchange(PRESENCE)
        await presence.publish(message(PRESENT), "", mandatory=False)
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        assert await worker.call(ACCOUNT, "send_group_msg", {"group_id": 4242}) == CallEnd(
            "answered", True, 0, {"message_id": 7}
        )
        events = await channel.get_exchange(EVENTS)
        later = [({**EVENT, "message_id": "8", "colour": "blue"}, 1), (EVENT, 2), ({**EVENT, "type": "danced"}, 1)]
        for value, version in [(EVENT, 1), *later, ({**EVENT, "message_id": "9"}, 1)]:
            await events.publish(message(value, version), OURS)
        await until(lambda: desk.numbers == [7, 8, 9], seconds=PATIENCE)
        dead = await channel.declare_queue(DEAD, passive=True)
        aside = [json.loads((await next_in(dead)).body) for _ in range(2)]
        assert aside == [EVENT, {**EVENT, "type": "danced"}]
    assert [{name: call[name] for name in CALLED} for call in calls] == [CALLED]
    assert len([line for line in told if "are all parts of the cluster of about the same version?" in line]) == 2


async def test_an_older_worker_understands_what_a_gateway_tells_it_and_is_obeyed(broker: str) -> None:
    sockets = Sockets()
    async with channel_of(broker) as channel:
        heard: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        presence = await channel.declare_exchange(PRESENCE, ExchangeType.FANOUT, durable=True)
        ear = await channel.declare_queue(exclusive=True)
        await ear.bind(presence)
        await ear.consume(heard.put, no_ack=True)
        async with gateway_of(broker, sockets) as gateway, asyncio.timeout(PATIENCE):
            here = json.loads((await heard.get()).body)
            await gateway.handle(said(7))
            await gateway.wait_published()
            events: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
            await (await channel.get_queue(OURS)).consume(events.put, no_ack=True)
            event = await events.get()
            answers: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
            replies = await channel.declare_queue(exclusive=True)
            await replies.consume(answers.put, no_ack=True)
            call = message(CALLED, correlation_id="older-1", reply_to=replies.name)
            await channel.default_exchange.publish(call, here["gateway"])
            answer = await answers.get()
    assert set(PRESENT) <= set(here)
    assert set(PRESENT["accounts"][0]) <= set(here["accounts"][0])
    written = json.loads(event.body)
    assert (event.headers["version"], {name: written[name] for name in EVENT}) == (1, EVENT)
    assert answer.correlation_id == "older-1"
    told = json.loads(answer.body)
    assert {name: told[name] for name in ANSWERED} == ANSWERED
    assert sockets.calls == [GatewayCall(ACCOUNT, "send_group_msg", {"group_id": 4242}, 3)]
