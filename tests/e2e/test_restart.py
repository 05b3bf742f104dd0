"""Conversations over a restart, through the whole service and a real database."""

from __future__ import annotations

import itertools
import logging
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import tools
from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.wire import Json, text
from adapters.simulator.world import Person, World, demo_world, event_of
from adapters.storage.ahead import Ahead
from bot.app import Service, open_service
from bot.chat.tasks import Resume
from bot.runtime.tool_discovery import Discovered
from config.settings import Settings
from frostagent.types.runs import ToolStarted
from frostagent.types.suspension import Allow, Suspend
from frostagent.types.tools import ToolContext, tool
from tests.fakes import lasting
from tests.torture.model import LONG, Asked, ScriptedModel

GROUP = 4242


@asynccontextmanager
async def life(
    folder: Path, model: OfflineModel | ScriptedModel, simulator: Simulator, url: str, **more: Any
) -> AsyncIterator[Service]:
    """One life of the service, on the journal in this folder."""
    settings = Settings(
        llm_base_url=model.base_url,
        llm_model="demo",
        media_dir=MEDIA_FOLDER,
        onebot_mode="forward",
        onebot_url=url,
        store_url=SecretStr(f"sqlite:///{folder}/bot.db"),
        bot_send_rate=0.0,
        bot_pace=False,
        bot_memory=False,
        bot_loop=0,
        bot_user_rate=None,
        bot_group_rate=None,
        bot_debounce=0.0,
        web_port=0,
        **more,
    )
    async with open_service(settings, terminal=logging.getLogger(__name__).info) as service:
        await simulator.wait_connected()
        yield service
    await simulator.wait_until(lambda: simulator.connected == 0)


async def ask(simulator: Simulator, service: Service, words: str | list[Json], *, user: int = 20001) -> None:
    message_id = await simulator.say(words, user_id=user)
    await service.wait_settled((simulator.world.self_id, "group", GROUP, str(message_id)))
    await service.wait_idle()


def prompts(model: OfflineModel) -> list[list[dict[str, Any]]]:
    """What was asked each time, but for the moment."""
    return [
        [{**message, "content": lasting(message["content"] or "")} for message in request["messages"]]
        for request in model.requests
    ]


async def test_the_prompt_after_a_restart_goes_on_byte_for_byte_from_the_one_before(tmp_path: Path) -> None:
    async with OfflineModel() as model, Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with life(tmp_path, model, simulator, url) as service:
            await ask(simulator, service, "@bot hello")
            await ask(simulator, service, "@bot send me a message with a picture")
            await ask(simulator, service, "just talking", user=20002)
        before = prompts(model)
        # The picture took two requests; the second one's transcript and its answer are the history from then on.
        last, closing = before[-1], simulator.delivered[-1].text
        async with life(tmp_path, model, simulator, url) as service:
            await ask(simulator, service, "@bot thanks")
        after = prompts(model)[len(before)]
        assert after[: len(last)] == last
        assert after[len(last)] == {"role": "assistant", "content": closing}
        assert len(after) == len(last) + 2
        assert "just talking" in after[-1]["content"]


async def test_the_prefix_of_a_conversation_never_changes_between_turns(tmp_path: Path) -> None:
    async with OfflineModel() as model, Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with life(tmp_path, model, simulator, url) as service:
            for text in ("@bot hello", "@bot write a quicksort", "@bot thanks", "@bot what can you do?"):
                await ask(simulator, service, text)
    mine = [prompt for prompt in prompts(model) if "关于这个聊天" in prompt[0]["content"]]
    assert len(mine) >= 5
    for earlier, later in itertools.pairwise(mine):
        assert later[: len(earlier)] == earlier


async def test_an_event_delivered_again_after_a_restart_is_not_answered_again(tmp_path: Path) -> None:
    async with OfflineModel() as model, Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with life(tmp_path, model, simulator, url) as service:
            message_id = await simulator.say("@bot hello")
            await service.wait_settled((simulator.world.self_id, "group", GROUP, str(message_id)))
            await service.wait_idle()
        async with life(tmp_path, model, simulator, url) as service:
            await simulator.push(event_of(simulator.world, simulator.world.messages.find(message_id)))
            await ask(simulator, service, "@bot thanks")
        assert len(simulator.delivered) == 2


async def test_a_call_that_may_change_something_is_in_the_journal_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    @tool
    async def strike_gong(token: str) -> str:
        """Looks, while it is run, at what another process would find."""
        with closing(sqlite3.connect(tmp_path / "bot.db")) as journal:
            seen.extend(name for (name,) in journal.execute("SELECT name FROM tool_calls"))
        entries = [put.entry for put in Ahead(tmp_path / "bot.db").left(0)]
        seen.extend(entry.call.name for entry in entries if isinstance(entry, ToolStarted))
        return token

    found = Discovered((*tools.discover(), strike_gong))
    monkeypatch.setattr("bot.app.find_tools", lambda _settings: found)
    async with ScriptedModel(nothing_happens) as model, Simulator(demo_world()) as simulator:
        async with life(tmp_path, model, simulator, await simulator.serve()) as service:
            await ask(simulator, service, "@bot strike#q1")
        assert [message.text for message in simulator.delivered] == ["F:q1"]
    assert set(seen) == {"strike_gong"}


# --- the same with a restart and without ----------------------------------------------------------


@tool
async def ask_first(context: ToolContext) -> str:
    """Waits for somebody's word."""
    if not context.allowed:
        raise Suspend("May I?", seconds=600)
    return "it was done"


@pytest.fixture
def _with_ask_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service has a tool more, one that waits for somebody's word."""
    found = Discovered((*tools.discover(), ask_first))
    monkeypatch.setattr("bot.app.find_tools", lambda _settings: found)


async def allow(service: Service) -> None:
    """Somebody allows what the one suspended run wants."""
    (request,) = service.app.decisions.calls.open.values()
    resume = Resume(request.run_id, {request.call_id: Allow()}, None)
    assert service.app.lanes.put(request.where, resume)
    await service.wait_idle()


async def nothing_happens(_asked: Asked) -> None:
    """Between a question and its answer."""


def world_at(moment: float) -> World:
    """A world in which it is always that time, so that its ids are the same ones each time."""
    world = World(now=lambda: moment)
    world.add_group(GROUP, "FrostAgent", (Person(20001, "user1", role="owner"), Person(20002, "user2")))
    return world


async def conversation(folder: Path, *, moment: float, restart: bool) -> tuple[list[bytes], list[str]]:
    """One conversation, with a restart in it or not: every request to the model, and all that was said."""
    async with ScriptedModel(nothing_happens) as model, Simulator(world_at(moment)) as simulator:
        url = await simulator.serve()

        async def begin(service: Service) -> None:
            await ask(simulator, service, "@bot picture#q1")
            await ask(simulator, service, "@bot wait#q2")
            await ask(simulator, service, "@bot plain#q3")
            await ask(simulator, service, "just talking", user=20002)

        async def end(service: Service) -> None:
            await allow(service)
            picture = next(message for message in simulator.delivered if message.text == "S:q1")
            quote = {"type": "reply", "data": {"id": str(picture.message_id)}}
            await ask(simulator, service, [quote, text("plain#q4")])
            await ask(simulator, service, "@bot plain#q5")

        async with life(folder, model, simulator, url) as service:
            await begin(service)
            if not restart:
                await end(service)
        if restart:
            async with life(folder, model, simulator, url) as service:
                await end(service)
        assert model.invalid == []
        return model.bodies, [message.text for message in simulator.delivered]


@pytest.mark.usefixtures("_with_ask_first")
async def test_a_restart_changes_no_byte_of_any_later_prompt_nor_what_is_said(tmp_path: Path) -> None:
    """With a quote of the bot's own picture, and a turn that waited for somebody's word over the restart."""
    moment = time.time()
    bodies, said = await conversation(tmp_path / "without", moment=moment, restart=False)
    again, said_again = await conversation(tmp_path / "with", moment=moment, restart=True)
    assert again == bodies
    assert said_again == said
    assert said == ["S:q1", "F:q1", f"S:q2 {LONG}", "A:q3", "A:q4", "A:q5"]  # what q2 said before it waited, once
    assert any("it was done" in body.decode() for body in bodies)
    assert "just talking" in bodies[-1].decode()
