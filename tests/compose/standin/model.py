"""In the model service's place: answers by the last word of the question, and keeps what it was asked.

    ...picture    sends demo.png of the media folder with send_message, then says nothing more
    ...bell       calls the tool ring_bell, then repeats its result
    ...slow       answers after three seconds
    everything    `A:` and the question's last word

The system prompt and the whole transcript of the last request stand in GET /last.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

from aiohttp import web

from adapters.offline.brain import DemoCall, Thought
from adapters.offline.question import read_question
from adapters.offline.server import DemoReply

Json: TypeAlias = dict[str, Any]

PORT = 9000
SLOWLY = 3.0  # seconds


def think(messages: list[Json]) -> Thought:
    """What is said, or called, in answer to a transcript."""
    last = messages[-1]
    word = question(messages)
    match word, last["role"]:
        case "picture", "user":
            shown = [{"type": "plain", "text": "S:picture"}, {"type": "image", "path": "demo.png"}]
            return Thought(calls=(DemoCall("send_message", {"messages": shown}),))
        case "bell", "user":
            return Thought(calls=(DemoCall("ring_bell", {"times": 3}),))
        case "bell", _:
            return Thought(f"A:{last['content']}")
        case "picture", _:
            return Thought("S:picture")
        case _:
            return Thought(f"A:{word}")


def question(messages: list[Json]) -> str:
    """The last word of the last question, whatever the prompt tells behind it."""
    return next(reversed(read_question(messages).text.split()), "")


class Model:
    """An OpenAI-compatible service."""

    def __init__(self) -> None:
        self._last: list[Json] = []

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One answer, as a stream."""
        messages = self._last = (await request.json())["messages"]
        if question(messages) == "slow":
            await asyncio.sleep(SLOWLY)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"".join(DemoReply(think(messages), messages, created=0).events(include_usage=True)))
        await response.write_eof()
        return response

    async def last(self, _request: web.Request) -> web.Response:
        """What the last request was."""
        return web.json_response(self._last)


if __name__ == "__main__":
    model = Model()
    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", model.complete)
    app.router.add_get("/last", model.last)
    web.run_app(app, host="0.0.0.0", port=PORT, print=None)
