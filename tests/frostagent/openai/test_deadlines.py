"""What an answer waits for, and for how long: real servers that stall in every way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp import web

from frostagent.models.openai.client import FAREWELL, Deadline, OpenAIModel, Timeouts
from frostagent.models.openai.stream import AnswerReader
from frostagent.types.errors import ModelError, ModelStalled, ModelTransport
from frostagent.types.messages import Completion, ModelRequest, Usage, UserMessage
from tests.frostagent.openai.conftest import Vendor

HI = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
HM = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
NEVER = 1000.0  # seconds: not in this test


async def ask(vendor: Vendor, session: aiohttp.ClientSession, timeouts: Timeouts) -> Completion:
    model = OpenAIModel(session=session, base_url=vendor.url, api_key="", model="m", timeouts=timeouts)
    async with asyncio.timeout(30):
        return await model.complete(ModelRequest((UserMessage("hi"),)))


async def fail(vendor: Vendor, session: aiohttp.ClientSession, timeouts: Timeouts) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(vendor, session, timeouts)
    return caught.value


@pytest.mark.parametrize("pieces", [(), (b": keep-alive\n\n",), (b"\n\n  \n",), (ROLE,)])
@pytest.mark.parametrize("way", [Vendor.stall, Vendor.hum])
async def test_a_server_that_does_not_begin_to_answer_is_stalled_whatever_else_it_says(
    vendor: Vendor, session: aiohttp.ClientSession, pieces: tuple[bytes, ...], way: Callable[..., None]
) -> None:
    way(vendor, *pieces)
    error = await fail(vendor, session, Timeouts(first_token=0.1, idle=NEVER, silence=NEVER))
    assert type(error) is ModelStalled
    assert error.took == Usage()
    assert "no answer began within 0.1 s" in str(error)


async def test_nothing_but_blanks_is_no_beginning_of_json_either(
    vendor: Vendor, session: aiohttp.ClientSession
) -> None:
    vendor.hum(sign=b"        \n")
    assert type(await fail(vendor, session, Timeouts(first_token=0.1, idle=NEVER))) is ModelStalled


@pytest.mark.parametrize("first", [HI, HM, b'{"choices":'])
async def test_the_first_token_may_be_a_thought_and_then_other_deadlines_count(
    vendor: Vendor, session: aiohttp.ClientSession, first: bytes
) -> None:
    vendor.stall(first)
    error = await fail(vendor, session, Timeouts(first_token=0.2, idle=0.4))
    assert type(error) is ModelTransport
    assert error.took == (
        Usage() if first in {HI, HM} else None
    )  # what of a body is words, nobody knows before its end
    assert "the answer stopped for 0.4" in str(error)


async def test_signs_of_life_do_not_hold_an_answer_open_that_has_stopped(
    vendor: Vendor, session: aiohttp.ClientSession
) -> None:
    for sign in (b": keep-alive\n\n", ROLE):
        vendor.plays.clear()
        vendor.hum(HI, sign=sign)
        error = await fail(vendor, session, Timeouts(silence=0.4))
        assert "the answer stopped for 0.4" in str(error)


async def test_signs_of_life_bridge_what_idle_alone_would_not(vendor: Vendor, session: aiohttp.ClientSession) -> None:
    vendor.hum(HI, every=0.05)
    error = await fail(vendor, session, Timeouts(idle=0.2, silence=0.5))
    assert "the answer stopped for 0.2" not in str(error)


@pytest.mark.parametrize("pieces", [(HI, STOP), (HI, STOP, DONE)])
async def test_signs_of_life_do_not_hold_back_an_answer_that_is_there(
    vendor: Vendor, session: aiohttp.ClientSession, pieces: tuple[bytes, ...]
) -> None:
    vendor.hum(*pieces)
    completion = await ask(vendor, session, Timeouts(closing=NEVER if DONE in pieces else 0.2))
    assert completion.message.text == "hi"


async def test_an_answer_without_end_meets_the_last_deadline(vendor: Vendor, session: aiohttp.ClientSession) -> None:
    vendor.hum(sign=HI)
    error = await fail(vendor, session, Timeouts(total=0.2))
    assert type(error) is ModelTransport
    assert "not finished after 0.2 s" in str(error)


@pytest.mark.parametrize("pieces", [(), (HI,)])
async def test_who_is_not_waited_for_any_more_is_hung_up_on(
    session: aiohttp.ClientSession, pieces: tuple[bytes, ...]
) -> None:
    """By a deadline and by a cancellation: the server reads the end of the connection."""
    asked, over = asyncio.Event(), asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        if pieces:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(pieces))
        asked.set()
        while await reader.read(1000):
            pass
        over.release()
        writer.close()

    async with asyncio.timeout(30), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        request = ModelRequest((UserMessage("hi"),))
        hasty = OpenAIModel(
            session=session, base_url=url, api_key="", model="m", timeouts=Timeouts(first_token=0.1, idle=0.1)
        )
        with pytest.raises(ModelTransport):
            await hasty.complete(request)
        await over.acquire()
        asked.clear()
        patient = OpenAIModel(session=session, base_url=url, api_key="", model="m")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(patient.complete(request))
            await asked.wait()
            task.cancel()
        assert task.cancelled()
        await over.acquire()


async def test_a_cancelled_request_ends_at_once(vendor: Vendor, session: aiohttp.ClientSession) -> None:
    arrived = asyncio.Event()

    async def play(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await vendor.over.wait()
        return web.Response()

    vendor.plays.append(play)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(ask(vendor, session, Timeouts()))
        await arrived.wait()
        task.cancel()
    assert task.cancelled()


# --- the timer ------------------------------------------------------------------------------------


def left(deadline: Deadline) -> float:
    """Seconds until it passes, in tenths."""
    when = deadline.timer.when()
    assert when is not None
    return round(when - asyncio.get_running_loop().time(), 1)


async def test_each_phase_has_its_deadline() -> None:
    deadline, reader = Deadline(Timeouts()), AnswerReader()
    assert left(deadline) == 60
    async with deadline.timer:
        for piece, seconds in ((b": \n\n", 60), (ROLE, 60), (HM, 90), (STOP, 3), (b": \n\n", 3), (DONE, FAREWELL)):
            reader.feed(piece)
            deadline.hear(reader)
            deadline.go_on(reader)
            assert left(deadline) == round(seconds, 1), piece


async def test_without_a_limit_for_the_first_token_only_the_last_one_counts() -> None:
    deadline, reader = Deadline(Timeouts(first_token=0)), AnswerReader()
    assert left(deadline) == 600
    async with deadline.timer:
        reader.feed(ROLE)
        deadline.hear(reader)
        deadline.go_on(reader)
        assert left(deadline) == 600
    assert left(Deadline(Timeouts(total=5))) == 5


async def test_the_first_token_of_a_stream_is_timed() -> None:
    deadline, reader = Deadline(Timeouts()), AnswerReader()
    async with deadline.timer:
        for piece, is_timed in ((ROLE, False), (HI, True)):
            reader.feed(piece)
            deadline.hear(reader)
            assert (deadline.first_token is not None) is is_timed
    deadline, reader = Deadline(Timeouts()), AnswerReader()
    async with deadline.timer:
        reader.feed(b'{"choices":')
        deadline.hear(reader)
    assert deadline.first_token is None
