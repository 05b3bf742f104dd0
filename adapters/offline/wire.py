"""An answer in the form of `/chat/completions`: whole, or as the chunks of a stream. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from adapters.offline.brain import Thought
from adapters.offline.question import Json

MODEL = "offline-demo"
PIECE = 8  # characters in a chunk: short, so that every reader of streams is put to work


class DemoReply:
    """One answer to one request; ids are made of the request, so that the same request gets the
    same ones.

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
        """The answer to a request that did not ask for a stream."""
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
        """The same as server-sent events, the last one `[DONE]`."""
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
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _tokens(text: str) -> int:
    """A guess, as good as a demo needs: a token for every three bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def _usage(prompt: int, completion: int) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def error(message: str) -> Json:
    """The body of a refusal."""
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    }


def models() -> Json:
    """The list of models: this one."""
    return {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "frostagent"}],
    }
