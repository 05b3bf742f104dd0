"""Requests that were at the model when the process ended: each is one row of usage, with a limit of the day or not."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from frostagent.models.failover import ANSWER
from tests.fallback_lines import ENGLISH, SORRY
from tests.system.processes.test_signals import IN_SHORT, ONE, PATIENCE, Bot, House, house
from tests.torture.model import Asked

__all__ = ["house"]

CHEAP = {"LLM_CHEAP_MODEL": "thrifty"}  # not asked for answers
LIMIT = {"BOT_DAY_TOKENS_ALL": "1000000"}


def rows(folder: Path) -> list[tuple[int, str, int, int, int, str, int]]:
    """Of each request its step, where, for whom, its tokens, the model, and the number it is reserved under."""
    (file,) = folder.rglob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(
            "SELECT step, conversation, asker, prompt, completion, model, reserved FROM usage ORDER BY id"
        ).fetchall()


async def end(bot: Bot, how: signal.Signals) -> None:
    bot.send(how)
    assert await bot.end() == (0 if how is signal.SIGTERM else -how)


@pytest.mark.parametrize(
    ("how", "words", "environment"),
    [
        (signal.SIGKILL, (), {}),
        (signal.SIGKILL, (), LIMIT),
        (signal.SIGTERM, ("-c", IN_SHORT), {}),
        (signal.SIGTERM, ("-c", IN_SHORT), LIMIT),
    ],
    ids=["killed", "killed with a limit", "stopped", "stopped with a limit"],
)
async def test_a_first_request_that_was_cut_off_is_one_row_and_so_is_the_one_that_is_made_again(
    house: House, how: signal.Signals, words: tuple[str, ...], environment: dict[str, str]
) -> None:
    async with house.life(*words, **CHEAP, **environment) as bot:
        await house.simulator.say("@bot plain#q1", user_id=20002)
        await house.gate.began.wait()
        await end(bot, how)
    house.gate.opened.set()
    async with house.life(**CHEAP, **environment) as bot:
        await house.simulator.wait_delivered(1, timeout=PATIENCE)
        _, figures = await bot.get("/metrics")
        await end(bot, signal.SIGTERM)
    lost, answered = rows(house.folder)
    assert len(house.model.asked) == 2
    assert f"frostagent_day_tokens {sum((*lost[3:5], *answered[3:5])):.1f}\n" in figures
    assert lost[1:3] == answered[1:3] == (f"10001:group:{ONE}", 20002)
    reserved = how is signal.SIGKILL and environment == LIMIT
    assert bool(lost[6]) is reserved
    assert (lost[0], answered[0], answered[6]) == (1, 1, 0)
    assert lost[5] == answered[5]
    assert lost[4] == (0 if how is signal.SIGTERM else ANSWER)  # who stops it reads no answer
    assert lost[3] > 500  # the rules of the prompt, at least


async def test_a_process_that_ends_twice_in_the_same_question_leaves_a_row_for_each_request(house: House) -> None:
    for _ in range(2):
        house.gate.began.clear()
        async with house.life() as bot:
            if not house.model.asked:
                await house.simulator.say("@bot plain#q1")
            await house.gate.began.wait()
            await end(bot, signal.SIGKILL)
    async with house.life() as bot:
        await house.simulator.wait_delivered(1, timeout=PATIENCE)
        await end(bot, signal.SIGTERM)
    assert [text for text, _ in house.answers()] == [ENGLISH[SORRY]]
    assert len(house.model.asked) == 2
    assert [step for step, *_ in rows(house.folder)] == [1, 1]


async def test_a_second_request_that_was_cut_off_is_a_row_beside_the_first(house: House) -> None:
    second = asyncio.Event()

    async def hold(asked: Asked) -> None:
        if asked.step:
            second.set()
            await asyncio.Event().wait()

    house.model._on_ask = hold
    async with house.life() as bot:
        await house.simulator.say("@bot tool#q1")
        async with asyncio.timeout(PATIENCE):
            await second.wait()
        await end(bot, signal.SIGKILL)
    async with house.life() as bot:
        await house.simulator.wait_delivered(2, timeout=PATIENCE)
        await end(bot, signal.SIGTERM)
    assert [text for text, _ in house.answers()] == ["S:q1", ENGLISH[SORRY]]
    first, cut_off = rows(house.folder)
    assert (first[0], first[6], cut_off[0]) == (1, 0, 2)
    assert cut_off[6] > 0
    assert cut_off[4] == ANSWER
