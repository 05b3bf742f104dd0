"""A house for the adapter to live in: a sink that records, a clock that stands still, and OneBot servers to play."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect

from adapters.onebot.accounts import PeerRegistry
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.sockets import ReverseServer
from adapters.onebot.transport import AnyTransport, OneBotTransport
from bot.core.events import Connected, Event

PATIENCE = 5.0  # seconds any test waits for what must happen
TOKEN = "s3cret+token/="
ACCOUNT = 10001
GREETING = frozenset({"get_status", "get_version_info"})

Frame: TypeAlias = dict[str, Any]


class RecordingSink:
    """Keeps events; raises the errors it was given, one for each event, before it keeps anything."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.errors: list[Exception] = []
        self._came = asyncio.Event()

    async def handle(self, event: Event) -> None:
        if self.errors:
            raise self.errors.pop()
        self.events.append(event)
        self._came.set()

    async def until(self, count: int) -> list[Event]:
        """The events so far, once there are that many."""
        async with asyncio.timeout(PATIENCE):
            while len(self.events) < count:
                self._came.clear()
                await self._came.wait()
        return self.events


class StandingClock:
    """A clock that does not move; who sleeps is woken by the test."""

    def __init__(self) -> None:
        self.sleeps: list[float] = []
        self._sleepers: list[asyncio.Future[None]] = []
        self._slept = asyncio.Event()

    def now(self) -> float:
        return 1_700_000_000.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append(sleeper)
        self._slept.set()
        await sleeper

    async def until(self, count: int) -> list[float]:
        """The sleeps so far, once there are that many."""
        async with asyncio.timeout(PATIENCE):
            while len(self.sleeps) < count:
                self._slept.clear()
                await self._slept.wait()
        return self.sleeps

    def wake(self) -> None:
        """Everybody has slept long enough."""
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)
        self._sleepers.clear()


class FixedIds:
    def trace(self) -> str:
        return "t1"

    def jitter(self) -> float:
        return 1.0


@dataclass
class House:
    """What the lead wires once in the composition root."""

    sink: RecordingSink = field(default_factory=RecordingSink)
    clock: StandingClock = field(default_factory=StandingClock)
    ids: FixedIds = field(default_factory=FixedIds)
    peers: PeerRegistry = field(default_factory=PeerRegistry)
    calls: OneBotCalls = field(default_factory=lambda: OneBotCalls(boot="boot"))

    @property
    def transport(self) -> AnyTransport:
        return OneBotTransport(peers=self.peers, calls=self.calls)

    def server(
        self,
        *,
        token: str = TOKEN,
        accounts: Mapping[int, str] | None = None,
        port: int = 0,
    ) -> ReverseServer:
        return ReverseServer(
            host="127.0.0.1",
            port=port,
            token=token,
            accounts=accounts,
            sink=self.sink,
            peers=self.peers,
            calls=self.calls,
            clock=self.clock,
        )

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds; it is tried at every turn of the loop."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            while not condition():
                turn: asyncio.Future[None] = loop.create_future()
                loop.call_soon(turn.set_result, None)
                await turn


@pytest.fixture
def deadline() -> float:
    """Seconds a call waits; a test that wants the end of it parametrizes this."""
    return 30.0


@pytest.fixture
def tokens() -> tuple[str, dict[int, str]]:
    """Everybody's token, and those of accounts."""
    return TOKEN, {}


@pytest.fixture
def introduced_within() -> float:
    """Seconds a connection has to say whose it is."""
    return 5.0


@pytest.fixture
async def house(deadline: float, introduced_within: float) -> House:
    peers = PeerRegistry(introduced_within=introduced_within)
    return House(peers=peers, calls=OneBotCalls(boot="boot", deadline=deadline, gone_within=0.1))


@pytest.fixture
async def server(house: House, tokens: tuple[str, dict[int, str]]) -> AsyncIterator[ReverseServer]:
    common, accounts = tokens
    async with house.server(token=common, accounts=accounts) as server:
        yield server


class NapCat:
    """Plays the OneBot side on one socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            await self.socket.send(orjson.dumps(frame), text=True)

    async def receive(self) -> Frame:
        """The next call, but for what every server is asked in the beginning."""
        while (frame := await self.receive_any()).get("action") in GREETING:
            pass
        return frame

    async def receive_any(self) -> Frame:
        async with asyncio.timeout(PATIENCE):
            frame: Frame = json.loads(await self.socket.recv())
        return frame

    async def answer(self, call: Frame, data: object = None, **fields: object) -> None:
        await self.send({"status": "ok", "retcode": 0, "data": data, "echo": call["echo"], **fields})

    async def closed(self) -> int | None:
        async with asyncio.timeout(PATIENCE):
            await self.socket.wait_closed()
        return self.socket.close_code


Dial: TypeAlias = Callable[..., AbstractAsyncContextManager[NapCat]]


@pytest.fixture
def dial(server: ReverseServer, house: House) -> Dial:
    """Dial the server as a OneBot server does; with `account`, it says whose it is, and is registered.

    `says` is what its X-Self-ID says, the account where nothing else is given; its greeting is not kept in the sink.
    """

    @asynccontextmanager
    async def connection(
        account: int | None = ACCOUNT,
        *,
        path: str = "/onebot/v11/ws",
        role: str = "Universal",
        token: str = TOKEN,
        says: object = None,
    ) -> AsyncIterator[NapCat]:
        headers = {"Authorization": f"Bearer {token}", "x-client-role": role}
        if (header := account if says is None else says) is not None:
            headers["X-Self-ID"] = str(header)
        url = f"ws://127.0.0.1:{server.port}{path}"
        async with connect(url, additional_headers=headers, proxy=None, compression=None, max_size=None) as socket:
            napcat = NapCat(socket)
            if account is not None:
                await introduce(house, napcat, account, role)
            yield napcat

    return connection


async def introduce(house: House, napcat: NapCat, account: int, role: str) -> None:
    """Say whose connection it is, as servers do for each role, and wait until the bot knows."""
    events = house.sink.events
    match role.lower():
        case "event":
            await napcat.send(lifecycle(account))
            return  # with its other half missing, nothing tells of it
        case "api":
            await napcat.answer(await napcat.receive_any(), {"user_id": account})
        case _:
            await napcat.send(lifecycle(account))
    await house.until(lambda: any(isinstance(event, Connected) for event in events))
    events[:] = [event for event in events if not isinstance(event, Connected)]


# --- frames ---------------------------------------------------------------------------------------


def message(text: str = "hi", *, message_id: int = 1, account: int = ACCOUNT, **fields: object) -> Frame:
    """A group message as NapCat reports it."""
    return {
        "self_id": account,
        "user_id": 20002,
        "time": 1_776_056_153,
        "message_id": message_id,
        "message_type": "group",
        "sub_type": "normal",
        "sender": {"user_id": 20002, "nickname": "小明", "card": "", "role": "member"},
        "message": [{"type": "text", "data": {"text": text}}],
        "post_type": "message",
        "group_id": 4242,
        **fields,
    }


def lifecycle(account: int = ACCOUNT) -> Frame:
    return {
        "time": 1_764_033_403,
        "self_id": account,
        "post_type": "meta_event",
        "meta_event_type": "lifecycle",
        "sub_type": "connect",
    }


def heartbeat(*, online: bool | None = True, interval: int = 30_000, account: int = ACCOUNT) -> Frame:
    status = {} if online is None else {"online": online, "good": True}
    return {
        "time": 1_764_033_440,
        "self_id": account,
        "post_type": "meta_event",
        "meta_event_type": "heartbeat",
        "status": status,
        "interval": interval,
    }
