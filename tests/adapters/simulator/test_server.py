"""The whole simulator over real sockets: calls, events, what people do, and what goes wrong with all three."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from websockets.asyncio.client import connect

from adapters.onebot.calls import OneBotCalls
from adapters.simulator.call import SentMessage
from adapters.simulator.faults import ONLY, REFUSED, SENDING, WORDINGS, Fault, Faults, parse_fault
from adapters.simulator.server import CallReply, Simulator, reply_to
from adapters.simulator.wire import CallRefused, mention, text, unconfirmed
from adapters.simulator.world import World, demo_world
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered
from frostagent.types.speech import Text
from tests.adapters.onebot.conftest import TOKEN, House
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


def reply(world: World, faults: Faults, action: str = "send_group_msg", **params: Any) -> CallReply:
    given = {"group_id": 4242, "message": "hello"} | params
    return reply_to(world, faults, json.dumps({"action": action, "params": given, "echo": "e"}))


ALL = [  # what every fault of a message hits
    {"type": "reply", "data": {"id": "5"}},
    {"type": "at", "data": {"qq": "20001"}},
    {"type": "text", "data": {"text": "hello"}},
]
ANY = sorted(set(WORDINGS) - {Fault.NO_MESSAGE, *ONLY})  # those that hit any message


def struck(world: World, fault: Fault, **params: Any) -> CallReply:
    faults = Faults()
    faults.arm(fault)
    return reply(world, faults, **params)


def test_without_a_fault_a_message_is_sent_and_confirmed(world: World) -> None:
    told = reply(world, Faults())
    assert told.frame is not None
    assert told.asked is not None
    assert told.asked == told.done.sent
    assert told.frame["data"]["message_id"] == told.asked.message_id
    assert told.in_order


def test_a_frame_that_is_no_call_is_answered_whatever_is_armed(world: World) -> None:
    faults = Faults()
    faults.arm(Fault.LOST)
    told = reply_to(world, faults, "ping")
    assert told.frame is not None
    assert (told.frame["retcode"], told.asked) == (1400, None)


@pytest.mark.parametrize("fault", sorted(SENDING))
def test_a_send_fault_leaves_other_calls_alone(world: World, fault: Fault) -> None:
    faults = Faults()
    faults.arm(fault)
    for action in ("get_group_msg_history", "get_status", "send_poke"):
        told = reply(world, faults, action, user_id=20001)
        assert told.frame is not None
        assert (told.frame["status"], told.asked) == ("ok", None)
    assert faults.armed


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.SILENCE, Fault.NEXT_CONNECTION])
def test_some_messages_arrive_whatever_the_bot_is_told(world: World, fault: Fault) -> None:
    world.reports_self = True
    told = struck(world, fault)
    (stored,) = world.messages.history(group_id=4242)
    assert told.done.sent is not None
    assert told.asked == told.done.sent
    assert told.done.sent.message_id == stored.message_id
    assert [event["message_id"] for event in told.done.events] == [stored.message_id]
    assert not told.in_order


@pytest.mark.parametrize("fault", [Fault.LOST, *sorted(REFUSED)])
def test_other_messages_do_not(world: World, fault: Fault) -> None:
    told = struck(world, fault, message=ALL)
    assert world.messages.history(group_id=4242) == []
    assert told.done.sent is None
    assert told.asked is not None
    assert (told.asked.message_id, told.asked.text, told.asked.group_id) == (0, "hello", 4242)


@pytest.mark.parametrize("fault", sorted(set(WORDINGS) - {Fault.NO_MESSAGE, Fault.LATE_FORWARD}))
def test_a_refusal_has_its_wording_and_the_echo(world: World, fault: Fault) -> None:
    told = struck(world, fault, message=ALL)
    assert told.frame is not None
    assert (told.frame["status"], told.frame["retcode"], told.frame["data"]) == ("failed", 1200, None)
    assert told.frame["wording"] == told.frame["message"] == WORDINGS[fault]
    assert told.frame["echo"] == "e"


def test_a_refusal_may_be_worded_by_hand(world: World) -> None:
    faults = Faults()
    faults.arm(Fault.RISK, wording="操作过于频繁")
    frame = reply(world, faults).frame
    assert frame is not None
    assert frame["wording"] == "操作过于频繁"


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.SILENCE, Fault.NEXT_CONNECTION])
def test_what_cannot_be_sent_at_all_is_refused_as_ever(world: World, fault: Fault) -> None:
    told = struck(world, fault, message=[])
    assert told.frame is not None
    assert (told.frame["retcode"], told.done.sent, told.next_connection) == (1200, None, False)
    assert told.frame["wording"].startswith("消息体无法解析")
    unreadable = struck(world, fault, group_id=None)
    assert unreadable.asked is None


def test_a_refusal_has_any_retcode_and_any_result_of_qq(world: World) -> None:
    for line, retcode, words in (
        ("refuse code 100", 100, ""),
        ("refuse code 1400 消息不存在 next", 1400, "消息不存在"),
        ("refuse result 110 你已被移出该群", 1200, unconfirmed(result=110, errMsg="你已被移出该群")),
        ("refuse quote code 200 no such message", 200, "no such message"),
    ):
        faults = Faults()
        faults.put(parse_fault(line))
        frame = reply(world, faults, message=ALL).frame
        assert frame is not None
        assert (frame["retcode"], frame["wording"]) == (retcode, words)


def test_a_fault_of_some_messages_waits_for_one_of_them(world: World) -> None:
    for fault, place in ((Fault.REFUSE_QUOTE, 0), (Fault.REFUSE_MENTION, 1)):
        faults = Faults()
        faults.arm(fault, times=None)
        for message, status in (("hello", "ok"), (ALL, "failed"), ([*ALL[:place], *ALL[place + 1 :]], "ok")):
            frame = reply(world, faults, message=message).frame
            assert frame is not None
            assert frame["status"] == status


def test_a_fault_about_some_words_lets_others_pass(world: World) -> None:
    faults = Faults()
    faults.put(replace(parse_fault("refuse no"), about="周六"))
    frames = [reply(world, faults, message=words).frame for words in ("周日", "周六去", "周六去")]
    assert [frame and frame["status"] for frame in frames] == ["ok", "failed", "ok"]


def test_a_forward_arrives_though_it_is_answered_like_one_that_failed(world: World) -> None:
    faults = Faults()
    faults.arm(Fault.LATE_FORWARD)
    plain = reply(world, faults).frame
    assert plain is not None
    assert plain["status"] == "ok"
    nodes = [{"type": "node", "data": {"user_id": "10001", "nickname": "bot", "content": "hi"}}]
    told = reply(world, faults, "send_group_forward_msg", messages=nodes)
    assert told.frame is not None
    assert (told.frame["retcode"], told.frame["wording"]) == (1200, WORDINGS[Fault.LATE_FORWARD])
    assert told.done.sent is not None
    assert len(world.messages.history(group_id=4242)) == 2
    assert faults.armed == ()


def test_a_message_that_the_server_lost_is_not_there_when_it_is_asked_for(world: World) -> None:
    asked = world.post([{"type": "text", "data": {"text": "hi"}}], author=20001, group_id=4242)
    faults = Faults()
    faults.arm(Fault.NO_MESSAGE)
    found = [reply(world, faults, "get_msg", message_id=asked.message_id).frame for _ in range(2)]
    assert [frame and frame["retcode"] for frame in found] == [1200, 0]


def test_histories_may_tell_messages_under_other_ids_than_events_did(world: World) -> None:
    asked = world.post([{"type": "text", "data": {"text": "hi"}}], author=20001, group_id=4242)
    world.renumbers = True
    told = reply(world, Faults(), "get_group_msg_history").frame
    assert told is not None
    (found,) = told["data"]["messages"]
    assert found["message_id"] == found["message_seq"] == found["real_id"] != asked.message_id
    again = reply(world, Faults(), "get_group_msg_history", message_seq=found["message_id"]).frame
    assert again is not None
    assert again["data"]["messages"] == [found]
    for message_id in (found["message_id"], asked.message_id):
        one = reply(world, Faults(), "get_msg", message_id=message_id).frame
        assert one is not None
        assert one["data"]["raw_message"] == "hi"


def test_slowness_goes_together_with_the_other_faults(world: World) -> None:
    faults = Faults()
    faults.arm(Fault.TIMEOUT)
    faults.arm(Fault.SLOW, value=3)
    told = reply(world, faults)
    assert told.frame is not None
    assert (told.delay, told.frame["status"], told.in_order) == (3, "failed", False)
    assert faults.armed == ()


# --- over sockets ---------------------------------------------------------------------------------


@both_directions
@pytest.mark.parametrize("fault", ANY)
async def test_the_bot_reads_the_refusal_and_may_send_again(direction: str, fault: Fault) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(fault)
        answer = await bot.send("one")
        assert (answer["retcode"], answer["wording"]) == (1200, WORDINGS[fault])
        assert (await bot.send("two"))["status"] == "ok"
        arrived = ["one", "two"] if fault is Fault.TIMEOUT else ["two"]
        assert await bot.history() == arrived
        assert [message.text for message in simulator.delivered] == arrived
        assert [message.text for message in simulator.sent] == ["one", "two"]


@both_directions
@pytest.mark.parametrize(("fault", "arrived"), [(Fault.SILENCE, ["one", "two"]), (Fault.LOST, ["two"])])
async def test_some_calls_are_never_answered(direction: str, fault: Fault, arrived: list[str]) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(fault)
        unanswered = await bot.ask("send_msg", group_id=4242, message="one")
        await simulator.wait_sent(1)
        await bot.send("two")
        assert await bot.history() == arrived
        assert [message.text for message in simulator.delivered] == arrived
        assert unanswered not in [frame["echo"] for _, frame in bot.answers]


@both_directions
async def test_an_unconfirmed_message_is_reported_before_the_timeout(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.world.reports_self = True
        simulator.faults.arm(Fault.TIMEOUT)
        assert (await bot.send())["status"] == "failed"
        (event,) = bot.events
        assert event["message_id"] == simulator.delivered[0].message_id


HELLO = SendMessage(Conversation(10001, "group", 4242), (Text("hello"),))


async def test_the_ordinary_adapter_knows_what_is_not_answered() -> None:
    house = House(calls=OneBotCalls(boot="boot", deadline=0.1))
    async with house.server() as server, Simulator(demo_world(), reconnect=0.01) as simulator:
        simulator.dial(f"ws://127.0.0.1:{server.port}/", token=TOKEN)
        await house.until(house.peers.accounts)
        for fault in (Fault.TIMEOUT, Fault.SILENCE, Fault.LOST, Fault.RISK):
            simulator.faults.arm(fault)
            with pytest.raises(ActionUnanswered):
                await house.transport.send(HELLO)
    assert (len(simulator.sent), len(simulator.delivered)) == (4, 2)


async def test_the_ordinary_adapter_tells_refusals_from_what_was_done() -> None:
    house = House()
    async with house.server() as server, Simulator(demo_world(), reconnect=0.01) as simulator:
        simulator.dial(f"ws://127.0.0.1:{server.port}/", token=TOKEN)
        await house.until(house.peers.accounts)
        for fault in (Fault.REFUSE, Fault.MUTED, Fault.NOT_FRIEND, Fault.TOO_LONG, Fault.BAD_MEDIA):
            simulator.faults.arm(fault)
            with pytest.raises(ActionRefused):
                await house.transport.send(HELLO)
        simulator.faults.arm(Fault.NEXT_CONNECTION)
        confirmed = await house.transport.send(HELLO)
    assert [str(message.message_id) for message in simulator.delivered] == [confirmed]
    assert len(simulator.sent) == 6


@both_directions
async def test_answers_come_in_the_other_order(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(Fault.DISORDER, value=3)
        asked = [await bot.ask(action) for action in ("get_login_info", "get_status")]
        asked.append(await bot.ask("send_msg", group_id=4242, message="x"))
        await bot.until(lambda: len(bot.answers) == 3)
        assert [frame["echo"] for _, frame in bot.answers] == asked[::-1]
        assert (await bot.call("get_status"))["status"] == "ok"


@both_directions
async def test_an_answer_that_waits_for_others_in_vain_comes_all_the_same(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(Fault.DISORDER)
        assert (await bot.send())["status"] == "ok"
        assert (await bot.send())["status"] == "ok"


@both_directions
async def test_a_slow_answer_does_not_hold_up_others(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(Fault.SLOW, value=0.05)
        slow = await bot.ask("send_msg", group_id=4242, message="slow")
        (late,) = await simulator.wait_delivered(1)
        quick = await bot.send("quick")
        assert (await bot.answer(slow))["data"]["message_id"] == late.message_id
        assert [frame["echo"] for _, frame in bot.answers] == [quick["echo"], slow]


@both_directions
async def test_an_answer_comes_on_the_next_connection(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(Fault.NEXT_CONNECTION)
        answer = await bot.send()
        assert bot.answers == [(2, answer)]
        assert [answer["data"]["message_id"]] == [message.message_id for message in simulator.delivered]


async def test_a_robot_answers_the_bot_so_often_and_nobody_else() -> None:
    async with playing("forward") as (simulator, bot):
        robot = simulator.robots.invite("小冰", times=1)
        heard: list[tuple[str, str]] = []
        simulator.robots.on_said = lambda *said: heard.append(said)
        await simulator.say("hi")
        await bot.send("one")
        await bot.until(lambda: len(bot.events) == 2)
        assert (bot.events[1]["user_id"], bot.events[1]["group_id"]) == (robot.user_id, 4242)
        assert bot.events[1]["message"][0]["data"]["qq"] == "10001"
        assert heard == [("小冰", "你说得对")]
        await bot.send("two")
        await simulator.say("hi")
        await bot.until(lambda: len(bot.events) == 3)
        assert bot.events[2]["user_id"] != robot.user_id
