"""Where the pictures, files and voices of a scenario lie: an HTTP server, which also hears voices."""

from __future__ import annotations

import io
import struct
from http import HTTPStatus
from typing import Self
from zlib import crc32

from aiohttp import web
from PIL import Image

from adapters.simulator.world import World

EXPIRED = {"retcode": -5503007, "retmsg": "download url has expired"}
GONE = "expired"  # pictures whose names begin so cannot be had
RATE = 8000  # samples of one byte in a second


def png(name: str) -> bytes:
    """A picture in one colour, another for each name."""
    number = crc32(name.encode())
    written = io.BytesIO()
    Image.new("RGB", (40, 30), (number & 255, number >> 8 & 255, number >> 16 & 255)).save(written, "PNG")
    return written.getvalue()


def wav(words: str, seconds: float) -> bytes:
    """A sound that long, with its words inside, for the ears here."""
    data = words.encode().ljust(int(seconds * RATE), b"\0")
    form = struct.pack("<4sIHHIIHH4sI", b"fmt ", 16, 1, 1, RATE, RATE, 1, 8, b"data", len(data))
    return b"RIFF" + struct.pack("<I", len(form) + len(data) + 4) + b"WAVE" + form + data


class Shelf:
    """`asked` are the names that were fetched, `heard` the words of the voices that were sent here."""

    def __init__(self, world: World) -> None:
        self.asked: list[str] = []
        self.heard: list[str] = []
        self.port = 0
        self._world = world
        self._runner: web.AppRunner | None = None

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/audio/transcriptions", self._hear)
        app.router.add_get("/{name:.*}", self._give)
        self._runner = web.AppRunner(app, shutdown_timeout=0, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _give(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.asked.append(name)
        if name.startswith(GONE):
            return web.json_response(EXPIRED, status=HTTPStatus.BAD_REQUEST)
        return web.Response(body=self._world.contents.get(name) or png(name))

    async def _hear(self, request: web.Request) -> web.Response:
        form = await request.post()
        sound = form["file"]
        data = sound.file.read() if isinstance(sound, web.FileField) else b""
        words = data[44:].rstrip(b"\0").decode()
        self.heard.append(words)
        return web.json_response({"text": words})
