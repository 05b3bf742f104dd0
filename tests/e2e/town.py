"""A simulated QQ, a scripted model and a real database, with tools that need somebody's word or authority."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr

from adapters.simulator.server import Simulator
from adapters.simulator.wire import Json, text
from adapters.simulator.world import Person, World
from bot.app import Service, open_service
from config.settings import Settings
from frostagent.models.openai.client import OpenAIModel
from frostagent.types.messages import ToolMessage
from tests.fakes import ScriptedModel, Step, calls

T = TypeVar("T")

GROUP = 4242
OWNER, SECOND, MEMBER, ADMIN, STRANGER = 20001, 20002, 20003, 20009, 666

TOOLS = '''
from pathlib import Path

from frostagent import tool


def note(line: str) -> str:
    with Path(__file__).with_name("done.log").open("a", encoding="utf-8") as log:
        log.write(line + "\\n")
    return line


@tool(permission="require_approval", side_effects="external")
async def wipe_disk(disk: str) -> str:
    """Wipes a disk."""
    return note(f"{disk} is wiped")


@tool(audience="owner", side_effects="external")
async def ring_bell(times: int) -> str:
    """Rings the bell."""
    return note(f"rang {times}")


@tool(audience="group_admin", side_effects="external")
async def silence_group() -> str:
    """Silences everybody."""
    return note("silenced")
'''

WIPE = calls(("wipe_disk", '{"disk": "sda"}'))
TWO_WIPES = calls(("wipe_disk", '{"disk": "sda"}'), ("wipe_disk", '{"disk": "sdb"}'))
ANOTHER_WIPE = calls(("wipe_disk", '{"disk": "sdc"}'))
SILENCE = calls(("silence_group", ""))
RING = calls(("ring_bell", '{"times": 3}'))


class MovableClock:
    """The real time, and as much more of it as a test wants."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._moved = asyncio.Event()
        self._slept = asyncio.Event()
        self.begun: list[float] = []  # how long each sleep is to last, in the order they began

    def now(self) -> float:
        return time.time() + self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        self.begun.append(seconds)
        self._slept.set()
        self._slept = asyncio.Event()
        end = self.monotonic() + seconds
        while (left := end - self.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._moved.wait()

    async def until_asleep(self, seconds: float, *, times: int = 1) -> None:
        """Until that many have begun to sleep for so long."""
        async with asyncio.timeout(20):
            while self.begun.count(seconds) < times:
                await self._slept.wait()

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
        self._moved.set()
        self._moved = asyncio.Event()


def small_world() -> World:
    """A group, and private sessions with the two who may be owners."""
    world = World()
    people = Person(OWNER, "主人"), Person(SECOND, "二号"), Person(MEMBER, "小明"), Person(ADMIN, "管理", role="admin")
    world.add_group(GROUP, "FrostAgent", people)
    for person in people[:2]:
        world.add_friend(Person(person.user_id, person.nickname))
    return world


@dataclass
class Stage:
    """What a test looks at."""

    simulator: Simulator
    service: Service
    folder: Path
    model: ScriptedModel

    @property
    def done(self) -> list[str]:
        """What the tools did."""
        log = self.folder / "tools" / "done.log"
        return log.read_text("utf-8").splitlines() if log.exists() else []

    @property
    def told(self) -> str:
        """What the model was last told."""
        last = self.model.requests[-1].messages[-1]
        assert isinstance(last, ToolMessage)
        return last.content

    def private(self, owner: int = OWNER) -> list[str]:
        return [message.text for message in self.simulator.delivered if message.user_id == owner]

    def group(self) -> list[str]:
        return [message.text for message in self.simulator.delivered if message.group_id == GROUP]

    async def until(self, condition: Callable[[], bool]) -> None:
        await self.simulator.wait_until(condition)

    async def ask(self, line: str = "@bot please", *, user: int = MEMBER, owner: int = OWNER) -> int:
        """A question, up to its request to the owner and the notice in the group."""
        before, noticed = len(self.private(owner)), len(self.group())
        message_id = await self.simulator.say(line, user_id=user)
        await self.until(lambda: len(self.private(owner)) > before and len(self.group()) > noticed)
        return message_id

    async def settle(self, message_id: int, *, user: int = 0) -> None:
        kind, place = ("private", user) if user else ("group", GROUP)
        identity = self.simulator.world.self_id, kind, place, str(message_id)
        async with asyncio.timeout(30):
            await self.service.wait_settled(identity)
            await self.service.wait_idle()

    async def say(self, line: str | list[Json], *, user: int) -> None:
        await self.settle(await self.simulator.say(line, user_id=user))

    async def answer(self, line: str | list[Json], *, user: int = OWNER) -> None:
        await self.settle(await self.simulator.say_private(line, user_id=user), user=user)

    def quoting(self, owner: int, line: str) -> list[Json]:
        """An answer that quotes the last request to that owner."""
        last = [message for message in self.simulator.delivered if message.user_id == owner][-1]
        return [{"type": "reply", "data": {"id": str(last.message_id)}}, text(line)]


@dataclass
class Town:
    """A simulated QQ and a folder: where services live one after another, on one journal."""

    simulator: Simulator
    url: str
    folder: Path

    @asynccontextmanager
    async def live(
        self,
        *steps: Step,
        owners: frozenset[int] = frozenset({OWNER}),
        approve: tuple[str, ...] = (),
        subagents: Path | None = None,
        **more: Any,
    ) -> AsyncIterator[Stage]:
        """One life of the service, whose model answers by this script; `more` are settings."""
        settings = Settings(
            llm_base_url="http://127.0.0.1:9/v1",
            llm_model="scripted",
            onebot_mode="forward",
            onebot_url=self.url,
            store_url=SecretStr(f"sqlite:///{self.folder}/bot.db"),
            bot_owners=owners,
            bot_new_group="live",
            bot_send_rate=0.0,
            bot_pace=False,
            bot_memory=False,
            bot_loop=0,
            bot_user_rate=None,
            bot_group_rate=None,
            bot_debounce=0.0,
            tools_dir=self.folder / "tools",
            tools_approve=approve,
            subagents_file=subagents,
            web_port=0,
            **more,
        )
        with ScriptedModel(*steps) as model:

            def wrap(port: T, /) -> T:
                scripted: Any = model
                return scripted if isinstance(port, OpenAIModel) else port

            async with open_service(settings, wrap=wrap) as service:
                await self.simulator.wait_connected()
                yield Stage(self.simulator, service, self.folder, model)
            await self.simulator.wait_until(lambda: self.simulator.connected == 0)


@asynccontextmanager
async def open_town(folder: Path) -> AsyncIterator[Town]:
    """A town in this folder."""
    (folder / "tools").mkdir()
    (folder / "tools" / "disks.py").write_text(TOOLS, "utf-8")
    async with Simulator(small_world()) as simulator:
        yield Town(simulator, await simulator.serve(), folder)


def at_bot(stage: Stage) -> list[Json]:
    return [{"type": "at", "data": {"qq": str(stage.simulator.world.self_id)}}, text(" ")]


def noted(shown: list[dict[str, Any]], words: str, *, answer: str) -> bool:
    """Whether a prompt has the answer as it was said, and a note behind it that begins so."""
    note = f"[系统记录]\n  你上面的回答{words}"
    return bool(shown[-2]["content"] == answer and shown[-1]["content"].startswith(note))
