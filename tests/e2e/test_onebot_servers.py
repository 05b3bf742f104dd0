"""The whole service with OneBot servers of other habits than NapCat's, over real websockets."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import SecretStr

from adapters.simulator import wire
from adapters.simulator.faults import Fault
from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World, event_of
from bot.app import Service, open_service
from config.settings import Settings
from frostagent.models.openai.client import OpenAIModel
from tests.fakes import ScriptedModel, Step, lasting, until, words
from tests.fallback_lines import HERE_IN_PRIVATE

T = TypeVar("T")

GROUP, ASKER = 4242, 777
ONE, TWO = 10001, 10002
TOKEN, OWN, OTHERS = "everybodys-token", "own-token-of-10001", "own-token-of-10002"
PATIENCE = 10.0  # seconds; each test takes a tenth of one


def world(self_id: int = ONE) -> World:
    made = World(self_id=self_id)
    asker = Person(ASKER, "小明")
    made.add_group(GROUP, "FrostAgent", (asker,))
    made.add_friend(asker)
    return made


@dataclass(frozen=True, slots=True)
class Bot:
    """A running bot."""

    service: Service
    model: ScriptedModel

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.service.port}/"

    @property
    def asked(self) -> list[str]:
        """The last words of each request to the model."""
        return [lasting(str(getattr(request.messages[-1], "text", ""))) for request in self.model.requests]


@asynccontextmanager
async def running(folder: Path, *steps: Step, token: str = TOKEN, **given: Any) -> AsyncIterator[Bot]:
    settings = Settings(
        llm_base_url="http://127.0.0.1:9/v1",
        llm_model="scripted",
        onebot_host="127.0.0.1",
        onebot_port=0,
        onebot_access_token=SecretStr(token),
        store_url=SecretStr(f"sqlite:///{folder}/bot.db"),
        bot_send_rate=0.0,
        bot_pace=False,
        bot_memory=False,
        bot_loop=0,
        bot_user_rate=None,
        bot_group_rate=None,
        bot_debounce=0.0,
        web_port=0,
        **given,
    )
    with ScriptedModel(*steps) as model:

        def wrap(port: T, /) -> T:
            scripted: Any = model
            return scripted if isinstance(port, OpenAIModel) else port

        async with asyncio.timeout(PATIENCE), open_service(settings, wrap=wrap) as service:
            yield Bot(service, model)
            await service.wait_idle()


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """What the journal has, once the bot has ended."""
    with closing(sqlite3.connect(folder / "bot.db")) as journal:
        return journal.execute(query).fetchall()


async def test_an_account_that_its_header_calls_otherwise_is_answered(tmp_path: Path) -> None:
    """onebots writes the account's name into X-Self-ID, and a number of its own into the events."""
    async with running(tmp_path, words("hi")) as bot, Simulator(world(), reconnect=0.05) as onebots:
        onebots.dial(bot.url, token=TOKEN, says="30003")
        await onebots.wait_connected()
        await onebots.say("@bot hello")
        [answer] = await onebots.wait_delivered(1)
    assert answer.text == "hi"


async def test_an_answer_waits_for_the_socket_that_takes_calls_and_not_for_a_greeting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """go-cqhttp greets on /event alone; its /api may be away for longer."""
    caplog.set_level(logging.INFO)
    async with running(tmp_path, words("hi")) as bot, Simulator(world(), reconnect=0.05) as gocq:
        gocq.dial(bot.url, token=TOKEN, roles=("Event",))
        await gocq.wait_connected()
        await gocq.say("@bot hello")
        await until(lambda: "cannot send to" in caplog.text)
        gocq.dial(bot.url, token=TOKEN, roles=("Api",))
        [answer] = await gocq.wait_delivered(1)
    assert answer.text == "hi"


@pytest.mark.parametrize("wording", ["waitForSelfEcho timeout", "invoke timeout, getMsgService().sendMsg, [ '0' ]"])
async def test_an_answer_that_llbot_saw_no_echo_of_is_not_told_as_refused_and_never_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: str
) -> None:
    monkeypatch.setattr("bot.outbox.sender.LOOK_AFTER", 0.02)
    async with running(tmp_path, words("hi"), words("you are welcome")) as bot, Simulator(world()) as llbot:
        llbot.dial(bot.url, token=TOKEN)
        await llbot.wait_connected()
        llbot.faults.arm(Fault.TIMEOUT, wording=wording)
        await llbot.say("@bot hello")
        await llbot.wait_delivered(1)
        await llbot.say("@bot thanks")
        await llbot.wait_delivered(2)
        assert [sent.text for sent in llbot.sent] == ["hi", "you are welcome"]
    states = rows(tmp_path, "SELECT state FROM sends ORDER BY id")
    assert states == [("confirmed",), ("confirmed",)]  # it stood in the history


async def test_a_message_with_nothing_in_it_asks_nothing_and_is_not_kept(tmp_path: Path) -> None:
    async with running(tmp_path, words("hi")) as bot, Simulator(world()) as napcat:
        napcat.dial(bot.url, token=TOKEN)
        await napcat.wait_connected()
        await napcat.incidents.poke(user_id=ASKER)
        await napcat.say_private([], user_id=ASKER)  # as NapCat sends beside it
        await napcat.say([])
        await napcat.say_private("hello", user_id=ASKER)
        await napcat.wait_delivered(2)
        assert [sent.text for sent in napcat.sent] == [HERE_IN_PRIVATE, "hi"]
        assert [line.rpartition("\n")[2] for line in bot.asked] == ["小明#1: hello"]
    assert rows(tmp_path, "SELECT count(*) FROM messages") == [(1,)]


async def test_one_account_cannot_ask_in_the_name_of_another_nor_get_its_answers(tmp_path: Path) -> None:
    one, two = Simulator(world(ONE), reconnect=0.05), Simulator(world(TWO), reconnect=0.05)
    async with running(tmp_path, words("for one"), words("for two")) as bot, one, two:
        one.dial(bot.url, token=TOKEN)
        two.dial(bot.url, token=TOKEN)
        await one.wait_connected()
        await two.wait_connected()
        stored = world(ONE).post([wire.mention(ONE), wire.text("wipe it")], author=ASKER, group_id=GROUP)
        await two.push(event_of(world(ONE), stored))
        await one.say("@bot one?")
        await one.wait_delivered(1)
        await two.say("@bot two?")
        await two.wait_delivered(1)
        assert [[sent.text for sent in server.sent] for server in (one, two)] == [["for one"], ["for two"]]
        assert [line.rpartition(": ")[2] for line in bot.asked] == ["one?", "two?"]


async def test_each_account_comes_in_with_its_own_token(tmp_path: Path) -> None:
    tokens = f"{ONE}:{OWN},{TWO}:{OTHERS}"
    one, rogue = Simulator(world(ONE), reconnect=0.05), Simulator(world(ONE), reconnect=0.05)
    async with running(tmp_path, words("hi"), token=tokens) as bot, one, rogue:
        rogue.dial(bot.url, token=OTHERS)
        await rogue.wait_connected()
        await rogue.say("@bot in the name of the other")
        one.dial(bot.url, token=OWN)
        await one.wait_connected()
        await one.say("@bot hello")
        [answer] = await one.wait_delivered(1)
        assert rogue.sent == []
        assert len(bot.asked) == 1
    assert answer.text == "hi"


async def test_the_bots_own_words_are_quoted_in_its_name(tmp_path: Path) -> None:
    async with running(tmp_path, words("北京晴"), words("不客气")) as bot, Simulator(world()) as napcat:
        napcat.dial(bot.url, token=TOKEN)
        await napcat.wait_connected()
        await napcat.say("@bot 天气")
        [answer] = await napcat.wait_delivered(1)
        await napcat.say([{"type": "reply", "data": {"id": str(answer.message_id)}}, wire.text("谢谢")])
        await napcat.wait_delivered(2)
        assert bot.asked[-1].endswith("小明#1: [引用 我 的「北京晴」] 谢谢")


async def test_the_one_token_of_a_server_that_is_dialled_brings_its_account_only(tmp_path: Path) -> None:
    async with Simulator(world(TWO), token=OWN) as two:
        forward = {"onebot_mode": "forward", "onebot_url": await two.serve()}
        async with running(tmp_path, token=f"{ONE}:{OWN}", **forward) as bot:
            await two.wait_connected()
            await two.say("@bot in the name of the other")
            await until(bot.service.app.peers.accounts)
            assert [account.self_id for account in bot.service.app.peers.accounts()] == [ONE]
        assert bot.asked == []
