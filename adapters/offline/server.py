"""The demo model behind HTTP on loopback: `POST /v1/chat/completions` (stream or whole) and `GET
/v1/models`.

async with OfflineModel() as model:
    ...  # LLM_BASE_URL = model.base_url, any key, LLM_MODEL = model.name
"""

from __future__ import annotations

import json
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from adapters.offline import wire
from adapters.offline.brain import think
from adapters.offline.question import Json

MEDIA_FOLDER = Path(__file__).parent / "media"
MAX_BODY = 64 * 2**20  # bytes: pictures come inside the request
KEPT = 64


class OfflineModel:
    """An OpenAI-compatible server that needs no key; it lives as long as its `async with`.

    `requests` holds the last bodies it was sent, for tests.
    """

    name = wire.MODEL

    def __init__(self) -> None:
        self.base_url = ""
        self.requests: deque[Json] = deque(maxlen=KEPT)
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list_models)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _list_models(self, _request: web.Request) -> web.Response:
        return web.json_response(wire.models())

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
        except ValueError:
            return web.json_response(wire.error("the body is not JSON"), status=400)
        match body:
            case {"messages": [_, *_] as messages} if all(
                isinstance(message, dict) for message in messages
            ):
                self.requests.append(body)
            case _:
                return web.json_response(
                    wire.error("messages must be a list of messages"), status=400
                )
        reply = wire.DemoReply(think(messages, _offered(body)), messages, created=int(time.time()))
        if not body.get("stream"):
            return web.json_response(reply.whole())
        return await self._stream(request, reply, include_usage=_wants_usage(body))

    async def _stream(
        self, request: web.Request, reply: wire.DemoReply, *, include_usage: bool
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        try:
            await response.prepare(request)
            for event in reply.events(include_usage=include_usage):
                await response.write(event)
            await response.write_eof()
        except ConnectionResetError:
            pass  # whoever asked does not want the rest
        return response


def _offered(body: Json) -> list[str]:
    """The names of the tools a request offers."""
    functions = (
        tool.get("function") or {} for tool in body.get("tools") or () if isinstance(tool, dict)
    )
    return [function["name"] for function in functions if "name" in function]


def _wants_usage(body: Json) -> bool:
    match body.get("stream_options"):
        case {"include_usage": True}:
            return True
        case _:
            return False
