"""When answers leave, over real sockets."""

from __future__ import annotations

from adapters.simulator.faults import Fault
from tests.adapters.simulator.conftest import both_directions, playing


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
