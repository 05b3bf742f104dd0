"""Whether an account is online and its server alive, over real sockets."""

from __future__ import annotations

import json
import logging

import pytest

from adapters.onebot.accounts import Account
from adapters.onebot.connection import HeartbeatTimeout
from tests.adapters.onebot.conftest import ACCOUNT, GREETING, Dial, Frame, House, NapCat, heartbeat, lifecycle, message
from tests.cases import each_case


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    "frames",
    [
        [heartbeat(online=False)],
        [heartbeat(online=True), heartbeat(online=False), heartbeat(online=False), heartbeat(online=None)],
        [{"post_type": "notice", "notice_type": "bot_offline", "self_id": ACCOUNT, "message": "被迫下线"}],
    ],
)
async def test_an_account_that_goes_offline_is_told_once_and_loudly(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture, frames: list[Frame]
) -> None:
    async with dial() as napcat:
        await napcat.send(*frames)
        await house.sink.until(len(frames))
        assert house.peers.accounts() == (Account(ACCOUNT, online=False),)
        assert len([text for text in warnings(caplog) if "offline" in text]) == 1
        await napcat.send(heartbeat(online=True))
        await house.sink.until(len(frames) + 1)
        assert house.peers.accounts() == (Account(ACCOUNT, online=True),)


async def test_three_missing_heartbeats_are_warned_of_and_the_connection_lives_on(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial() as napcat:
        await napcat.send(heartbeat(interval=5000))
        assert await house.clock.until(1) == [15.0]
        await napcat.send(heartbeat(interval=5000))
        await house.sink.until(2)
        house.clock.wake()
        assert await house.clock.until(2) == [15.0, 15.0]  # one came: all is well
        assert not [text for text in warnings(caplog) if "heartbeat" in text]
        house.clock.wake()
        await house.until(lambda: [text for text in warnings(caplog) if "heartbeat" in text])
        await napcat.send(message())
        await house.sink.until(3)


async def test_a_server_is_asked_what_it_is_and_whether_its_account_is_online(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        status = await napcat.receive_any()
        assert status["action"] == "get_status"
        await napcat.answer(status, {"online": False, "good": True})
        version = await napcat.receive_any()
        assert version["action"] == "get_version_info"
        await napcat.answer(version, {"app_name": "NapCat.Onebot", "app_version": "4.18.33"})
        known = Account(ACCOUNT, online=False, server="NapCat.Onebot 4.18.33")
        await house.until(lambda: house.peers.accounts() == (known,))


async def test_a_server_that_knows_neither_question_is_as_good(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        await napcat.answer(await napcat.receive_any(), None, status="failed", retcode=1404)
        await napcat.answer(await napcat.receive_any(), "what?")
        await napcat.send(message())
        await house.sink.until(1)
        assert house.peers.accounts() == (Account(ACCOUNT),)


async def test_where_heartbeats_are_missing_the_status_is_asked_for(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        for data in ({"online": True}, {}):
            await napcat.answer(await napcat.receive_any(), data)
        await napcat.send(heartbeat(interval=5000))
        await house.clock.until(1)
        house.clock.wake()
        status = await napcat.receive_any()
        assert status["action"] == "get_status"
        await napcat.answer(status, {"online": False})
        await house.until(lambda: house.peers.accounts() == (Account(ACCOUNT, online=False),))


async def test_a_server_that_says_its_interval_in_seconds_is_not_asked_at_each_beat(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial() as napcat:
        for data in ({"online": True}, {}):
            await napcat.answer(await napcat.receive_any(), data)
        await napcat.send(heartbeat(interval=3))
        for count in range(1, 5):
            assert set(await house.clock.until(count)) == {9.0}
            await napcat.send(heartbeat(interval=3))
            await house.sink.until(count + 1)
            house.clock.wake()
        await house.clock.until(5)
    assert not [text for text in warnings(caplog) if "heartbeat" in text]
    assert await left(napcat) == []


async def test_a_server_that_beats_slower_than_it_says_is_wondered_at_less_and_less(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        for data in ({"online": True}, {}):
            await napcat.answer(await napcat.receive_any(), data)
        for expected in ([5.0], [5.0, 10.0], [5.0, 10.0, 20.0]):
            await napcat.send(heartbeat(interval=1000))
            assert await house.clock.until(len(expected)) == expected
            house.clock.wake()
            call = await napcat.receive_any()
            assert call["action"] == "get_status"
            await napcat.answer(call, {})


async def left(napcat: NapCat) -> list[Frame]:
    """What the server has not read, once its connection is closed."""
    frames = [json.loads(frame) async for frame in napcat.socket]
    return [frame for frame in frames if frame["action"] not in GREETING]


async def test_a_server_without_heartbeats_is_not_suspected(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        await napcat.send(lifecycle(), heartbeat(interval=0), message())
        await house.sink.until(3)
        assert house.clock.sleeps == []


@each_case(("interval", "seconds"), [(30.0, 90.0), (3.0, 9.0), (1.0, 5.0), (0.003, 5.0)])
def test_three_heartbeats_may_be_missing_but_never_less_than_five_seconds(interval: float, seconds: float) -> None:
    patience = HeartbeatTimeout()
    assert patience.seconds == 0.0
    assert patience.beat(interval)
    assert patience.seconds == seconds


def test_a_heartbeat_that_announces_nothing_changes_nothing() -> None:
    patience = HeartbeatTimeout()
    assert not patience.beat(0.0)
    assert patience.seconds == 0.0
    patience.beat(30.0)
    assert not patience.beat(0.0)
    assert patience.seconds == 90.0


def test_a_server_that_beats_slower_than_it_says_is_given_more_time_each_time_but_not_for_ever() -> None:
    patience = HeartbeatTimeout()
    patience.beat(1.0)
    given = []
    for _ in range(9):
        given.append(patience.seconds)
        patience.missed()
        patience.beat(1.0)
    assert given == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 320.0, 320.0]
