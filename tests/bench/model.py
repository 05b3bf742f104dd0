"""A model server that costs next to nothing: one `asyncio.Protocol`, no parsing beyond a search for the question.

A question carries a mark, `#Q0000017`, and after it may say how it is to be answered: `WAIT=20` (milliseconds before
the answer), `SIZE=500` (characters of it). The answer carries the same mark. `python -m tests.bench.model` prints its
port and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import cast

import orjson
import uvloop

MARK = re.compile(rb"#Q\d{7}")
ORDER = re.compile(rb"(WAIT|SIZE)=(\d{1,6})")
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
STREAMED = re.compile(rb'"stream": ?true')
PIECE = 16  # characters of one delta
NEARBY = 40  # bytes after the mark in which orders are looked for
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


class ModelProtocol(asyncio.Protocol):
    """One connection; requests on it come one after the other."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (request := self._take()) is not None:
            wait, response = answer(request)
            if wait:
                asyncio.get_running_loop().call_later(wait, self._write, response)
            else:
                self._write(response)

    def _take(self) -> bytes | None:
        """The body of the next request that is there as a whole."""
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return None
        length = LENGTH.search(self._received, 0, head)
        end = head + 4 + (int(length[1]) if length else 0)
        if len(self._received) < end:
            return None
        body = bytes(self._received[head + 4 : end])
        del self._received[:end]
        return body

    def _write(self, response: bytes) -> None:
        if self._transport is not None:
            self._transport.write(response)


def answer(body: bytes) -> tuple[float, bytes]:
    """How many seconds to wait, and the whole HTTP response to this body."""
    place = body.rfind(b"#Q")
    mark = MARK.match(body, place) if place >= 0 else None
    orders = dict(ORDER.findall(body, place, place + NEARBY)) if mark else {}
    text = mark[0].decode() if mark else "no question"
    text = text.ljust(int(orders.get(b"SIZE", 24)), "a")  # more than the question's words, or it is asked once more
    wait = int(orders.get(b"WAIT", 0)) / 1000
    return wait, stream(text) if STREAMED.search(body) else whole(text)


def stream(text: str) -> bytes:
    """The answer as server-sent events, as vendors cut it."""
    common = {"id": "bench", "object": "chat.completion.chunk", "created": 0, "model": "bench"}
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[start : start + PIECE]} for start in range(0, len(text), PIECE)]
    chunks = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**common, "choices": [], "usage": USAGE})
    body = b"".join(b"data: %b\n\n" % orjson.dumps(chunk) for chunk in chunks) + b"data: [DONE]\n\n"
    return respond(b"text/event-stream", body)


def whole(text: str) -> bytes:
    """The answer in one piece of JSON."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    fields = {"id": "bench", "object": "chat.completion", "model": "bench", "choices": [choice], "usage": USAGE}
    return respond(b"application/json", orjson.dumps(fields))


def respond(kind: bytes, body: bytes) -> bytes:
    """The body with the head of a response before it."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (kind, len(body), body)


async def serve() -> None:
    """Serve on a free port, which is printed, until standard input ends."""
    server = await asyncio.get_running_loop().create_server(ModelProtocol, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(serve())
