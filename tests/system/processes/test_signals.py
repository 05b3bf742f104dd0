"""What an operator's signals do to the service as a process: SIGTERM, SIGINT once and twice, SIGHUP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from adapters.simulator.call import SentMessage
from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World
from tests.fakes import until
from tests.ports import free_port
from tests.torture.model import Asked, ScriptedModel

ROOT = Path(__file__).parents[3]
ONE, TWO = 4242, 4343
TOKEN = "correct-horse"
PATIENCE = 30.0  # seconds for whatever must happen; the machine may be busy
SHORT = 0.5  # seconds of grace, for who cannot wait for all of GRACE
IN_SHORT = (
    f"from bot.cli.process import *; it = configure(service=True); run_until_stopped(lambda: serve(it, grace={SHORT}))"
)


def make_world() -> World:
    world = World()
    for group in (ONE, TWO):
        world.add_group(group, f"group {group}", (Person(20001, "user1", role="owner"), Person(20002, "user2")))
    return world


@dataclass
class Gate:
    """Holds every request to the model until it is open; how each one ended."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    ended: list[str] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def hold(self, asked: Asked) -> None:
        self.began.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.ended.append(f"{asked.token} hung up")
            self.hung_up.set()
            raise
        self.ended.append(f"{asked.token} answered")


@dataclass
class Bot:
    """The service as a process."""

    process: Process
    port: int
    told: str = ""

    async def until(self, words: str) -> None:
        """Until its log has a line with these words, after all that was waited for before."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            while True:
                line = (await self.process.stderr.readline()).decode()
                assert line, self.told
                self.told += line
                if words in line:
                    return

    def send(self, name: signal.Signals) -> None:
        self.process.send_signal(name)

    async def end(self) -> int:
        """How it ends."""
        async with asyncio.timeout(PATIENCE):
            _, rest = await self.process.communicate()
        self.told += rest.decode()
        assert "Traceback" not in self.told
        assert self.process.returncode is not None
        return self.process.returncode

    async def get(self, path: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}") as response,
        ):
            return response.status, await response.text()

    async def until_figure(self, sample: str, value: float) -> None:
        """Until a sample of its figures has that value."""
        async with asyncio.timeout(PATIENCE):
            while f"{sample} {value:.1f}\n" not in (await self.get("/metrics"))[1]:
                pass


@dataclass
class House:
    """A folder with a journal, the model, and the OneBot server, over several lives of the bot."""

    folder: Path
    gate: Gate
    model: ScriptedModel
    simulator: Simulator
    onebot_port: int

    @asynccontextmanager
    async def life(self, *words: str, **environment: str) -> AsyncIterator[Bot]:
        """One life of the bot, connected."""
        fixed = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            "LLM_BASE_URL": self.model.base_url,
            "LLM_MODEL": "scripted",
            "ONEBOT_HOST": "127.0.0.1",
            "ONEBOT_PORT": str(self.onebot_port),
            "ONEBOT_ACCESS_TOKEN": TOKEN,
            "WEB_PORT": str(free_port()),
            "BOT_STEER": "0",
            "BOT_DEBOUNCE": "0",
            "BOT_PACE": "0",
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *(words or ("-m", "bot", "run"))),
            cwd=self.folder,
            env=fixed | environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=PIPE,
        )
        bot = Bot(process, int(fixed["WEB_PORT"]))
        try:
            await bot.until("ready: ")
            await self.simulator.wait_connected(timeout=PATIENCE)
            yield bot
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    def answers(self) -> list[tuple[str, str]]:
        """What people got: the words, and the id of the message each of them quotes."""
        return [(message.text, quoted(message)) for message in self.simulator.delivered]


def quoted(message: SentMessage) -> str:
    return next((str(segment["data"]["id"]) for segment in message.segments if segment["type"] == "reply"), "")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    gate, port = Gate(), free_port()
    async with ScriptedModel(gate.hold) as model, Simulator(make_world(), reconnect=0.05) as simulator:
        simulator.dial(f"ws://127.0.0.1:{port}/", token=TOKEN)
        yield House(tmp_path, gate, model, simulator, port)


async def test_sigterm_lets_a_run_end_and_leaves_the_other_questions_to_the_next_start(house: House) -> None:
    simulator, gate = house.simulator, house.gate
    async with house.life() as bot:
        first = await simulator.say("@bot plain#q1")
        await gate.began.wait()
        waiting = await simulator.say("@bot plain#q2")
        await bot.until_figure("frostagent_lanes", 1)
        await bot.until_figure("frostagent_queued", 1)
        (peer,) = simulator.sockets.peers
        bot.send(signal.SIGTERM)
        await bot.until("stopping: runs that go on: 1, with 10 s to end")
        late = await simulator.say("@bot plain#q3", group_id=TWO)
        await simulator.say("just talking", group_id=TWO)
        await bot.until_figure('frostagent_events_total{kind="message_received"}', 4)
        await bot.until_figure("frostagent_lanes", 1)
        status, body = await bot.get("/readyz")
        assert (status, '"reason": "stopping"' in body) == (503, True)
        assert (await bot.get("/healthz"))[0] == 200
        bot.send(signal.SIGTERM)  # changes nothing
        gate.opened.set()
        assert await bot.end() == 0
    assert [asked.token for asked in house.model.asked] == ["q1"]
    assert gate.ended == ["q1 answered"]
    assert house.answers() == [("A:q1", str(first))]
    goodbye = peer._connection.protocol.close_rcvd
    assert goodbye is not None
    assert (goodbye.code, goodbye.reason) == (1001, "the bot is shutting down")

    async with house.life() as bot:
        await simulator.wait_delivered(3, timeout=PATIENCE)
        bot.send(signal.SIGINT)
        assert await bot.end() == 0
    assert house.answers()[0] == ("A:q1", str(first))
    assert sorted(house.answers()[1:]) == [("A:q2", str(waiting)), ("A:q3", str(late))]
    assert not house.model.invalid


async def test_a_second_process_on_the_journal_leaves_a_live_turn_alone(house: House) -> None:
    simulator, gate = house.simulator, house.gate
    async with house.life() as bot:
        asked = await simulator.say("@bot plain#q1")
        await gate.began.wait()
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", "run"),
            cwd=house.folder,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "LLM_BASE_URL": house.model.base_url,
                "LLM_MODEL": "scripted",
                "ONEBOT_HOST": "127.0.0.1",
                "ONEBOT_PORT": "0",
                "WEB_PORT": "0",
            },
            stderr=PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            _, told = await second.communicate()
        assert second.returncode == 2
        assert f"by another process (pid {bot.process.pid})".encode() in told
        gate.opened.set()
        await simulator.wait_delivered(1, timeout=PATIENCE)
        bot.send(signal.SIGTERM)
        assert await bot.end() == 0
    assert house.answers() == [("A:q1", str(asked))]
    assert [request.token for request in house.model.asked] == ["q1"]


async def test_a_run_that_does_not_end_is_cut_off_and_asked_again_after_the_restart(house: House) -> None:
    simulator, gate = house.simulator, house.gate
    async with house.life("-c", IN_SHORT) as bot:
        asked = await simulator.say("@bot plain#q1")
        await gate.began.wait()
        (peer,) = simulator.sockets.peers
        bot.send(signal.SIGTERM)
        assert await bot.end() == 0
        assert "runs that are cut off: 1; the next start settles them" in bot.told
    async with asyncio.timeout(PATIENCE):
        await gate.hung_up.wait()
    assert gate.ended == ["q1 hung up"]
    assert simulator.sent == []
    assert peer._connection.protocol.close_rcvd is not None

    gate.opened.set()
    async with house.life() as bot:
        await simulator.wait_delivered(1, timeout=PATIENCE)
        bot.send(signal.SIGTERM)
        assert await bot.end() == 0
    assert house.answers() == [("A:q1", str(asked))]
    assert [request.token for request in house.model.asked] == ["q1", "q1"]


async def test_a_second_ctrl_c_leaves_at_once_and_the_next_start_settles_what_went_on(house: House) -> None:
    simulator, gate = house.simulator, house.gate
    async with house.life() as bot:
        asked = await simulator.say("@bot plain#q1")
        await gate.began.wait()
        bot.send(signal.SIGINT)
        await bot.until("stopping: runs")
        bot.send(signal.SIGINT)
        code = await bot.end()
        assert code == 130
    gate.opened.set()
    async with house.life() as bot:
        await simulator.wait_delivered(1, timeout=PATIENCE)
        bot.send(signal.SIGINT)
        assert await bot.end() == 0
    assert house.answers() == [("A:q1", str(asked))]


async def test_sighup_takes_a_changed_persona_for_the_next_run_and_keeps_it_when_the_file_is_broken(
    house: House,
) -> None:
    simulator, gate, model = house.simulator, house.gate, house.model
    persona, games = house.folder / "persona.md", house.folder / "games.toml"
    games.touch()
    persona.write_text("You are the old one.", "utf-8")
    async with house.life(BOT_PERSONA="persona.md", GAMES_FILE="games.toml") as bot:
        await simulator.say("@bot tool#q1")
        await gate.began.wait()
        persona.write_text("You are the new one.", "utf-8")
        bot.send(signal.SIGHUP)
        await bot.until("the persona was read again")
        await bot.until("the table of games was read again")
        gate.opened.set()
        await simulator.wait_delivered(2, timeout=PATIENCE)  # said by its tool, and the answer
        await simulator.say("@bot plain#q2", group_id=TWO)
        await simulator.wait_delivered(3, timeout=PATIENCE)
        for broken in (b"", b"\xff\xfe\xff"):
            persona.write_bytes(broken)
            games.write_bytes(broken)
            bot.send(signal.SIGHUP)
            await bot.until("the persona is kept as it was: BOT_PERSONA: persona.md is ")
            await bot.until("the table of games ")
        assert "the table of games is kept as it was: GAMES_FILE: games.toml is not UTF-8 text" in bot.told
        await simulator.say("@bot plain#q3", group_id=TWO)
        await simulator.wait_delivered(4, timeout=PATIENCE)
        bot.send(signal.SIGTERM)
        assert await bot.end() == 0
    prompts = [(asked.token, asked.messages[0]["content"]) for asked in model.asked]
    assert [(token, "old one" in prompt, "new one" in prompt) for token, prompt in prompts] == [
        ("q1", True, False),
        ("q1", True, False),
        ("q2", False, True),
        ("q3", False, True),
    ]


async def forget(folder: Path, user: int, **environment: str) -> str:
    """The command of an operator, in the folder of a bot; what it tells."""
    erasing = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "forget", "--user", str(user)),
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **environment},
        stderr=PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        _, told = await erasing.communicate()
    assert erasing.returncode == 0, told
    return told.decode()


async def test_after_forget_a_running_bot_knows_no_more_of_a_person_and_answers_nothing_he_still_asked(
    house: House,
) -> None:
    simulator, model = house.simulator, house.model
    house.gate.opened.set()
    async with house.life() as bot:
        await simulator.say("my cat is called Momo", user_id=20002)
        await simulator.say("@bot plain#q1", user_id=20002)
        await simulator.wait_delivered(1, timeout=PATIENCE)
        await simulator.say("@bot plain#q2")
        await simulator.wait_delivered(2, timeout=PATIENCE)
        assert "Momo" in str(model.asked[-1].messages)
        house.gate.opened.clear()
        await simulator.say("@bot plain#q3")
        await until(lambda: len(model.asked) == 3, seconds=PATIENCE)
        await simulator.say("@bot plain#waits", user_id=20002)
        await bot.until_figure("frostagent_queued", 1)
        assert "rows, by the bot that is running here\n" in await forget(house.folder, 20002)
        house.gate.opened.set()
        await simulator.say("@bot plain#q4")
        await simulator.wait_delivered(4, timeout=PATIENCE)
        bot.send(signal.SIGTERM)
        assert await bot.end() == 0
    assert [asked.token for asked in model.asked] == ["q1", "q2", "q3", "q4"]
    last = str(model.asked[-1].messages)
    assert "Momo" not in last
    assert "20002" not in last
