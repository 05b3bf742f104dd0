"""Plays the OneBot server: dials the bot as NapCat does, says things in groups, and times what comes back.

Times are of one monotonic clock, from before an event is written until the bot's answer was read.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

ACCOUNT = 3_000_000_001
FIRST_GROUP = 700_000_000
ASKER = 100_001
TOKEN = "bench-5f1c2e7a"
MARK = re.compile(r"#Q\d{7}")
KNOCK = 0.01  # seconds between two attempts to connect
STARTED_WITHIN = 30.0  # seconds
ANSWERED_WITHIN = 20.0  # seconds


class Driver:
    """One connection of an account to a bot. `ask` may be called side by side."""

    def __init__(self, socket: ClientConnection, account: int = ACCOUNT) -> None:
        self._socket = socket
        self.account = account
        self._asked: dict[str, asyncio.Future[float]] = {}
        self._numbers = itertools.count(1)
        self.strays: list[str] = []  # what the bot said that answers no question

    async def ask(self, group: int, order: str = "") -> float:
        """Say something to the bot in the group; the seconds until its answer. Raises TimeoutError."""
        number = next(self._numbers)
        mark = f"#Q{number:07}"
        answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._asked[mark] = answered
        event = group_message(number, group=FIRST_GROUP + group, text=f" {mark} {order}", account=self.account)
        started = time.perf_counter()
        await self._socket.send(event, text=True)
        try:
            async with asyncio.timeout(ANSWERED_WITHIN):
                heard = await answered
        except TimeoutError:
            raise TimeoutError(f"no answer to {mark}; said instead: {self.strays[-1:]}") from None
        return heard - started

    async def say(self, group: int) -> int:
        """Say something in the group that is not for the bot; the number of the message."""
        number = next(self._numbers)
        text = f"line {number}"
        event = group_message(number, group=FIRST_GROUP + group, text=text, account=self.account, calls=False)
        await self._socket.send(event, text=True)
        return number

    async def listen(self) -> None:
        """Read what the bot does, and answer it, until the connection ends."""
        try:
            while True:
                frame = await self._socket.recv()
                now = time.perf_counter()
                call = orjson.loads(frame)
                await self._socket.send(orjson.dumps(self._answer(call, str(frame), now)), text=True)
        except ConnectionClosed:
            return

    def _answer(self, call: dict[str, Any], frame: str, now: float) -> dict[str, Any]:
        data: dict[str, Any]
        match call.get("action"):
            case "send_group_msg" | "send_msg":
                mark = MARK.search(frame)
                answered = self._asked.pop(mark[0], None) if mark else None
                if answered is None:
                    self.strays.append(frame)
                elif not answered.done():
                    answered.set_result(now)
                data = {"message_id": -next(self._numbers)}
            case "get_login_info":
                data = {"user_id": self.account, "nickname": "bench"}
            case "get_version_info":
                data = {"app_name": "NapCat.Onebot", "app_version": "4.0.0", "protocol_version": "v11"}
            case "get_status":
                data = {"online": True, "good": True}
            case _:
                return {"status": "failed", "retcode": 1404, "data": None, "echo": call.get("echo")}
        return {"status": "ok", "retcode": 0, "data": data, "echo": call.get("echo")}


def group_message(number: int, *, group: int, text: str, account: int = ACCOUNT, calls: bool = True) -> bytes:
    """A message of somebody in a group, who `calls` the bot."""
    called = [{"type": "at", "data": {"qq": str(account)}}] if calls else []
    segments = [*called, {"type": "text", "data": {"text": text}}]
    event = {
        "time": int(time.time()),
        "self_id": account,
        "post_type": "message",
        "message_type": "group",
        "sub_type": "normal",
        "message_id": number,
        "message_seq": number,
        "group_id": group,
        "user_id": ASKER,
        "message": segments,
        "message_format": "array",
        "raw_message": f"[CQ:at,qq={account}]{text}" if calls else text,
        "font": 14,
        "sender": {"user_id": ASKER, "nickname": "asker", "card": "", "role": "member"},
    }
    return orjson.dumps(event)


async def knock(url: str, account: int = ACCOUNT) -> ClientConnection:
    """A connection to the bot at `url`, as soon as it takes one. Raises TimeoutError."""
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Self-ID": str(account), "X-Client-Role": "Universal"}
    async with asyncio.timeout(STARTED_WITHIN):
        while True:
            try:
                return await connect(url, additional_headers=headers, compression=None, proxy=None, ping_interval=None)
            except (OSError, InvalidHandshake):
                await asyncio.sleep(KNOCK)


@asynccontextmanager
async def driving(url: str, account: int = ACCOUNT) -> AsyncIterator[Driver]:
    """A driver of this account, connected to the bot at `url` while the block runs."""
    socket = await knock(url, account)
    lifecycle = {"post_type": "meta_event", "meta_event_type": "lifecycle", "sub_type": "connect"}
    driver = Driver(socket, account)
    async with asyncio.TaskGroup() as group:
        group.create_task(driver.listen())
        try:
            await socket.send(orjson.dumps({**lifecycle, "time": int(time.time()), "self_id": account}), text=True)
            yield driver
        finally:
            await socket.close()
