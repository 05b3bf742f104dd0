"""What the tests of the simulator share: a world whose time stands still, the corpus of real frames, and a bot."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from adapters.simulator.server import Simulator
from adapters.simulator.wire import text
from adapters.simulator.world import Person, World, demo_world
from tests.adapters.onebot.corpus import ours

Frame = dict[str, Any]


@pytest.fixture
def world() -> World:
    """10001 in the groups 4242 (with 小明 and user2) and 4343; 小明 is a friend too."""
    world = World(now=lambda: 1_776_056_153.5)
    world.add_group(4242, "测试一群", (Person(20001, "小明", "明明", "owner"), Person(20002, "user2")))
    world.add_group(4343, "二群")
    world.add_friend(Person(20001, "小明"))
    return world


@pytest.fixture
def recorded() -> Callable[[str], Frame]:
    """Reads a frame of the corpus by name."""

    def read(name: str) -> Frame:
        frame: Frame = ours()[name].content
        return frame

    return read


# --- a bot ----------------------------------------------------------------------------------------


async def receive(bot: Connection) -> Frame:
    async with asyncio.timeout(30):
        frame: Frame = json.loads(await bot.recv())
        return frame


async def call(bot: Connection, action: str, **params: Any) -> Frame:
    """Ask, and skip events until the answer comes."""
    await bot.send(json.dumps({"action": action, "params": params, "echo": "mine"}))
    while (frame := await receive(bot)).get("echo") != "mine":
        pass
    return frame


class PlainBot:
    """A bot of a few lines at the other end of the simulator's sockets; it keeps what it hears.

    `events` are all but the meta events, `metas` those, `answers` come with the number of the connection they came on
    (1 is the first); all in the order in which they came.
    """

    def __init__(self) -> None:
        self.connections = 0
        self.events: list[Frame] = []
        self.metas: list[Frame] = []
        self.answers: list[tuple[int, Frame]] = []
        self.closed: list[int | None] = []
        self._socket: Connection | None = None
        self._echoes = itertools.count(1)
        self._news = asyncio.Event()

    async def attend(self, socket: Connection) -> None:
        """Listen until this socket closes."""
        self.connections += 1
        number, self._socket = self.connections, socket
        with suppress(ConnectionClosed):
            async for data in socket:
                frame = json.loads(data)
                match frame.get("post_type"):
                    case None:
                        self.answers.append((number, frame))
                    case "meta_event":
                        self.metas.append(frame)
                    case _:
                        self.events.append(frame)
                self._tell()
        self.closed.append(socket.close_code)
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition, asked again whenever something is heard, holds."""
        async with asyncio.timeout(30):
            while not condition():
                await self._news.wait()

    async def ask(self, action: str, **params: Any) -> int:
        """Call, and do not wait for the answer; its echo."""
        assert self._socket is not None
        echo = next(self._echoes)
        await self._socket.send(json.dumps({"action": action, "params": params, "echo": echo}))
        return echo

    async def answer(self, echo: int) -> Frame:
        """The answer with that echo, on whatever connection it comes."""
        found: list[Frame] = []

        def came() -> bool:
            found.extend(frame for _, frame in self.answers if frame["echo"] == echo)
            return bool(found)

        await self.until(came)
        return found[0]

    async def call(self, action: str, **params: Any) -> Frame:
        return await self.answer(await self.ask(action, **params))

    async def send(self, words: str = "hello") -> Frame:
        """Say something in the group, and hear what is answered."""
        return await self.call("send_group_msg", group_id=4242, message=[text(words)])

    async def history(self, **params: Any) -> list[str]:
        """What was said in the group, as the server tells it."""
        answer = await self.call("get_group_msg_history", group_id=4242, **params)
        return [message["raw_message"] for message in answer["data"]["messages"]]


@asynccontextmanager
async def playing(
    direction: str, *, heartbeat: float = 0.0, reconnect: float = 0.01
) -> AsyncIterator[tuple[Simulator, PlainBot]]:
    """A simulator and a connected bot that comes back at once: it dials (forward), or is dialled (reverse)."""
    bot = PlainBot()
    async with (
        Simulator(demo_world(), heartbeat=heartbeat, reconnect=reconnect) as simulator,
        AsyncExitStack() as stack,
    ):
        if direction == "forward":
            group = await stack.enter_async_context(asyncio.TaskGroup())
            dialling = group.create_task(_keep_dialling(bot, await simulator.serve()))
            stack.callback(dialling.cancel)
        else:
            server = await stack.enter_async_context(serve(bot.attend, "127.0.0.1", 0))
            simulator.dial(f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/")
        await simulator.wait_connected()
        await bot.until(lambda: bot.metas)
        yield simulator, bot


async def _keep_dialling(bot: PlainBot, url: str) -> None:
    while True:
        with suppress(OSError, InvalidHandshake):
            async with connect(url, proxy=None) as socket:
                await bot.attend(socket)


both_directions = pytest.mark.parametrize("direction", ["forward", "reverse"])
