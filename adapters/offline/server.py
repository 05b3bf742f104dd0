"""The demo model over HTTP on loopback: `POST /v1/chat/completions` (streamed or whole) and `GET
/v1/models`.

async with OfflineModel() as model:
    ...  # LLM_BASE_URL = model.base_url, any key, LLM_MODEL = model.name
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from adapters.offline.brain import Thought, think
from adapters.offline.question import Json

MODEL = "offline-demo"
CHUNK_CHARACTERS = 8  # short, so that stream readers are exercised


class DemoReply:
    """One answer; ids derive from the request, so the same request gets the same ids.

    `created` is in seconds since 1970.
    """

    def __init__(self, thought: Thought, messages: Sequence[Json], *, created: int) -> None:
        asked = json.dumps(messages, ensure_ascii=False, sort_keys=True)
        digest = hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()
        self._thought = thought
        self._frame: Json = {"id": f"chatcmpl-{digest[:24]}", "created": created, "model": MODEL}
        self._calls: list[Json] = [
            {
                "id": f"call_{digest[:20]}{index}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments, ensure_ascii=False),
                },
            }
            for index, call in enumerate(thought.calls)
        ]
        said = thought.text + "".join(call["function"]["arguments"] for call in self._calls)
        self._usage = _usage(_tokens(asked), _tokens(said))

    @property
    def _finish(self) -> str:
        return "tool_calls" if self._calls else "stop"

    def whole(self) -> Json:
        """The answer without streaming."""
        message: Json = {"role": "assistant", "content": self._thought.text or None}
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {
            **self._frame,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage,
        }

    def events(self, *, include_usage: bool) -> Iterator[bytes]:
        """The answer as server-sent events, ending with `[DONE]`."""
        for chunk in self._chunks(include_usage=include_usage):
            yield (
                b"data: "
                + json.dumps(chunk, ensure_ascii=False).encode("utf-8", "replace")
                + b"\n\n"
            )
        yield b"data: [DONE]\n\n"

    def _chunks(self, *, include_usage: bool) -> Iterator[Json]:
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in _pieces(self._thought.text):
            yield self._chunk({"content": piece})
        for index, call in enumerate(self._calls):
            function: Json = call["function"]
            opening = {**call, "function": {"name": function["name"], "arguments": ""}}
            yield self._chunk({"tool_calls": [{"index": index, **opening}]})
            for piece in _pieces(function["arguments"]):
                yield self._chunk(
                    {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                )
        yield self._chunk({}, finish=self._finish)
        if include_usage:
            yield {
                **self._frame,
                "object": "chat.completion.chunk",
                "choices": [],
                "usage": self._usage,
            }

    def _chunk(self, delta: Json, *, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._frame, "object": "chat.completion.chunk", "choices": [choice]}


def _pieces(text: str) -> Iterator[str]:
    return (
        text[start : start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS)
    )


def _tokens(text: str) -> int:
    """An estimate: one token per three bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def _usage(prompt: int, completion: int) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def error(message: str) -> Json:
    """The body of an error response."""
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    }


def models() -> Json:
    return {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "frostagent"}],
    }


MEDIA_FOLDER = Path(__file__).parent / "media"
MAX_BODY = 64 * 2**20  # bytes; requests contain images
KEPT = 64


class OfflineModel:
    """An OpenAI-compatible server without a key, running within its `async with`.

    `requests` holds the latest request bodies, for tests.
    """

    name = MODEL

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
        return web.json_response(models())

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
        except ValueError:
            return web.json_response(error("the body is not JSON"), status=400)
        match body:
            case {"messages": [_, *_] as messages} if all(
                isinstance(message, dict) for message in messages
            ):
                self.requests.append(body)
            case _:
                return web.json_response(error("messages must be a list of messages"), status=400)
        reply = DemoReply(think(messages, _offered(body)), messages, created=int(time.time()))
        if not body.get("stream"):
            return web.json_response(reply.whole())
        return await self._stream(request, reply, include_usage=_wants_usage(body))

    async def _stream(
        self, request: web.Request, reply: DemoReply, *, include_usage: bool
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
            pass  # the client has left
        return response


def _offered(body: Json) -> list[str]:
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
