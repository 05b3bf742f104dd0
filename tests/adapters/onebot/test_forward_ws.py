"""We dial OneBot servers: tokens, endings, and coming back."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from adapters.onebot.accounts import Account, PeerRegistry
from adapters.onebot.sockets import ForwardClient
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import Connected, MessageReceived
from frostagent.types.errors import ConfigError
from frostagent.types.speech import Text
from tests.adapters.onebot.conftest import ACCOUNT, GREETING, PATIENCE, TOKEN, Frame, House, lifecycle, message

HELLO = SendMessage(Conversation(ACCOUNT, "group", 4242), (Text("hello"),))
Visit = Callable[[ServerConnection], Awaitable[None]]


def port_of(server: Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


@asynccontextmanager
async def napcat(
    visit: Visit, *, process_request: Callable[[ServerConnection, Request], Response | None] | None = None
) -> AsyncIterator[int]:
    """A OneBot server; its port."""
    async with serve(
        visit, "127.0.0.1", 0, process_request=process_request, close_timeout=1, compression=None, max_size=None
    ) as server:
        yield port_of(server)


@asynccontextmanager
async def dialling(
    house: House, port: int, *, token: str = TOKEN, account: int = 0, url: str = ""
) -> AsyncIterator[None]:
    """A client that runs for the length of a test."""
    client = ForwardClient(
        url=url or f"ws://127.0.0.1:{port}",
        token=token,
        account=account,
        sink=house.sink,
        peers=house.peers,
        calls=house.calls,
        clock=house.clock,
        ids=house.ids,
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(client.run())
        yield
        running.cancel()


async def send(socket: ServerConnection, *frames: Frame) -> None:
    for frame in frames:
        await socket.send(json.dumps(frame))


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    ours = (record for record in caplog.records if record.name == "adapters.onebot.sockets")
    return [record.getMessage() for record in ours if record.levelno == level]


async def test_it_dials_and_hears_and_calls(house: House) -> None:
    async def visit(socket: ServerConnection) -> None:
        await send(socket, lifecycle(), message("hi"))
        while (call := json.loads(await socket.recv()))["action"] in GREETING:
            pass
        await send(socket, {"status": "ok", "retcode": 0, "data": {"message_id": 3}, "echo": call["echo"]})
        await socket.wait_closed()

    async with napcat(visit) as port, dialling(house, port):
        connected, said = await house.sink.until(2)
        assert isinstance(connected, Connected)
        assert isinstance(said, MessageReceived)
        assert house.peers.accounts() == (Account(ACCOUNT),)
        async with asyncio.timeout(PATIENCE):
            assert await house.transport.send(HELLO) == "3"
    assert house.peers.accounts() == ()


async def test_the_token_of_an_account_brings_that_account_only(house: House) -> None:
    async def visit(socket: ServerConnection) -> None:
        await send(socket, lifecycle(30003), message("as another", account=30003), message("as itself"))
        await socket.wait_closed()

    async with napcat(visit) as port, dialling(house, port, account=ACCOUNT):
        connected, said = await house.sink.until(2)
        assert house.peers.accounts() == (Account(ACCOUNT),)
    assert (type(connected), connected.self_id) == (Connected, ACCOUNT)
    assert isinstance(said, MessageReceived)
    assert said.segments == (Text("as itself"),)


@pytest.mark.parametrize("account", [0, ACCOUNT])
async def test_a_server_that_hangs_up_without_a_word_is_dialled_less_and_less(house: House, account: int) -> None:
    async def visit(socket: ServerConnection) -> None:
        await socket.close(1011)

    async with napcat(visit) as port, dialling(house, port, account=account):
        for attempt in range(1, 4):
            assert await house.clock.until(attempt) == [1.0, 2.0, 4.0][:attempt]
            house.clock.wake()


@pytest.mark.parametrize("account", [0, ACCOUNT])
async def test_a_server_that_said_whose_it_is_is_dialled_again_soon(house: House, account: int) -> None:
    async def visit(socket: ServerConnection) -> None:
        await send(socket, lifecycle())
        await socket.close(1011)

    async with napcat(visit) as port, dialling(house, port, account=account):
        for attempt in range(1, 4):
            assert await house.clock.until(attempt) == [1.0, 1.0, 1.0][:attempt]
            house.clock.wake()


@pytest.mark.parametrize(
    ("token", "path", "query", "header"),
    [
        (TOKEN, "", "/?access_token=s3cret%2Btoken%2F%3D", f"Bearer {TOKEN}"),
        (TOKEN, "/event?x=1", "/event?x=1&access_token=s3cret%2Btoken%2F%3D", f"Bearer {TOKEN}"),
        (TOKEN, "/?access_token=own", "/?access_token=own", f"Bearer {TOKEN}"),
        ("密码", "/", "/?access_token=%E5%AF%86%E7%A0%81", "Bearer 密码"),
        ("", "/", "/", None),
    ],
)
async def test_the_token_goes_as_header_and_as_query(
    house: House, token: str, path: str, query: str, header: str | None
) -> None:
    requests: asyncio.Queue[Request] = asyncio.Queue()

    async def visit(socket: ServerConnection) -> None:
        assert socket.request is not None
        requests.put_nowait(socket.request)
        await socket.wait_closed()

    async with napcat(visit) as port, dialling(house, port, token=token, url=f"ws://127.0.0.1:{port}{path}"):
        async with asyncio.timeout(PATIENCE):
            request = await requests.get()
    assert request.path == query
    sent = request.headers.get("Authorization")
    assert (sent and sent.encode("latin-1").decode()) == header


async def refuse_with_a_frame(socket: ServerConnection) -> None:
    """NapCat: the upgrade succeeds, then one frame, then a close without a code."""
    await send(socket, {"status": "failed", "retcode": 1403, "data": None, "message": "token验证失败", "echo": None})


async def refuse_by_closing(socket: ServerConnection) -> None:
    await socket.close(1008, "invalid access token")


@pytest.mark.parametrize("visit", [refuse_with_a_frame, refuse_by_closing])
async def test_a_wrong_token_is_told_once_and_tried_again_slowly(
    house: House, caplog: pytest.LogCaptureFixture, visit: Visit
) -> None:
    caplog.set_level(logging.DEBUG)
    async with napcat(visit) as port, dialling(house, port):
        for attempt in range(1, 4):
            assert await house.clock.until(attempt) == [60.0] * attempt
            house.clock.wake()
    [error] = told(caplog, logging.ERROR)
    assert "ONEBOT_ACCESS_TOKEN" in error
    assert f"ws://127.0.0.1:{port}" in error


async def test_a_server_that_hangs_up_without_a_word_may_not_take_the_token(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """onebots: the upgrade succeeds, then a close with 1002 and nothing else."""
    caplog.set_level(logging.DEBUG)

    async def visit(socket: ServerConnection) -> None:
        await socket.close(1002)

    async with napcat(visit) as port, dialling(house, port):
        assert await house.clock.until(1) == [1.0]
        house.clock.wake()
        assert await house.clock.until(2) == [1.0, 2.0]
    [line] = told(caplog, logging.WARNING)
    assert "token may be wrong" in line
    assert "ONEBOT_ACCESS_TOKEN" in line


async def test_a_known_server_that_closes_with_the_same_code_is_only_lost(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async def visit(socket: ServerConnection) -> None:
        await send(socket, lifecycle())
        await socket.close(1002)

    async with napcat(visit) as port, dialling(house, port):
        await house.clock.until(1)
    assert "token" not in str(told(caplog, logging.WARNING))


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN])
async def test_a_token_refused_before_the_upgrade_is_told_once(
    house: House, caplog: pytest.LogCaptureFixture, status: HTTPStatus
) -> None:
    async def visit(socket: ServerConnection) -> None: ...

    def refuse(socket: ServerConnection, request: Request) -> Response:
        return socket.respond(status, "no")

    async with napcat(visit, process_request=refuse) as port, dialling(house, port):
        for attempt in range(1, 3):
            assert await house.clock.until(attempt) == [60.0] * attempt
            house.clock.wake()
    assert len(told(caplog, logging.ERROR)) == 1


async def test_a_dropped_connection_is_dialled_again_after_a_second(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async def visit(socket: ServerConnection) -> None:
        await send(socket, lifecycle())
        await house.sink.until(len(house.clock.sleeps) + 1)
        if not house.clock.sleeps:
            socket.transport.abort()  # without a goodbye
        await socket.wait_closed()

    async with napcat(visit) as port, dialling(house, port):
        assert await house.clock.until(1) == [1.0]
        house.clock.wake()
        await house.sink.until(2)
        await house.until(house.peers.accounts)
    assert len(told(caplog, logging.WARNING)) == 1


async def test_a_server_that_is_not_there_is_tried_ever_more_slowly_and_told_of_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async def visit(socket: ServerConnection) -> None: ...

    async with napcat(visit) as port:
        pass
    async with dialling(house, port):
        for attempt in range(1, 9):
            await house.clock.until(attempt)
            house.clock.wake()
        assert house.clock.sleeps[:8] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert len(told(caplog, logging.WARNING)) == 1


async def test_something_that_is_no_onebot_server_is_tried_again(house: House) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        answers = [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]
        writer.write(answers[len(house.clock.sleeps) % 3])
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server, dialling(house, server.sockets[0].getsockname()[1]):
        for attempt in range(1, 4):
            assert len(await house.clock.until(attempt)) == attempt
            house.clock.wake()


@pytest.mark.parametrize(
    "place", ["ws://a..b/", f"ws://{'x' * 64}/", "ws://[::1", "ws://x:port", "http://a", "ws://u@a"]
)
async def test_a_redirect_to_nowhere_is_tried_again(house: House, caplog: pytest.LogCaptureFixture, place: str) -> None:
    async def visit(socket: ServerConnection) -> None: ...

    def redirect(socket: ServerConnection, request: Request) -> Response:
        response = socket.respond(HTTPStatus.FOUND, "there")
        response.headers["Location"] = place
        return response

    async with napcat(visit, process_request=redirect) as port, dialling(house, port):
        for attempt in range(1, 4):
            assert await house.clock.until(attempt) == [1.0, 2.0, 4.0][:attempt]
            house.clock.wake()
    assert len(told(caplog, logging.WARNING)) == 1


async def test_an_error_nobody_expected_is_told_with_its_place_and_the_server_dialled_again(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(PeerRegistry):
        def leave(self, peer: object) -> None:
            raise RuntimeError("a bug of ours")

    async def visit(socket: ServerConnection) -> None:
        await send(socket, lifecycle())

    house.peers = Broken()
    async with napcat(visit) as port, dialling(house, port):
        for attempt in range(1, 4):
            assert await house.clock.until(attempt) == [1.0, 2.0, 4.0][:attempt]
            house.clock.wake()
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) >= 3
    assert all(f"ws://127.0.0.1:{port}" in error.getMessage() and error.exc_info for error in errors)


async def test_jitter_spreads_the_attempts_over_half_the_wait(house: House) -> None:
    class Low:
        def trace(self) -> str:
            return "t"

        def jitter(self) -> float:
            return 0.0

    client = ForwardClient(
        url="ws://127.0.0.1:1",
        token="",
        sink=house.sink,
        peers=house.peers,
        calls=house.calls,
        clock=house.clock,
        ids=Low(),
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(client.run())
        assert await house.clock.until(1) == [0.5]
        running.cancel()


@pytest.mark.parametrize("introduced_within", [0.0])
async def test_a_quiet_server_is_asked_whose_it_is(house: House) -> None:
    async def visit(socket: ServerConnection) -> None:
        call = json.loads(await socket.recv())
        assert call["action"] == "get_login_info"
        data = {"user_id": ACCOUNT, "nickname": "小助手"}
        await send(socket, {"status": "ok", "retcode": 0, "data": data, "echo": call["echo"]})
        await socket.wait_closed()

    async with napcat(visit) as port, dialling(house, port):
        await house.until(lambda: house.peers.accounts() == (Account(ACCOUNT),))


async def test_the_token_is_never_logged(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await test_a_wrong_token_is_told_once_and_tried_again_slowly(house, caplog, refuse_by_closing)
    async with dialling(house, 1, url=f"ws://user:s3cret@127.0.0.1:1/?access_token={TOKEN}"):
        await house.clock.until(4)
    ours = [record for record in caplog.records if record.name != "websockets.server"]  # that is our NapCat
    logged = "\n".join(record.getMessage() + str(record.exc_info) for record in ours)
    assert TOKEN not in logged
    assert "s3cret" not in logged


async def test_the_end_says_goodbye(house: House) -> None:
    codes: asyncio.Queue[int | None] = asyncio.Queue()

    async def visit(socket: ServerConnection) -> None:
        await send(socket, lifecycle())
        await socket.wait_closed()
        codes.put_nowait(socket.close_code)

    async with napcat(visit) as port:
        async with dialling(house, port):
            await house.sink.until(1)
        async with asyncio.timeout(PATIENCE):
            assert await codes.get() == 1000


@pytest.mark.parametrize(
    "url",
    [
        "",
        "napcat:3001",
        "http://napcat:3001",
        "ws://",
        "ws://x:y?access_token=t",
        "ws://[::1",
        "ws://a..b:1",
        f"ws://{'x' * 64}",
    ],
)
async def test_an_address_that_is_none_is_a_problem_for_the_operator_and_not_repeated(house: House, url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        async with dialling(house, 1, url=url or " "):
            pass
    [problem] = refused.value.problems
    assert problem.name == "ONEBOT_URL"
    assert "access_token" not in str(problem)
