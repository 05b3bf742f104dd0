"""A backup of the bot as a process, under load, and a start from it in a folder that has nothing else."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator.call import SentMessage
from tests.bot.cli.commands import command
from tests.system.processes.test_signals import ONE, PATIENCE, TWO, House, house
from tests.torture import bells

__all__ = ["house"]

OWNER = 20001
SETTINGS = {
    "BOT_OWNERS": str(OWNER),
    "TOOLS_DIR": "data/tools",
    "TOOLS_APPROVE": "ring_bell",
    "BOT_SEND_RATE": "0",
    "BOT_USER_RATE": "0",
    "BOT_GROUP_RATE": "0",
    "BOT_LOOP": "0",
    "BOT_NEW_GROUP": "live",
}


async def typed(folder: Path, *words: str) -> tuple[int, str]:
    """What a command ends with, and what it tells."""
    arguments, env, cwd = command(folder, *words, **SETTINGS)
    process = await asyncio.create_subprocess_exec(*arguments, env=env, cwd=cwd, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(PATIENCE):
        _, told = await process.communicate()
    assert process.returncode is not None
    return process.returncode, told.decode()


def rows(folder: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "data" / "frostagent.db")) as journal:
        return [row[0] for row in journal.execute(query)]


def all_in(words: Iterable[str], messages: Sequence[SentMessage]) -> bool:
    return all(any(word in message.text for message in messages) for word in words)


@pytest.mark.timeout(240)
async def test_a_backup_of_a_busy_bot_loses_nothing_of_it_and_is_a_bot_that_goes_on(house: House) -> None:
    simulator, first = house.simulator, house.folder
    simulator.world.add_friend(simulator.world.groups[ONE].members[OWNER])
    tools = first / "data" / "tools"
    tools.mkdir(parents=True)
    shutil.copy(bells.__file__, tools)
    house.gate.opened.set()

    async def heard(*words: str) -> None:
        """People have got messages with each of these words."""
        texts = simulator.delivered
        everything = partial(all_in, words, texts)
        await simulator.wait_until(everything, timeout=PATIENCE)

    async with house.life(**SETTINGS) as bot:
        await simulator.say("@bot plain#q1", group_id=ONE)
        await simulator.say("@bot /quiet 2h", group_id=TWO, user_id=OWNER)
        await simulator.say("@bot ring#q2", group_id=ONE, user_id=20002)
        await heard("A:q1", "A1")
        over, said, taken = asyncio.Event(), 0, 0

        async def chatter() -> None:
            nonlocal said, taken
            while not over.is_set():
                await simulator.say(f"talk {said}", group_id=TWO, user_id=20002)
                said += 1
                if said % 20 == 0:
                    await simulator.say(f"@bot plain#t{said}", group_id=ONE, user_id=20002)
                    await heard(f"A:t{said}")
                    taken = said  # an answer shows that all before it was heard

        async with asyncio.TaskGroup() as group:
            group.create_task(chatter())
            least = []
            for number in range(2):
                least.append(taken)
                code, told = await typed(first, "backup", f"b{number}.tgz")
                assert code == 0, told
            code, told = await typed(first, "restore", "b0.tgz")
            assert (code, f"A bot is using {first}/data/frostagent.db (pid {bot.process.pid})" in told) == (1, True)
            over.set()
        bot.process.kill()
        await bot.process.communicate()
    assert not house.model.invalid
    assert sys.platform == "win32" or not (first / "data" / "frostagent.db-restore").exists()

    assert taken > 0
    for number, talked in enumerate(least):
        house.folder = first / f"new{number}"
        house.folder.mkdir()
        code, told = await typed(house.folder, "restore", f"../b{number}.tgz")
        assert code == 0, told
        lines = rows(house.folder, "SELECT segments FROM messages WHERE segments LIKE '%talk %' ORDER BY id")
        assert [re.findall(r"talk (\d+)", line) for line in lines] == [[str(one)] for one in range(len(lines))]
        assert len(lines) >= talked
    answers = len(simulator.delivered)
    async with house.life(**SETTINGS):
        await simulator.say("@bot plain#q3", group_id=ONE, user_id=20002)
        await heard("A:q3")
        await simulator.say_private("同意 A1", user_id=OWNER)
        await heard("F:q2")
        assert (
            rows(house.folder, "SELECT value FROM place_settings WHERE name = 'hush'")
            == rows(first, "SELECT value FROM place_settings WHERE name = 'hush'")
            != []
        )
    assert "A:q1" in str(next(asked.messages for asked in house.model.asked if asked.token == "q3"))
    new = [message.text for message in simulator.delivered[answers:]]
    assert not [text for text in new if text.startswith(("A:t", "A:q1"))]
