"""A real HTTP server on 127.0.0.1 that answers what a test tells it to, and a clock that stands still."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from aiohttp import web

OURS = Path(__file__).parents[2] / "data" / "sources"
SHARED = Path(__file__).parents[4] / "shared" / "sources" / "samples"


class StoppedClock:
    """Time moves only when a test moves it."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer of the kind somebody's server gives."""

    status: int
    body: bytes
    content_type: str


@cache
def samples() -> Mapping[str, Sample]:
    """The samples of our making (`tests/data/sources`), by name."""
    return {
        row["name"]: _read(row) for row in map(json.loads, (OURS / "samples.jsonl").read_text("utf-8").splitlines())
    }


@cache
def shared_samples() -> Mapping[str, Sample]:
    """The shared ones; none where that folder is absent."""
    return {file.stem: _read(json.loads(file.read_text("utf-8"))) for file in sorted(SHARED.glob("*.json"))}


def _read(record: Mapping[str, Any]) -> Sample:
    body = record["body_text"] if "body_text" in record else json.dumps(record["body"])
    return Sample(record["status"], body.encode(), record["content_type"])


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived; `path` begins with the stand-in's host: /api.open-meteo.com/v1/forecast."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class _Answer:
    path: str
    query: Mapping[str, str]
    body: bytes
    status: int
    headers: Mapping[str, str]
    gate: asyncio.Event | None


@dataclass(slots=True)
class Replay:
    """Answers by path and by those query fields a test names; the answer told last wins. Anything else is a 404."""

    asked: list[Asked] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    _answers: list[_Answer] = field(default_factory=list)
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._handle)
        app.router.add_post("/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def tell(
        self,
        path: str,
        body: Any,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        gate: asyncio.Event | None = None,
        **query: str,
    ) -> None:
        """Answer this path with `body`: bytes and text as they are, anything else as JSON. A gate holds it back."""
        raw = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} | dict(headers or {})
        self._answers.append(_Answer(path, query, raw, status, sent, gate))

    def tell_sample(self, path: str, sample: str, /, **query: str) -> None:
        """Answer this path as a sample does."""
        told = samples()[sample]
        headers = {"Content-Type": told.content_type}
        self._answers.append(_Answer(path, query, told.body, told.status, headers, None))

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def standing_in_for(self, *hosts: str) -> dict[str, str]:
        """`base_urls` that lead each host to a folder of its name here."""
        return {host: self.url(f"/{host}") for host in hosts}

    def count(self, path: str) -> int:
        return sum(asked.path == path for asked in self.asked)

    async def _handle(self, request: web.Request) -> web.Response:
        self.asked.append(Asked(request.path, dict(request.query), dict(request.headers), await request.read()))
        self.arrived.set()
        for answer in reversed(self._answers):
            if answer.path == request.path and answer.query.items() <= dict(request.query).items():
                if answer.gate is not None:
                    await answer.gate.wait()
                return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
        return web.Response(status=404, text="nothing told")
