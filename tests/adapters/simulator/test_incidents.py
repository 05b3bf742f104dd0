"""What befalls the account, over real sockets."""

from __future__ import annotations

import pytest

from adapters.simulator.faults import Armed, Fault
from adapters.simulator.server import Simulator
from adapters.simulator.wire import CallRefused
from adapters.simulator.world import demo_world
from tests.adapters.simulator.conftest import both_directions, playing


@both_directions
async def test_a_question_is_recalled_at_once_or_later(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(Fault.RECALL)
        first = await simulator.say("oops")
        simulator.faults.arm(Fault.RECALL, value=0.01)
        second = await simulator.say("oops again")
        await bot.until(lambda: len(bot.events) == 4)
        assert [event.get("notice_type") for event in bot.events] == [None, "group_recall", None, "group_recall"]
        assert [event["message_id"] for event in bot.events] == [first, first, second, second]
        assert await bot.history() == []


async def test_a_question_that_is_gone_already_is_not_recalled_again() -> None:
    async with playing("forward") as (simulator, bot):
        simulator.faults.arm(Fault.RECALL, value=0.01)
        await simulator.incidents.recall(await simulator.say("oops"))
        simulator.faults.arm(Fault.RECALL, value=0.02)
        fresh = await simulator.say("and this")
        await bot.until(lambda: len(bot.events) == 4)
        assert [event["message_id"] for event in bot.events][2:] == [fresh, fresh]


async def test_only_some_faults_happen_by_themselves() -> None:
    async with Simulator(demo_world()) as simulator:
        with pytest.raises(CallRefused, match="消息不存在"):
            await simulator.incidents.strike(Armed(Fault.RECALL), simulator.last_said)
        with pytest.raises(CallRefused, match="by itself"):
            await simulator.incidents.strike(Armed(Fault.TIMEOUT), simulator.last_said)


@both_directions
async def test_a_muted_account_is_told_and_refused_until_it_is_lifted(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        await simulator.incidents.mute(60)
        await bot.until(lambda: bot.events)
        (notice,) = bot.events
        assert (notice["notice_type"], notice["sub_type"], notice["duration"]) == ("group_ban", "ban", 60)
        assert (notice["user_id"], notice["operator_id"], notice["group_id"]) == (10001, 20001, 4242)
        answer = await bot.send()
        assert (answer["retcode"], '"result": 120' in answer["wording"]) == (1200, True)
        assert (await bot.call("send_private_msg", user_id=20001, message="x"))["status"] == "ok"
        await simulator.incidents.lift()
        assert (await bot.send("at last"))["status"] == "ok"
        assert (bot.events[-1]["sub_type"], bot.events[-1]["duration"]) == ("lift_ban", 0)
        assert [message.text for message in simulator.delivered] == ["x", "at last"]
        assert [message.message_id > 0 for message in simulator.sent] == [False, True, True]


@both_directions
async def test_a_kicked_account_hears_and_says_nothing(direction: str) -> None:
    async with playing(direction, heartbeat=60) as (simulator, bot):
        await simulator.incidents.go_offline()
        missed = await simulator.say("anybody?")
        answer = await bot.send()
        assert (answer["retcode"], answer["wording"].endswith("EventRet:\n{}\n")) == (1200, True)
        assert [event["notice_type"] for event in bot.events] == ["bot_offline"]
        assert bot.metas[-1]["status"]["online"] is False
        assert (await bot.call("get_status"))["data"]["online"] is False
        assert simulator.missed == [missed]
        await simulator.incidents.go_online()
        await bot.until(lambda: bot.metas[-1].get("status", {}).get("online"))
        assert (await bot.send("back"))["status"] == "ok"
        assert await bot.history() == ["anybody?", "back"]
