"""`Agent.stream`: the events of a run as they happen, its end, and its cancellation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import orjson
import pytest
from aiohttp import web
from pydantic import BaseModel

from frostagent import (
    Agent,
    AgentStream,
    ApprovalRequest,
    AssistantMessage,
    Completion,
    Finished,
    FinishReason,
    ModelError,
    ModelRequest,
    Pending,
    ReasoningDelta,
    RunFailed,
    ScriptedModel,
    StreamEvent,
    TextDelta,
    TextDiscarded,
    ToolCall,
    ToolFinished,
    ToolStarted,
    call,
    tool,
)
from frostagent.clock import SystemClock
from frostagent.models.failover import Failover
from frostagent.models.openai.client import OpenAIModel, make_session
from frostagent.models.upstreams import Upstream
from frostagent.types.messages import Reasoning
from tests.conformance.vendor import listening
from tests.fakes import CountingIds


@tool
async def look() -> str:
    """Looks."""
    return "seen"


@tool(permission="approve")
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def shown(event: StreamEvent[Any]) -> object:
    match event:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            return text
        case ToolStarted() | ToolFinished():
            return f"{event.type} {event.call.name}"
        case TextDiscarded():
            return "discarded"
        case Finished(reply=reply):
            return reply.output


async def events(stream: AgentStream[Any]) -> list[object]:
    return [shown(event) async for event in stream]


CALLING = Completion(AssistantMessage("I look.", (ToolCall("c", "look", "{}"),)), FinishReason.TOOL_CALLS)
RUN = ["I", " look.", "tool_started look", "tool_finished look", "It", " is", " 晴", "天", "It is 晴天"]


async def test_words_and_calls_come_in_order_and_the_reply_at_the_end() -> None:
    with ScriptedModel(CALLING, "It is 晴天") as model:
        async with Agent(model=model, tools=[look]).stream("go") as stream:
            assert await events(stream) == RUN
            assert await events(stream) == []
        assert (await stream.result()).output == "It is 晴天"


async def test_runs_side_by_side_hear_their_own_events() -> None:
    with ScriptedModel(*[CALLING] * 2, *["It is 晴天"] * 2) as model:
        agent = Agent(model=model, tools=[look])
        async with agent.stream("go") as one, agent.stream("go") as other:
            assert await events(one) == await events(other) == RUN


async def text_of(stream: AgentStream[Any]) -> str:
    return "".join([piece async for piece in stream.text()])


async def test_the_text_is_that_of_every_answer() -> None:
    with ScriptedModel(CALLING, "sunny", "plain") as model:
        agent = Agent(model=model, tools=[look])
        async with agent.stream("go") as stream:
            assert await text_of(stream) == "I look.\n\nsunny"
            assert (await stream.result()).text == "sunny"
        async with agent.stream("go") as stream:
            reply = await stream.result()
            assert await text_of(stream) == reply.output == "plain"


async def test_a_model_without_deltas_has_its_text_told_at_once() -> None:
    class Plain:
        name = "plain"

        async def complete(self, _request: ModelRequest) -> Completion:
            return Completion(AssistantMessage(" all of it\n"), FinishReason.LENGTH)

    async with Agent(model=Plain()).stream("go") as stream:
        assert await events(stream) == ["all of it…", "all of it…"]


async def test_thoughts_are_told_before_the_words() -> None:
    thinking = Completion(AssistantMessage("hi", (), Reasoning("hm so")), FinishReason.STOP)
    with ScriptedModel(thinking) as model:
        async with Agent(model=model).stream("go") as stream:
            kinds = [type(event) async for event in stream]
    assert kinds == [ReasoningDelta, ReasoningDelta, TextDelta, Finished]


async def test_what_was_told_of_an_attempt_that_failed_is_discarded() -> None:
    async def broken_off(request: ModelRequest) -> Completion:
        assert request.on_delta is not None
        request.on_delta(TextDelta("Hel"))
        request.on_delta(TextDiscarded())
        request.on_delta(TextDiscarded())
        request.on_delta(TextDelta("Hi"))
        return Completion(AssistantMessage("Hi!"), FinishReason.STOP)

    async def taken_back(request: ModelRequest) -> Completion:
        assert request.on_delta is not None
        request.on_delta(TextDelta("call it"))
        return Completion(AssistantMessage("no"), FinishReason.STOP)

    with ScriptedModel(broken_off, taken_back) as model:
        agent = Agent(model=model)
        for told in (["Hel", "discarded", "Hi", "!", "Hi!"], ["call it", "discarded", "no", "no"]):
            async with agent.stream("go") as stream:
                assert await events(stream) == told


async def test_words_the_engine_does_not_take_are_discarded() -> None:
    with ScriptedModel("Your last answer was empty. Answer now, in words.", "fine") as model:
        async with Agent(model=model).stream("go") as stream:
            assert (await events(stream))[-3:] == ["discarded", "fine", "fine"]


async def test_an_error_is_raised_where_the_stream_is_read() -> None:
    with ScriptedModel(CALLING, ModelError("no"), ModelError("no")) as model:
        agent = Agent(model=model, tools=[look])
        async with agent.stream("go") as stream:
            assert [shown(await anext(stream)) for _ in RUN[:4]] == RUN[:4]
            with pytest.raises(RunFailed, match="no"):
                await anext(stream)
        with pytest.raises(RunFailed, match="no"):
            await stream.result()
        async with agent.stream("go") as stream:
            with pytest.raises(RunFailed, match="no"):
                await stream.result()


class Order(BaseModel):
    dish: str


async def test_with_an_output_the_run_with_tools_is_told_and_the_value_is_the_result() -> None:
    with ScriptedModel(call("look"), "one soup", '{"dish": "soup"}', '{"dish": "tea"}') as model:
        async with Agent(model=model, tools=[look]).stream("go", output=Order) as stream:
            told = await events(stream)
            order: Order = (await stream.result()).output
        assert told == ["tool_started look", "tool_finished look", "one", " soup", order]
        async with Agent(model=model).stream("go", output=Order) as stream:
            assert await events(stream) == [Order(dish="tea")]
    assert order == Order(dish="soup")


async def test_a_run_that_waits_is_the_result() -> None:
    class Later:
        async def approve(self, _request: ApprovalRequest) -> Pending:
            return Pending(1e12)

    with ScriptedModel(call("pay", amount=1)) as model:
        async with Agent(model=model, tools=[pay], approver=Later()).stream("go") as stream:
            assert await events(stream) == ["tool_started pay", ""]
            assert (await stream.result()).waiting is not None


async def test_a_stream_is_used_in_one_block() -> None:
    with ScriptedModel("hi") as model:
        stream = Agent(model=model).stream("go")
        with pytest.raises(RuntimeError, match="async with"):
            await stream.result()
        async with stream:
            assert await events(stream) == ["hi", "hi"]
        with pytest.raises(RuntimeError, match="once more"):
            async with stream:
                pass


async def test_leaving_the_block_cancels_the_run() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    with ScriptedModel(call("wait")) as model:
        async with Agent(model=model, tools=[wait]).stream("go") as stream:
            async for _ in stream:
                await begun.wait()
                break
        assert cancelled.is_set()
        with pytest.raises(RuntimeError, match="left before"):
            await stream.result()


async def test_an_error_in_the_block_gets_out_as_it_is() -> None:
    async with Agent(model=ScriptedModel("hi")).stream("go") as stream:
        await stream.result()
        with pytest.raises(KeyError):
            async with Agent(model=ScriptedModel("hi")).stream("go"):
                raise KeyError


# --- with a real server ---------------------------------------------------------------------------


def chunk(text: str) -> bytes:
    return b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) + b"\n\n"


END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("how", ["leave", "cancel"])
async def test_the_request_is_cancelled_with_its_consumer(how: str) -> None:
    closed, begun = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(chunk("Hello, "))
        try:
            while True:
                await response.write(b": keep-alive\n\n")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(closed.wait(), 0.01)
        finally:
            closed.set()  # as nobody listens any more

    async def consume(url: str) -> None:
        async with Agent(model="m", base_url=url).stream("hi") as stream:
            async for _ in stream:
                begun.set()
                if how == "leave":
                    return

    async with asyncio.timeout(10), listening(handle) as url, asyncio.TaskGroup() as tasks:
        consumer = tasks.create_task(consume(url))
        await begun.wait()
        if how == "cancel":
            consumer.cancel()
        await closed.wait()


async def test_an_attempt_that_breaks_is_made_again_and_its_words_are_void() -> None:
    asked, heard = count(1), asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if next(asked) == 1:
            await response.write(chunk("Hello, "))
            await heard.wait()
            await response.write(b'data: {"error": {"message": "overloaded", "code": 503}}\n\n')
        else:
            await response.write(chunk("Hi ") + chunk("there.") + END)
        return response

    told = []
    async with (
        asyncio.timeout(20),
        listening(handle) as url,
        Agent(model="m", base_url=url) as agent,
        agent.stream("hi") as stream,
    ):
        async for event in stream:
            heard.set()
            told.append(shown(event))
    assert told == ["Hello,", "discarded", "Hi there.", "Hi there."]


# --- a service that breaks off, and another one that answers in its place ---------------------------

PIECES = ["It", " is", " sunny", " in", " 北京", "."]
FIRST, THEN = "first", "then"


def breaking_at(position: int, pieces: Sequence[str]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The first service breaks off after that many pieces, the next one says these."""

    async def handle(request: web.Request) -> web.StreamResponse:
        model = (await request.json())["model"]
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in PIECES[:position] if model == FIRST else pieces:
            await response.write(chunk(piece))
        if model == FIRST:
            assert request.transport is not None
            request.transport.close()
        else:
            await response.write(END)
        return response

    return handle


@asynccontextmanager
async def two_services(url: str) -> AsyncIterator[Failover]:
    async with make_session() as session:
        clients = [OpenAIModel(session=session, base_url=url, api_key="", model=name) for name in (FIRST, THEN)]
        yield Failover([Upstream(client) for client in clients], clock=SystemClock(), ids=CountingIds(), attempts=1)


@pytest.mark.parametrize("position", range(len(PIECES) + 1))
@pytest.mark.parametrize("pieces", [PIECES, ["".join(PIECES)], ["It is", " raining."], ["No", "."]])
async def test_wherever_the_first_service_breaks_off_the_text_ends_with_the_answer(
    pieces: list[str], position: int
) -> None:
    answer = "".join(pieces)
    async with (
        asyncio.timeout(20),
        listening(breaking_at(position, pieces)) as url,
        two_services(url) as model,
        Agent(model=model).stream("How is the weather?") as stream,
    ):
        text = await text_of(stream)
        assert (await stream.result()).output == answer
    begun = text.removesuffix(answer)
    if begun:  # it was given, and is not how the answer begins
        assert begun.endswith("\n\n")
        assert not answer.startswith(begun.strip())
        assert "".join(PIECES[:position]).startswith(begun.strip())
    else:
        assert text == answer


@pytest.mark.parametrize("position", range(len(PIECES) + 1))
async def test_wherever_the_first_service_breaks_off_the_events_tell_what_is_void(position: int) -> None:
    async with (
        asyncio.timeout(20),
        listening(breaking_at(position, PIECES)) as url,
        two_services(url) as model,
        Agent(model=model).stream("How is the weather?") as stream,
    ):
        told = await events(stream)
    *words, output = told
    assert output == "".join(PIECES)
    left = words[words.index("discarded") + 1 :] if "discarded" in words else words
    assert "".join(map(str, left)) == output
    assert words.count("discarded") == (1 if left != words else 0)


async def test_without_another_service_what_was_said_is_no_text_and_the_error_is_raised() -> None:
    async with asyncio.timeout(20), listening(breaking_at(3, [])) as url, make_session() as session:
        client = OpenAIModel(session=session, base_url=url, api_key="", model=FIRST)
        model = Failover([Upstream(client)], clock=SystemClock(), ids=CountingIds(), attempts=1)
        async with Agent(model=model).stream("hi") as stream:
            with pytest.raises(RunFailed, match="transport"):
                await text_of(stream)


async def test_an_attempt_that_calls_a_tool_instead_is_set_apart() -> None:
    async def calls_instead(request: ModelRequest) -> Completion:
        assert request.on_delta is not None
        request.on_delta(TextDelta("It is"))
        request.on_delta(TextDiscarded())
        return Completion(AssistantMessage("", (ToolCall("c", "look", "{}"),)), FinishReason.TOOL_CALLS)

    with ScriptedModel(calls_instead, "It is sunny") as model:
        async with Agent(model=model, tools=[look]).stream("go") as stream:
            assert await text_of(stream) == "It is\n\nIt is sunny"
            assert (await stream.result()).text == "It is sunny"
