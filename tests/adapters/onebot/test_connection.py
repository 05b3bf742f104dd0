"""One socket: whatever comes, the next frame is read."""

from __future__ import annotations

import asyncio
import logging

import orjson
import pytest

from adapters.onebot.accounts import Role
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.events import Connected, MessageReceived, Noticed, Requested
from tests.adapters.onebot.conftest import (
    ACCOUNT,
    PATIENCE,
    Dial,
    House,
    heartbeat,
    lifecycle,
    message,
)
from tests.adapters.onebot.corpus import captures

MALFORMED: list[str | bytes] = [
    "",
    "ping",
    "null",
    "[]",
    "{not-json",
    '{"post_type":"message","message_type":"group","message":[{"type":"text"',
    '{"post_type":["message"],"message":{}}',
    '{"post_type":"message","message_type":"group","group_id":"x","user_id":[],"message":7}',
    '{"status":"ok"}',
    '{"status":"failed","retcode":1400,"echo":null,"wording":"JSON 解析失败"}',
    '{"status":"failed","retcode":1403,"echo":null}',
    b"\x00\xff\xfe",
    b'{"a":"\xff"}',
    "[" * 100_000,
]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_no_malformed_frame_ends_the_connection(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        for frame in MALFORMED:
            await napcat.socket.send(frame)
        for broken in (b'{"self_id":\xff', b"\xed\xa0\x80"):
            await napcat.socket.send(broken, text=True)  # a text frame that is not UTF-8
        await napcat.send(message())
        odd, event = await house.sink.until(2)
        assert napcat.socket.close_code is None
    assert isinstance(odd, Noticed)  # it has a post_type, if an odd one
    assert isinstance(event, MessageReceived)


async def test_events_in_binary_frames_are_read_too(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        await napcat.socket.send(orjson.dumps(message()))
        [event] = await house.sink.until(1)
    assert isinstance(event, MessageReceived)


async def test_every_captured_frame_passes_through_one_connection(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        for frame in (frame for capture in captures() for frame in capture.frames):
            await napcat.socket.send(frame)
        await napcat.send(message("the last"))
        await house.until(lambda: any("the last" in str(event) for event in house.sink.events))


async def test_a_sink_that_raises_is_logged_and_the_next_event_is_delivered(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial() as napcat:
        house.sink.errors.append(RuntimeError("a bug"))
        await napcat.send(message(message_id=1), message(message_id=2))
        [event] = await house.sink.until(1)
    assert isinstance(event, MessageReceived)
    assert event.message_id == "2"
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None


async def test_an_event_without_an_account_belongs_to_the_connections(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        await napcat.send({"post_type": "request", "request_type": "friend", "flag": "f", "user_id": "5"})
        [event] = await house.sink.until(1)
    assert isinstance(event, Requested)
    assert (event.self_id, event.time) == (ACCOUNT, house.clock.now())


async def test_a_connection_answers_only_the_calls_of_its_own_account(house: House, dial: Dial) -> None:
    async with dial() as napcat, dial(20002) as other, asyncio.TaskGroup() as group:
        asking = group.create_task(house.transport.call(ACCOUNT, "get_csrf_token", {}))
        call = await napcat.receive()
        await other.answer(call, {"token": "the other's"})
        await other.send(message(account=20002))
        await house.sink.until(1)  # the answer was read before it
        await napcat.answer(call, {"token": "the own"})
    assert asking.result() == {"token": "the own"}


# --- what is told of it ---------------------------------------------------------------------------


async def test_each_connection_that_takes_calls_is_told_once_when_it_can(house: House, dial: Dial) -> None:
    async with dial(None, role="Api") as api:  # go-cqhttp greets nobody there
        await api.answer(await api.receive_any(), {"user_id": ACCOUNT})
        [connected] = await house.sink.until(1)
        assert (type(connected), connected.self_id) == (Connected, ACCOUNT)
        async with dial(None, role="Event") as events:  # what came between the two was missed
            await events.send(lifecycle(), message())
            assert [type(event) for event in await house.sink.until(3)] == [Connected, Connected, MessageReceived]


async def test_a_connection_for_events_alone_connects_nobody(house: House, dial: Dial) -> None:
    async with dial(None, role="Event") as events:
        await events.send(lifecycle(), message())
        assert [type(event) for event in await house.sink.until(1)] == [MessageReceived]
        async with dial(None, role="Api") as api:
            await api.answer(await api.receive_any(), {"user_id": ACCOUNT})
            assert [type(event) for event in await house.sink.until(2)] == [MessageReceived, Connected]


async def test_a_greeting_is_told_once_and_a_later_one_again(house: House, dial: Dial) -> None:
    async with dial(None) as napcat:
        await napcat.send(message(), lifecycle(), lifecycle(), message(message_id=2))
        events = await house.sink.until(4)
    assert [type(event) for event in events] == [Connected, MessageReceived, Connected, MessageReceived]


@pytest.mark.parametrize("role", ["Universal", "Api"])
async def test_a_sink_that_breaks_at_a_greeting_breaks_no_connection(house: House, dial: Dial, role: str) -> None:
    house.sink.errors.append(RuntimeError("a bug"))
    async with dial(None, role=role) as napcat:
        if role == "Api":
            await napcat.answer(await napcat.receive_any(), {"user_id": ACCOUNT})
            await napcat.answer(await napcat.receive_any())  # it goes on: its status is asked for
        await napcat.send(lifecycle(), lifecycle(), message())
        assert [type(event) for event in await house.sink.until(2)] == [Connected, MessageReceived]


async def test_answers_go_back_over_the_connection_that_the_question_came_by(house: House, dial: Dial) -> None:
    async with dial() as universal, dial(role="Api") as newer, asyncio.TaskGroup() as group:
        await universal.send(message())
        for napcat in (universal, newer):
            asking = group.create_task(house.transport.call(ACCOUNT, "get_csrf_token", {}))
            await napcat.answer(await napcat.receive(), "token")
            assert await asking == "token"
            await universal.socket.close()
            await house.until(lambda: house.peers.caller(ACCOUNT).role is Role.API)


async def test_what_a_connection_was_asked_is_not_waited_for_once_it_is_closed(house: House, dial: Dial) -> None:
    async with asyncio.timeout(PATIENCE), dial() as napcat, asyncio.TaskGroup() as group:
        asking = group.create_task(_unanswered(house))
        await napcat.receive()
        await napcat.socket.close()
        await asking


async def _unanswered(house: House) -> None:
    with pytest.raises(ActionUnanswered, match="closed"):
        await house.transport.call(ACCOUNT, "get_csrf_token", {})


async def test_a_closed_connection_takes_nothing(house: House, dial: Dial) -> None:
    async with dial():
        peer = house.peers.caller(ACCOUNT)
    await house.until(lambda: not peer.is_open)
    with pytest.raises(NotConnected):
        await peer.send(b"{}")
    assert (peer.account, peer.role) == (ACCOUNT, Role.UNIVERSAL)


async def test_heartbeats_are_never_logged_above_debug_and_text_never_at_all(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="adapters")
    async with dial() as napcat:
        await napcat.send(heartbeat(), message("机密的话"))
        await house.sink.until(2)
    records = [record for record in caplog.records if record.name.startswith("adapters")]
    assert [record.levelname for record in records if "heartbeat" in record.getMessage()] == ["DEBUG"]
    assert not [record for record in records if "机密的话" in record.getMessage()]
