"""The whole simulator over real sockets: calls, events, what people do, and what goes wrong with all three."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from websockets.asyncio.client import connect

from adapters.simulator.call import SentMessage
from adapters.simulator.faults import Fault
from adapters.simulator.server import Simulator
from adapters.simulator.wire import CallRefused, mention, text
from adapters.simulator.world import World, demo_world
from tests.adapters.simulator.conftest import both_directions, call, playing, receive
from tests.cases import each_case


async def test_a_bot_dials_hears_and_answers() -> None:
    printed: list[SentMessage] = []
    async with Simulator(demo_world(), on_sent=printed.append) as simulator:
        async with connect(await simulator.serve(), proxy=None) as bot:
            assert (await receive(bot))["sub_type"] == "connect"
            await simulator.wait_connected()
            message_id = await simulator.say("@bot hi")
            event = await receive(bot)
            assert (event["message_id"], event["group_id"], event["user_id"]) == (message_id, 4242, 20001)
            assert event["message"] == [mention(10001), text(" hi")]
            answer = await call(bot, "send_group_msg", group_id=4242, message=[text("hello")])
            (sent,) = await simulator.wait_sent(1)
            assert (sent.text, sent.message_id) == ("hello", answer["data"]["message_id"])
            assert printed == [sent]
        await simulator.wait_until(lambda: simulator.connected == 0)


@each_case("path", ["api", "api/"])
async def test_the_api_path_takes_calls_and_hears_nothing(path: str) -> None:
    async with Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with connect(url + path, proxy=None) as api, connect(url + "event", proxy=None) as both:
            await receive(both)
            await simulator.wait_connected()
            await simulator.say("hi")
            await api.send('{"action": "get_status"}')
            assert (await receive(api))["data"]["good"] is True
            assert (await receive(both))["raw_message"] == "hi"
            assert (await call(both, "get_status"))["status"] == "ok"


async def test_every_listening_socket_hears_every_event() -> None:
    async with Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with connect(url, proxy=None) as one, connect(url, proxy=None) as other:
            await simulator.wait_connected(2)
            await simulator.say("hi", user_id=20002)
            for bot in (one, other):
                await receive(bot)
                assert (await receive(bot))["user_id"] == 20002


async def test_recalls_pokes_and_private_words_are_events() -> None:
    async with Simulator(demo_world()) as simulator, connect(await simulator.serve(), proxy=None) as bot:
        await receive(bot)
        await simulator.wait_connected()
        message_id = await simulator.say([text("oops")], group_id=4242, user_id=7)
        await simulator.incidents.recall(message_id)
        await simulator.incidents.poke(user_id=20001, group_id=4242)
        await simulator.say_private("psst", user_id=20001)
        await simulator.push({"post_type": "notice", "notice_type": "bot_offline"})
        said, recalled, poked, whispered, pushed = [await receive(bot) for _ in range(5)]
    assert said["sender"]["nickname"] == "7"
    assert (recalled["notice_type"], recalled["operator_id"]) == ("group_recall", 7)
    assert (poked["sub_type"], poked["target_id"]) == ("poke", 10001)
    assert (whispered["message_type"], whispered["raw_message"]) == ("private", "psst")
    assert pushed["notice_type"] == "bot_offline"


async def test_lines_are_spoken_by_whom_they_name() -> None:
    async with Simulator(demo_world()) as simulator, connect(await simulator.serve(), proxy=None) as bot:
        await receive(bot)
        await simulator.wait_connected()
        assert await simulator.say_line("  ") is None
        await simulator.say_line("小红: @bot hi")
        await simulator.say_line("hi @小红")
        first, second = [await receive(bot) for _ in range(2)]
    assert (first["sender"]["nickname"], first["raw_message"]) == ("小红", "[CQ:at,qq=10001] hi")
    assert second["user_id"] == 20001
    assert second["raw_message"] == f"hi [CQ:at,qq={first['user_id']}]"


async def test_what_causes_an_event_is_answered_before_it() -> None:
    async with Simulator(demo_world()) as simulator, connect(await simulator.serve(), proxy=None) as bot:
        await receive(bot)
        message_id = (await call(bot, "send_msg", group_id=4242, message="x"))["data"]["message_id"]
        assert (await call(bot, "delete_msg", message_id=message_id))["retcode"] == 0
        assert (await receive(bot))["notice_type"] == "group_recall"


async def test_waiting_in_vain_ends() -> None:
    async with Simulator(demo_world()) as simulator:
        with pytest.raises(TimeoutError):
            await simulator.wait_sent(1, timeout=0.01)
        with pytest.raises(TimeoutError):
            await simulator.wait_connected(timeout=0.01)


async def test_nobody_speaks_in_a_group_that_is_not_there() -> None:
    async with Simulator(World()) as simulator:
        with pytest.raises(CallRefused):
            await simulator.say("hi")


async def test_events_without_a_listener_are_lost() -> None:
    async with Simulator(demo_world()) as simulator:
        await simulator.say("hello?")
        async with connect(await simulator.serve(), proxy=None) as bot:
            assert (await receive(bot))["post_type"] == "meta_event"
            assert (await call(bot, "get_group_msg_history", group_id=4242))["data"]["messages"] != []


# --- answers --------------------------------------------------------------------------------------


@both_directions
async def test_what_hangs_in_the_air_does_not_hold_up_the_end(direction: str) -> None:
    async with asyncio.timeout(30), playing(direction) as (simulator, bot):
        simulator.faults.arm(Fault.SLOW, value=3600)
        simulator.faults.arm(Fault.RECALL, value=3600)
        await bot.ask("send_msg", group_id=4242, message="slow")
        await simulator.wait_delivered(1)
        await simulator.say("hi")
        simulator.faults.arm(Fault.DISORDER, value=9)
        await bot.ask("get_status")
        await simulator.say("still there?")
        await bot.until(lambda: len(bot.events) == 2)
        await simulator.sockets.drop(3600)
    assert simulator.sockets.away


# --- events ---------------------------------------------------------------------------------------


@both_directions
async def test_events_are_told_twice(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(Fault.DUPLICATE, times=2)
        said = [await simulator.say(words) for words in ("one", "two", "three")]
        await bot.until(lambda: len(bot.events) == 5)
        assert [event["message_id"] for event in bot.events] == [said[0], said[0], said[1], said[1], said[2]]


@both_directions
async def test_the_last_events_are_told_again_after_a_reconnect(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        said = [await simulator.say(words) for words in ("one", "two", "three")]
        await bot.until(lambda: len(bot.events) == 3)
        simulator.faults.arm(Fault.REPEAT, value=2)
        await simulator.sockets.reconnect()
        await bot.until(lambda: len(bot.events) == 5)
        assert [event["message_id"] for event in bot.events] == [*said, *said[1:]]
        await simulator.sockets.reconnect(0.0)
        await simulator.wait_connected()
        fresh = await simulator.say("four")
        await bot.until(lambda: bot.events[-1]["message_id"] == fresh)
        assert len(bot.events) == 6


async def test_a_first_connection_is_no_reconnect() -> None:
    async with Simulator(demo_world()) as simulator:
        simulator.faults.arm(Fault.REPEAT)
        async with connect(await simulator.serve(), proxy=None) as bot:
            assert (await receive(bot))["post_type"] == "meta_event"
            await simulator.wait_connected()
            assert simulator.faults.armed


# --- the account ----------------------------------------------------------------------------------


@both_directions
async def test_own_messages_are_heard_from_when_they_are_asked_for(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        await bot.send("unheard")
        simulator.world.reports_self = True
        answer = await bot.send("heard")
        await bot.until(lambda: bot.events)
        (event,) = bot.events
        assert (event["post_type"], event["message_id"]) == ("message_sent", answer["data"]["message_id"])


@both_directions
async def test_the_history_has_everything_that_was_said_whoever_heard_it(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        await simulator.say("one")
        await bot.send("two")
        simulator.faults.arm(Fault.TIMEOUT)
        await bot.send("three")
        simulator.faults.arm(Fault.LOST)
        await bot.ask("send_msg", group_id=4242, message="never")
        await simulator.wait_sent(3)
        await simulator.sockets.drop()
        await simulator.say("four")
        simulator.sockets.come_back()
        await simulator.wait_connected()
        await bot.until(lambda: bot.connections == 2)
        messages = (await bot.call("get_group_msg_history", group_id=4242))["data"]["messages"]
        assert [message["raw_message"] for message in messages] == ["one", "two", "three", "four"]
        assert [message["post_type"] for message in messages] == ["message", "message_sent", "message_sent", "message"]
        assert all(earlier["time"] <= later["time"] for earlier, later in pairwise(messages))
        assert [message["message_id"] for message in messages[1:3]] == [one.message_id for one in simulator.delivered]
        assert await bot.history(count=2) == ["three", "four"]


async def test_the_history_of_a_friend_has_both_sides() -> None:
    async with playing("reverse") as (simulator, bot):
        await simulator.say_private("hi", user_id=20001)
        await bot.call("send_private_msg", user_id=20001, message="hello")
        messages = (await bot.call("get_friend_msg_history", user_id="20001", count=5))["data"]["messages"]
        assert [(message["raw_message"], message["post_type"]) for message in messages] == [
            ("hi", "message"),
            ("hello", "message_sent"),
        ]
