"""The least a bot can be in Python: our libraries, one request for each message, and nothing else.

No history, no tools, no order, no deadline, no confirmation. What it costs is what the bot cannot be cheaper than.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import orjson
import uvloop
from aiohttp import ClientSession, TCPConnector
from websockets.asyncio.server import ServerConnection, serve

PERSONA = {"role": "system", "content": "You are a bot."}


class Floor:
    """Answers what it is asked in groups."""

    def __init__(self, session: ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def welcome(self, socket: ServerConnection) -> None:
        """One connection, to its end."""
        async with asyncio.TaskGroup() as answers:
            async for frame in socket:
                event = orjson.loads(frame)
                if event.get("post_type") == "message" and addressed(event):
                    answers.create_task(self.answer(socket, event))

    async def answer(self, socket: ServerConnection, event: dict[str, Any]) -> None:
        """Ask the model and say what it said."""
        words = "".join(segment["data"].get("text", "") for segment in event["message"])
        request = {"model": "bench", "messages": [PERSONA, {"role": "user", "content": words}]}
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=orjson.dumps(request), headers=headers) as response:
            answer = orjson.loads(await response.read())
        said = [{"type": "text", "data": {"text": answer["choices"][0]["message"]["content"]}}]
        params = {"group_id": event["group_id"], "message": said}
        call = {"action": "send_group_msg", "params": params, "echo": event["message_id"]}
        await socket.send(orjson.dumps(call), text=True)


def addressed(event: dict[str, Any]) -> bool:
    """Whether the bot itself is spoken to."""
    me = str(event["self_id"])
    return any(segment["type"] == "at" and segment["data"]["qq"] == me for segment in event["message"])


async def main() -> None:
    """Serve until the process is ended."""
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        floor = Floor(session, os.environ["LLM_BASE_URL"] + "/chat/completions")
        async with serve(floor.welcome, "127.0.0.1", int(os.environ["ONEBOT_PORT"]), compression=None) as server:
            await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
