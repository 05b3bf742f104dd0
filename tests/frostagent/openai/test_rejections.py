"""Requests that vendors reject, in the words they do it with: each is answered in the end, and the next one at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from frostagent.engine.engine import RunState
from frostagent.models.failover import Failover
from frostagent.models.openai.client import OpenAIModel
from frostagent.models.request_repairs import PICTURE_LEFT_OUT
from frostagent.models.upstreams import Upstream
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from frostagent.types.runs import StepFinished
from tests.fakes import CountingIds, ManualClock, RecordingObserver
from tests.frostagent.openai.conftest import Vendor
from tests.frostagent.openai.corpus import Record, refusals
from tests.frostagent.runs import engine, run, to_the_end

PICTURE = "data:image/png;base64,AAAA"
SYSTEM = SystemMessage("be kind")
CALLED: tuple[Message, ...] = (
    UserMessage("weather?"),
    AssistantMessage("", (ToolCall("c1", "look", '{"city": "Paris"}'),)),
    ToolMessage("c1", "look", "sunny"),
    AssistantMessage("Sunny."),
)
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {}}),)
ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

PICTURES = frozenset({"picture_kind", "bad_picture", "vision_unsupported"})
HISTORIES = frozenset({"bad_history", "reasoning_replay"})
UNKNOWN = "unknown_cause"


def shows_a_picture(body: Mapping[str, Any]) -> bool:
    return "image_url" in orjson.dumps(body["messages"]).decode()


def holds_calls(body: Mapping[str, Any]) -> bool:
    return any("tool_calls" in message or message["role"] == "tool" for message in body["messages"])


def holds_earlier_rounds(body: Mapping[str, Any]) -> bool:
    return len(body["messages"]) > 2


def speaks_in_turn(body: Mapping[str, Any]) -> bool:
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    return roles[::2] == ["user"] * len(roles[::2]) and roles[1::2] == ["assistant"] * len(roles[1::2])


def cases() -> Iterator[tuple[Record, Any, ModelRequest]]:
    """Each refusal with what its server rejects, and a request that is rejected for that."""
    looking = ModelRequest((SYSTEM, *CALLED, UserMessage("look", (PICTURE,))), TOOLS)
    going_on = ModelRequest((SYSTEM, *CALLED, UserMessage("and tomorrow?")), TOOLS)
    talking = ModelRequest((SYSTEM, UserMessage("one"), AssistantMessage("two"), UserMessage("three")))
    for refusal in refusals():
        if refusal["kind"] in PICTURES | {UNKNOWN}:
            yield refusal, shows_a_picture, looking
        if refusal["kind"] in HISTORIES | {UNKNOWN}:
            yield refusal, holds_calls, going_on
            yield refusal, holds_earlier_rounds, talking


async def test_whatever_is_rejected_is_answered_in_another_form_at_once_and_from_then_on_in_that(
    vendor: Vendor, session: aiohttp.ClientSession
) -> None:
    wrong = []
    for refusal, is_rejected, request in cases():
        body = refusal["body"]
        said = body.encode() if isinstance(body, str) else orjson.dumps(body)
        vendor.asked.clear()
        vendor.plays[:] = [rejecting(vendor, is_rejected, refusal["status"], said)]
        clock = ManualClock()
        client = OpenAIModel(session=session, base_url=vendor.url, api_key="k", model="m")
        model = Failover([Upstream(client)], clock=clock, ids=CountingIds())
        answers = [(await model.complete(request)).message.text for _ in range(2)]
        first, *others, last = (asked.body for asked in vendor.asked)
        if (
            answers != ["hello"] * 2
            or clock.slept
            or not is_rejected(first)
            or not 1 <= len(others) <= 3
            or is_rejected(last)
            or (is_rejected is holds_calls and not speaks_in_turn(last))
            or (is_rejected is shows_a_picture) != (PICTURE_LEFT_OUT in str(last))
            or (is_rejected is holds_calls) != ("You called the tool look" in str(last))
        ):
            wrong.append((refusal, is_rejected.__name__, answers, vendor.asked, clock.slept))
    assert wrong == []


NOTHING = {
    "thoughts": ['{"choices":[{"index":0,"delta":{"reasoning_content":"让我想想"}}]}'.encode()] * 40,
    "blanks": [b'{"choices":[{"index":0,"delta":{"content":" \\n"}}]}'] * 40,
    "no piece": [],
}
END = [
    b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    b'{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}',
    b"[DONE]",
]


@pytest.mark.parametrize("what", NOTHING)
async def test_after_an_empty_answer_the_next_model_is_asked_and_what_was_read_is_counted(
    vendor: Vendor, session: aiohttp.ClientSession, what: str
) -> None:
    async def play(request: web.Request) -> web.StreamResponse:
        nothing = b"".join(b"data: %b\n\n" % piece for piece in (*NOTHING[what], *END))
        body = nothing if vendor.asked[-1].body["model"] == "first" else ANSWER
        return web.Response(body=body, content_type="text/event-stream")

    vendor.plays[:] = [play]
    clients = [OpenAIModel(session=session, base_url=vendor.url, api_key="k", model=name) for name in ("first", "next")]
    model = Failover([*map(Upstream, clients)], clock=ManualClock(), ids=CountingIds())
    observer = RecordingObserver()
    ended = await to_the_end(engine(model, observer=observer).run(run(), RunState()))
    assert ended.text == "hello"
    assert [asked.body["model"] for asked in vendor.asked] == ["first", "next"]
    usage = next(one.completion.usage for one in observer.events if isinstance(one, StepFinished))
    assert usage is not None
    assert usage.prompt == 9
    assert (usage.completion > 40) == (what == "thoughts")


def rejecting(vendor: Vendor, is_rejected: Any, status: int, said: bytes) -> Any:
    """A server that refuses such requests with that status and body, and answers any other."""

    async def play(request: web.Request) -> web.StreamResponse:
        if is_rejected(vendor.asked[-1].body):
            return web.Response(status=status, body=said)
        return web.Response(body=ANSWER, content_type="text/event-stream")

    return play


def test_each_family_of_rejections_has_at_least_three_forms() -> None:
    kinds = [refusal["kind"] for refusal in refusals()]
    assert [kind for kind in (*PICTURES, *HISTORIES, UNKNOWN) if kinds.count(kind) < 3] == []
