"""What comes of a call that a fault hits: told by the world, by the records, and over real sockets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.onebot.calls import OneBotCalls
from adapters.simulator.faults import ONLY, REFUSED, SENDING, WORDINGS, Fault, Faults, parse_fault
from adapters.simulator.server import CallReply, Simulator, reply_to
from adapters.simulator.wire import unconfirmed
from adapters.simulator.world import World, demo_world
from bot.domain.actions import SendMessage
from bot.domain.errors import ActionRefused, ActionUnanswered
from bot.domain.events import Conversation
from bot.domain.segments import Text
from tests.adapters.onebot.conftest import TOKEN, House
from tests.adapters.simulator.conftest import both_directions, playing


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
        await house.until(house.transport.accounts)
        for fault in (Fault.TIMEOUT, Fault.SILENCE, Fault.LOST, Fault.RISK):
            simulator.faults.arm(fault)
            with pytest.raises(ActionUnanswered):
                await house.transport.send(HELLO)
    assert (len(simulator.sent), len(simulator.delivered)) == (4, 2)


async def test_the_ordinary_adapter_tells_refusals_from_what_was_done() -> None:
    house = House()
    async with house.server() as server, Simulator(demo_world(), reconnect=0.01) as simulator:
        simulator.dial(f"ws://127.0.0.1:{server.port}/", token=TOKEN)
        await house.until(house.transport.accounts)
        for fault in (Fault.REFUSE, Fault.MUTED, Fault.NOT_FRIEND, Fault.TOO_LONG, Fault.BAD_MEDIA):
            simulator.faults.arm(fault)
            with pytest.raises(ActionRefused):
                await house.transport.send(HELLO)
        simulator.faults.arm(Fault.NEXT_CONNECTION)
        confirmed = await house.transport.send(HELLO)
    assert [str(message.message_id) for message in simulator.delivered] == [confirmed]
    assert len(simulator.sent) == 6
