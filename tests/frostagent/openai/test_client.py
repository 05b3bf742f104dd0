"""One attempt against a real server: what is sent, what is read, and what each way of failing is called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace

from frostagent.models.openai.client import MAX_ANSWER, MAX_LIST, OpenAIModel, Timeouts, list_models
from frostagent.types.errors import (
    ContextOverflow,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
    ModelTransport,
)
from frostagent.types.messages import FinishReason, ModelRequest, ToolSpec, Usage, UserMessage
from frostagent.types.ports import ChatModel
from tests.cases import each_case
from tests.frostagent.openai.conftest import Vendor

KEY = "sk-secret-0123456789"
QUESTION = ModelRequest((UserMessage("hi"),))


def event(text: str, finish: str = "null") -> bytes:
    return b'data: {"id":"r","choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n' % (
        text.encode(),
        finish.encode(),
    )


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = (event("hel"), event("lo", '"stop"'), USAGE, DONE)
WHOLE = b'{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}'

Make = Callable[..., OpenAIModel]


@pytest.fixture
def make(vendor: Vendor, session: aiohttp.ClientSession) -> Make:
    """A model at the vendor, unless told otherwise."""

    def make(
        *,
        base_url: str = "",
        api_key: str = KEY,
        timeouts: Timeouts | None = None,
        now: Callable[[], float] = time.time,
    ) -> OpenAIModel:
        return OpenAIModel(
            session=session, base_url=base_url or vendor.url, api_key=api_key, model="m", timeouts=timeouts, now=now
        )

    return make


async def fail(model: ChatModel) -> ModelError:
    """The error the model answers with."""
    with pytest.raises(ModelError) as caught:
        async with asyncio.timeout(30):
            await model.complete(QUESTION)
    assert KEY not in str(caught.value)
    return caught.value


# --- what is sent ---------------------------------------------------------------------------------


async def test_the_request_is_what_was_agreed_to_the_letter(vendor: Vendor, make: Make) -> None:
    vendor.say(*STREAM)
    await make().complete(QUESTION)
    [asked] = vendor.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.headers["Content-Type"] == "application/json"


async def test_an_empty_key_sends_no_authorization_and_a_pasted_key_loses_its_blanks(
    vendor: Vendor, make: Make
) -> None:
    vendor.say(*STREAM)
    await make(api_key="").complete(QUESTION)
    await make(api_key=" sk-a\n").complete(QUESTION)
    assert "Authorization" not in vendor.asked[0].headers
    assert vendor.asked[1].headers["Authorization"] == "Bearer sk-a"


async def test_tools_are_sent_when_there_are_any(vendor: Vendor, make: Make) -> None:
    vendor.say(*STREAM)
    tool = ToolSpec("f", "Does it.", {"type": "object", "properties": {}})
    await make().complete(ModelRequest(QUESTION.messages, (tool,)))
    assert [item["function"]["name"] for item in vendor.asked[0].body["tools"]] == ["f"]


async def test_a_request_with_large_pictures_is_sent_whole(vendor: Vendor, make: Make) -> None:
    vendor.say(*STREAM)
    picture = "data:image/png;base64," + "A" * 3_000_000
    await make().complete(ModelRequest((UserMessage("", images=(picture,)),)))
    assert vendor.asked[0].body["messages"][0]["content"][0]["image_url"]["url"] == picture


async def test_6_19_a_far_host_is_asked_through_the_proxy(
    vendor: Vendor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", vendor.url.removesuffix("/v1"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    vendor.say(*STREAM)
    await make(base_url="http://model.example/v1").complete(QUESTION)
    assert vendor.asked[0].headers["Host"] == "model.example"


# --- what is read ---------------------------------------------------------------------------------


async def test_a_stream_is_read(vendor: Vendor, make: Make) -> None:
    vendor.say(*STREAM)
    completion = await make().complete(QUESTION)
    assert completion.message.text == "hello"
    assert (completion.finish, completion.usage) == (FinishReason.STOP, Usage(prompt=3, completion=1))


async def test_plain_json_is_read_though_a_stream_was_asked_for(vendor: Vendor, make: Make) -> None:
    vendor.say(WHOLE[:20], WHOLE[20:], headers={"Content-Type": "application/json"})
    assert (await make().complete(QUESTION)).message.text == "hello"


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/json", "text/html"])
async def test_1_14_a_wrong_content_type_changes_nothing(vendor: Vendor, make: Make, kind: str) -> None:
    vendor.say(*STREAM, headers={"Content-Type": kind})
    vendor.say(WHOLE, headers={"Content-Type": kind})
    model = make()
    assert (await model.complete(QUESTION)).message.text == "hello"
    assert (await model.complete(QUESTION)).message.text == "hello"


async def test_1_13_keep_alive_blanks_before_an_answer_are_signs_of_life(vendor: Vendor, make: Make) -> None:
    vendor.say(*[b"\n         \n"] * 50, WHOLE)
    vendor.say(*[b": keep-alive\n\n"] * 50, *STREAM)
    model = make()
    assert (await model.complete(QUESTION)).message.text == "hello"
    assert (await model.complete(QUESTION)).message.text == "hello"


async def test_a_compressed_stream_is_read(vendor: Vendor, make: Make) -> None:
    async def play(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_compression(web.ContentCoding.gzip)
        await response.prepare(request)
        for piece in STREAM:
            await response.write(piece)
        return response

    vendor.plays.append(play)
    assert (await make().complete(QUESTION)).message.text == "hello"


async def test_one_connection_serves_several_requests(vendor: Vendor, make: Make) -> None:
    ports: list[int] = []

    async def play(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.append(request.transport.get_extra_info("peername")[1])
        return web.Response(body=b"".join(STREAM))

    vendor.plays.append(play)
    model = make()
    for _ in range(3):
        await model.complete(QUESTION)
    assert len(set(ports)) == 1


@pytest.mark.parametrize("pieces", [STREAM, STREAM[:2], STREAM[:3]])
@pytest.mark.parametrize("end", [Vendor.cut, Vendor.stall])
async def test_2_2_a_finished_answer_needs_no_orderly_end(
    vendor: Vendor, make: Make, pieces: tuple[bytes, ...], end: Callable[..., None]
) -> None:
    end(vendor, *pieces)
    async with asyncio.timeout(30):
        assert (await make(timeouts=Timeouts(closing=0.05)).complete(QUESTION)).message.text == "hello"


async def test_requests_run_side_by_side(vendor: Vendor, make: Make) -> None:
    """No connection limit: a long answer never makes another lane wait."""
    arrived = asyncio.Semaphore(0)

    async def play(request: web.Request) -> web.StreamResponse:
        arrived.release()
        await vendor.over.wait()
        return web.Response(body=WHOLE)

    vendor.plays.append(play)
    model = make()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(120):
            group.create_task(model.complete(QUESTION))
        for _ in range(120):
            await arrived.acquire()
        vendor.over.set()


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b'{"detail":"Invalid API Key"}', ModelAuth),
        (404, b"404 page not found", ModelNotFound),
        (400, b'{"error":{"message":"maximum context length is 4096 tokens"}}', ContextOverflow),
        (502, b"<html><title>502 Bad Gateway</title>", ModelOverloaded),
        (503, b"", ModelOverloaded),
        (307, b"", ModelRejected),
    ],
)
async def test_a_refusal_is_classified(
    vendor: Vendor, make: Make, status: int, body: bytes, kind: type[ModelError]
) -> None:
    vendor.say(body, status=status, headers={"Location": "/elsewhere"})
    error = await fail(make())
    assert (type(error), error.status, len(vendor.asked)) == (kind, status, 1)


async def test_the_wait_a_vendor_asks_for_is_kept(vendor: Vendor, make: Make) -> None:
    vendor.say(b"{}", status=429, headers={"Retry-After": "Thu, 01 Jan 1970 00:16:50 GMT"})
    error = await fail(make(now=lambda: 1000.0))
    assert isinstance(error, ModelRateLimited)
    assert error.retry_after == 10.0


@pytest.mark.parametrize("status", [200, 401])
async def test_a_secret_the_vendor_repeats_is_not_passed_on(vendor: Vendor, make: Make, status: int) -> None:
    vendor.say(b'{"error":{"message":"no strange/key+1","code":"strange/key+1"}}', status=status)
    for model in (make(api_key="strange/key+1"), make(api_key="", base_url=f"{vendor.url}?token=strange/key%2B1")):
        assert (str(error := await fail(model)), error.code) == ("no ***", "***")


async def test_a_key_that_is_a_plain_word_masks_nothing(vendor: Vendor, make: Make) -> None:
    vendor.say(b'{"error":{"code":"1113","message":"no"}}', status=429)
    assert isinstance(await fail(make(api_key="1")), ModelBilling)


async def test_2_19_stream_options_are_dropped_for_good_where_they_are_refused(vendor: Vendor, make: Make) -> None:
    vendor.say(b'{"error":{"message":"Unrecognized request argument: stream_options"}}', status=400)
    vendor.say(*STREAM)
    model = make()
    assert (await model.complete(QUESTION)).message.text == "hello"
    await model.complete(QUESTION)
    assert ["stream_options" in asked.body for asked in vendor.asked] == [True, False, False]


async def test_2_19_requests_side_by_side_all_recover_from_that_refusal(vendor: Vendor, make: Make) -> None:
    both_are_here = asyncio.Barrier(2)

    async def play(request: web.Request) -> web.StreamResponse:
        if "stream_options" in await request.json():
            await both_are_here.wait()
            return web.json_response({"error": "stream_options: unknown field"}, status=400)
        return web.Response(body=WHOLE)

    vendor.plays.append(play)
    model = make()
    async with asyncio.timeout(30):
        answers = await asyncio.gather(model.complete(QUESTION), model.complete(QUESTION))
    assert [answer.message.text for answer in answers] == ["hello", "hello"]


async def test_a_second_refusal_of_stream_options_is_final(vendor: Vendor, make: Make) -> None:
    vendor.say(b'{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}', status=422)
    assert isinstance(await fail(make()), ModelRejected)
    assert len(vendor.asked) == 2


async def test_an_error_inside_a_stream_is_raised(vendor: Vendor, make: Make) -> None:
    vendor.say(event("half"), b'data: {"error":{"message":"Provider is overloaded","code":502}}\n\n', DONE)
    error = await fail(make())
    assert isinstance(error, ModelOverloaded)
    assert error.took == Usage()
    vendor.plays.clear()
    vendor.say(b'data: {"error":{"message":"Provider is overloaded","code":502}}\n\n', DONE)
    assert (await fail(make())).took is None


@pytest.mark.parametrize("pieces", [(), (event("hel"),), (b": keep-alive\n\n",), (WHOLE[:30],)])
@pytest.mark.parametrize("end", [Vendor.cut, Vendor.say])
async def test_a_cut_answer_is_never_delivered(
    vendor: Vendor, make: Make, pieces: tuple[bytes, ...], end: Callable[..., None]
) -> None:
    end(vendor, *pieces)
    error = await fail(make())
    assert isinstance(error, ModelTransport)
    assert error.took == (Usage() if event("hel") in pieces else None)


async def test_what_an_answer_took_that_is_none_in_the_end_is_told(vendor: Vendor, make: Make) -> None:
    vendor.say(event("", '"who knows"'), USAGE, DONE)
    error = await fail(make())
    assert "the answer was empty" in str(error)
    assert error.took == Usage(3, 1)


async def test_thoughts_that_a_vendor_counts_as_nothing_are_counted_by_their_pieces(vendor: Vendor, make: Make) -> None:
    thought = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
    vendor.say(*[thought] * 40, event("", '"who knows"'), USAGE.replace(b":1}", b":0}"), DONE)
    error = await fail(make())
    assert (error.took, error.code) == (Usage(3, 40), "empty")


async def test_a_stream_that_ended_with_nothing_in_it_is_told_to_be_empty(vendor: Vendor, make: Make) -> None:
    vendor.say(DONE)
    assert (await fail(make())).code == "empty"


async def test_what_aiohttp_says_of_a_body_is_not_passed_on(vendor: Vendor, make: Make) -> None:
    vendor.say(b"the model's words", headers={"Content-Encoding": "gzip"})
    assert "the answer was cut off (ClientPayloadError)" in str(await fail(make()))


async def test_a_refusal_whose_body_never_comes_is_a_refusal_all_the_same(vendor: Vendor, make: Make) -> None:
    async def play(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=503)
        await response.prepare(request)
        await vendor.over.wait()
        return response

    vendor.plays.append(play)
    assert isinstance(await fail(make(timeouts=Timeouts(closing=0.05))), ModelOverloaded)


async def test_an_endless_answer_is_given_up(vendor: Vendor, make: Make) -> None:
    vendor.say(*[b": " + b"x" * 2**20 + b"\n"] * (MAX_ANSWER // 2**20 + 1))
    error = await fail(make())
    assert isinstance(error, ModelTransport)
    assert "20 MiB" in str(error)


async def test_a_port_nobody_listens_on_says_what_to_check(make: Make) -> None:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    error = await fail(make(base_url=f"http://127.0.0.1:{port}/v1"))
    assert isinstance(error, ModelTransport)
    assert f"m@127.0.0.1:{port}: it cannot be reached, check the base URL" in str(error)


async def test_a_server_without_tls_says_to_check_the_scheme(vendor: Vendor, make: Make) -> None:
    error = await fail(make(base_url=vendor.url.replace("http:", "https:")))
    assert isinstance(error, ModelTransport)
    assert "http or https" in str(error)


async def test_a_server_that_never_shakes_hands_meets_the_connect_deadline(make: Make) -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await fail(make(base_url=f"https://127.0.0.1:{port}/v1", timeouts=Timeouts(connect=0.1)))
    assert isinstance(error, ModelTransport)
    assert "in time" in str(error)


async def test_the_name_is_for_logs_and_holds_no_secret(make: Make) -> None:
    assert make(base_url="https://user:password@a.example/v1").name == "m@a.example"


async def test_asking_without_stream_options_is_an_attempt_that_is_counted(vendor: Vendor, make: Make) -> None:
    class Never:
        step = 1
        is_first = True
        is_short = False

        def again(self) -> bool:
            return False

        def record_broken_off(self, model: str, usage: Usage) -> bool:
            raise AssertionError(model)

    vendor.say(b'{"error":{"message":"Unrecognized request argument: stream_options"}}', status=400)
    with pytest.raises(ModelRejected):
        await make().complete(replace(QUESTION, allowance=Never()))
    assert len(vendor.asked) == 1


# --- the models of a service ----------------------------------------------------------------------


async def listed(vendor: Vendor, session: aiohttp.ClientSession, *, seconds: float = 10) -> tuple[str, ...]:
    return await list_models(session, base_url=vendor.url, api_key=KEY, seconds=seconds)


@each_case(
    ("body", "names"),
    [
        (b'{"data": [{"id": "b"}, {"id": "A"}, {"id": "b"}]}', ("A", "b")),
        (b'[{"id": "bare-list"}]', ("bare-list",)),
        (b'{"data": [{"id": "\\u001b[2Jred"}, {"id": ""}, {"id": 5}, {}, "x", {"id": "good"}]}', ("good",)),
        (b'{"data": [{"id": "%b"}]}' % (b"x" * 201), ()),
        (b'{"data": null}', ()),
        (b"5", ()),
        (b"<html>", ()),
        (b"[" * 100_000, ()),
        (b" " * (MAX_LIST + 1) + b'[{"id": "too-long"}]', ()),
    ],
)
async def test_the_models_of_a_service_are_read_with_care(
    vendor: Vendor, session: aiohttp.ClientSession, body: bytes, names: tuple[str, ...]
) -> None:
    vendor.plays.clear()
    vendor.say(body)
    assert await listed(vendor, session) == names
    asked = vendor.asked[-1]
    assert (asked.path, asked.headers["Authorization"]) == ("/v1/models", f"Bearer {KEY}")


async def test_a_service_that_lists_no_models_is_no_error(vendor: Vendor, session: aiohttp.ClientSession) -> None:
    for status in (302, 401, 404, 500):
        vendor.plays.clear()
        vendor.say(b'[{"id": "a"}]', status=status, headers={"Location": "/elsewhere"})
        assert await listed(vendor, session) == ()
    vendor.plays.clear()
    vendor.cut(b'[{"id"')
    assert await listed(vendor, session) == ()
    vendor.plays.clear()
    vendor.stall(b'[{"id"')
    assert await listed(vendor, session, seconds=0.05) == ()
    assert await list_models(session, base_url="http://127.0.0.1:9/v1", api_key="", seconds=10) == ()
