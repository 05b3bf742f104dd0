"""A fact that follows its person into another group, and the message it was told in, recalled: on both databases."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from adapters.offline.brain import DemoCall, Thought
from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World
from adapters.storage.database import Database
from adapters.storage.tables import metadata
from bot.app import open_service
from tests.bot.test_app import TOKEN, settings
from tests.torture.model import Asked, ScriptedModel

HOME, AWAY, MING = 4242, 4343, 20001
SAID, SECRET = "我对夏至的花粉过敏", "对夏至花粉过敏"


def memory(**details: str) -> Thought:
    return Thought(calls=(DemoCall("memory", {**details}),))


def answer(asked: Asked) -> Thought:
    """It keeps what it is told, and looks it up again where it is asked."""
    if asked.messages[-1]["role"] == "tool":
        return Thought("好")
    if "记住" in asked.messages[-1]["content"]:
        return memory(action="write", text=SECRET, told="person")
    return memory(action="list") if "知道" in asked.messages[-1]["content"] else Thought("在")


async def nothing(_: Asked) -> None:
    pass


def tables_have(url: str, words: str) -> bool:
    database = Database(url, migrate=lambda _: None)
    try:
        with database.reading() as connection:
            rows = (row for table in metadata.sorted_tables for row in connection.execute(select(table)))
            return any(words in str(value) for row in rows for value in row)
    finally:
        database.close()


@pytest.fixture
def world() -> World:
    world = World()
    for group in (HOME, AWAY):
        world.add_group(group, f"group {group}", (Person(MING, "小明"),))
    return world


async def test_what_the_tool_told_elsewhere_is_kept_there_by_its_id_alone(url: str, world: World) -> None:
    async with ScriptedModel(nothing, answer) as model, Simulator(world, reconnect=0.05) as simulator:
        given = settings(model.base_url, store_url=url, bot_memory=True)
        async with open_service(given) as service:
            simulator.dial(f"ws://127.0.0.1:{service.port}/", token=TOKEN)
            await simulator.wait_connected()

            async def ask(words: str, group: int, sent: int) -> None:
                told[words] = await simulator.say(f"@bot {words}", group_id=group)
                await simulator.wait_delivered(sent)
                await service.wait_idle()
                assert await service.app.journal.commit()

            told: dict[str, int] = {}
            await ask(f"到哪都记住，{SAID}", HOME, 1)
            await ask("你知道我什么？", AWAY, 2)
            found = model.asked[-1].messages[-1]["content"]
            assert f"小明#1: {SECRET}" in found
            await simulator.incidents.recall(told[f"到哪都记住，{SAID}"])
            await ask("那好吧", AWAY, 3)
            (result,) = (one["content"] for one in model.asked[-1].messages if one["role"] == "tool")
            assert result.startswith(found.partition("]")[0])
            assert SECRET not in str(model.asked[-1].messages)
            assert not await asyncio.to_thread(tables_have, url, SECRET)
