"""OneBot servers dial us: who gets in, who wins, and what survives."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from adapters.onebot.accounts import Account
from adapters.onebot.sockets import ReverseServer
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import NotConnected
from bot.core.events import Connected, MessageReceived
from frostagent.types.errors import ConfigError
from frostagent.types.speech import Text
from tests.adapters.onebot.conftest import ACCOUNT, TOKEN, Dial, House, heartbeat, lifecycle, message

HELLO = SendMessage(Conversation(ACCOUNT, "group", 4242), (Text("hello"),))


async def knock(port: int, headers: Mapping[str, str], path: str = "/") -> int:
    """The HTTP status of the answer to an upgrade."""
    raw = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    try:
        async with connect(f"ws://127.0.0.1:{port}{path}", additional_headers=raw, proxy=None):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


# --- who gets in ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"Authorization": f"Bearer {TOKEN}"}, "/", 101),
        ({"Authorization": f"bearer   {TOKEN} "}, "/onebot/v11/ws/", 101),
        ({"Authorization": f"Token {TOKEN}"}, "/ws", 101),
        ({"Authorization": TOKEN}, "/onebot", 101),
        ({}, f"/any/path?access_token={TOKEN}", 101),
        ({}, "/?x=1&access_token=s3cret%2Btoken%2F%3D", 101),
        ({"Authorization": "Bearer "}, f"/?access_token={TOKEN}", 101),
        ({"Authorization": "Bearer wrong"}, f"/?access_token={TOKEN}", 101),
        ({}, "/", 401),
        ({"Authorization": "Bearer "}, "/", 401),
        ({"Authorization": "Bearer"}, "/", 401),
        ({}, "/?access_token=", 401),
        ({"Authorization": "Bearer wrong"}, "/", 403),
        ({"Authorization": f"Bearer {TOKEN}x"}, "/", 403),
        ({"Authorization": f"Basic {TOKEN}"}, "/", 403),
        ({"Authorization": "wrong"}, "/", 403),
        ({"Authorization": "Bearer 密码"}, "/", 403),
        ({}, "/?access_token=%E5%AF%86%00", 403),
    ],
)
async def test_the_token_is_asked_for_before_the_upgrade(
    server: ReverseServer, headers: dict[str, str], path: str, status: int
) -> None:
    assert await knock(server.port, headers, path) == status


async def test_who_is_refused_is_known_until_somebody_is_let_in(
    house: House, dial: Dial, server: ReverseServer
) -> None:
    assert house.peers.refused == ""
    await knock(server.port, {"Authorization": "Bearer wrong"})
    assert house.peers.refused == "127.0.0.1 was refused: it sent a wrong access token"
    await knock(server.port, {})
    assert house.peers.refused == "127.0.0.1 was refused: it sent no access token"
    async with dial(account=ACCOUNT):
        assert house.peers.refused == ""


async def test_a_token_may_be_any_text(house: House) -> None:
    async with house.server(token="密码 &+=") as server:
        assert await knock(server.port, {"Authorization": "Bearer 密码 &+="}) == 101
        assert await knock(server.port, {}, "/?access_token=%E5%AF%86%E7%A0%81%20%26%2B%3D") == 101
        assert await knock(server.port, {"Authorization": "Bearer 密码"}) == 403


async def test_without_a_token_everybody_but_a_web_page_gets_in(house: House) -> None:
    async with house.server(token="") as server:
        assert await knock(server.port, {}) == 101
        assert await knock(server.port, {"Authorization": "Bearer "}) == 101
        assert await knock(server.port, {"Authorization": "Bearer whatever"}) == 101
        assert await knock(server.port, {"Origin": "https://evil.example"}) == 403


async def test_with_the_token_a_web_page_gets_in(server: ReverseServer) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://localhost"}
    assert await knock(server.port, headers) == 101


async def test_a_refusal_is_logged_once_and_never_with_a_token(
    server: ReverseServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for token in ("wrong-token", "wrong-token", TOKEN):
        await knock(server.port, {"Authorization": f"Bearer {token}"}, f"/?access_token={token}")
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "ONEBOT_ACCESS_TOKEN" in warnings[0].getMessage()
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("adapters"))
    assert TOKEN not in ours
    assert "wrong-token" not in ours


# --- who is who -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/onebot/v11/ws", "/onebot/v11/ws/", "/x?y=1"])
async def test_events_come_in_over_any_path_in_order(house: House, dial: Dial, path: str) -> None:
    async with dial(path=path) as napcat:
        await napcat.send(lifecycle(), *(message(str(number), message_id=number) for number in range(100)))
        connected, *said = await house.sink.until(101)
    assert isinstance(connected, Connected)
    assert [event.message_id for event in said if isinstance(event, MessageReceived)] == [str(n) for n in range(100)]


async def test_an_account_that_is_not_in_the_headers_is_learnt_from_the_first_event(house: House, dial: Dial) -> None:
    async with dial(None) as napcat:
        assert house.peers.accounts() == ()
        await napcat.send(lifecycle())
        await house.sink.until(1)
        assert house.peers.accounts() == (Account(ACCOUNT),)


async def test_the_newest_connection_of_an_account_replaces_the_old_one(house: House, dial: Dial) -> None:
    async with dial() as old, asyncio.TaskGroup() as group:
        await old.send(lifecycle())
        await house.sink.until(1)
        async with dial() as new:
            assert await old.closed() == 1000
            assert old.socket.close_reason == "replaced by a newer connection"
            sending = group.create_task(house.transport.send(HELLO))
            call = await new.receive()
            await new.answer(call, {"message_id": 1})
            assert await sending == "1"
    await house.until(lambda: not house.peers.accounts())


async def test_a_dead_connection_is_replaced_by_the_new_one_at_once(house: House, dial: Dial) -> None:
    async with dial() as dead, asyncio.TaskGroup() as group:
        await dead.send(lifecycle())
        await house.sink.until(1)
        dead.socket.transport.pause_reading()  # half open: it never answers our goodbye
        async with dial() as new:
            await new.send(lifecycle())
            await house.sink.until(2)
            sending = group.create_task(house.transport.send(HELLO))
            await new.answer(await new.receive(), {"message_id": 1})
            assert await sending == "1"
        dead.socket.transport.abort()


async def test_two_entries_of_one_server_do_not_take_turns(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial():
        pass
    async with dial() as first, dial() as second:  # it may be a reconnect
        assert await first.closed() == 1000
        for _ in range(3):
            async with dial(None) as third:
                await third.send(lifecycle(), message("never heard"))
                assert await third.closed() == 1013
        await second.send(message("heard"))
        [event] = await house.sink.until(1)
        assert second.socket.close_code is None
        assert house.peers.reconnects == 2
    assert isinstance(event, MessageReceived)
    assert event.segments == (Text("heard"),)
    [warning] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "two websocket clients" in warning


async def test_a_connection_that_takes_calls_alone_is_challenged_in_the_same_way(house: House, dial: Dial) -> None:
    async with dial(role="Api") as first, dial(role="Api"):
        assert await first.closed() == 1000
        async with dial(None, role="Api") as third:
            await third.answer(await third.receive_any(), {"user_id": ACCOUNT})
            assert await third.closed() == 1013


async def test_of_two_that_take_turns_a_dead_one_is_replaced_all_the_same(house: House, dial: Dial) -> None:
    async with dial() as first, dial() as dead, asyncio.TaskGroup() as group:
        assert await first.closed() == 1000
        dead.socket.transport.pause_reading()  # half open: it never answers our ping
        async with dial(None) as new:
            await new.send(lifecycle(), message())
            await house.sink.until(2)  # at most 1.5 s later, and nothing was lost meanwhile
            sending = group.create_task(house.transport.send(HELLO))
            await new.answer(await new.receive(), {"message_id": 1})
            assert await sending == "1"
        dead.socket.transport.abort()


async def test_who_is_offline_makes_room_for_the_newer_one(house: House, dial: Dial) -> None:
    async with dial() as first, dial() as second:
        assert await first.closed() == 1000
        await second.send(heartbeat(online=False))
        await house.sink.until(1)
        async with dial():
            assert await second.closed() == 1000


async def test_several_accounts_live_side_by_side(house: House, dial: Dial) -> None:
    async with dial() as one, dial(20002) as two, asyncio.TaskGroup() as group:
        await one.send(lifecycle())
        await two.send(lifecycle(20002))
        await house.sink.until(2)
        assert {account.self_id for account in house.peers.accounts()} == {ACCOUNT, 20002}
        other = SendMessage(Conversation(20002, "private", 5), (Text("hi"),))
        sends = [group.create_task(house.transport.send(action)) for action in (other, HELLO)]
        for napcat, action in ((one, "send_group_msg"), (two, "send_private_msg")):
            call = await napcat.receive()
            assert call["action"] == action
            await napcat.answer(call, {"message_id": 1})
    assert [sending.result() for sending in sends] == ["1", "1"]


@pytest.mark.parametrize("roles", [("Api", "Event"), ("API", "EVENT")])
async def test_two_roles_share_an_account_on_two_sockets(house: House, dial: Dial, roles: tuple[str, str]) -> None:
    async with dial(role=roles[1]) as events, dial(role=roles[0]) as api, asyncio.TaskGroup() as group:
        await events.send(message())
        await house.sink.until(1)
        sending = group.create_task(house.transport.send(HELLO))
        await api.answer(await api.receive(), {"message_id": 5})
        assert await sending == "5"
        assert events.socket.close_code is None


# --- what survives --------------------------------------------------------------------------------


async def test_a_frame_too_large_costs_its_connection_and_nothing_else(
    house: House, dial: Dial, server: ReverseServer
) -> None:
    socket = await connect(f"ws://127.0.0.1:{server.port}/?access_token={TOKEN}", compression=None, proxy=None)
    with contextlib.suppress(ConnectionClosed):
        await socket.send("x" * (50 * 2**20 + 1))
    await socket.wait_closed()
    assert socket.close_code == 1009
    async with dial() as napcat:
        await napcat.send(message())
        await house.sink.until(1)


async def test_ten_mebibytes_come_in_in_one_frame(house: House, dial: Dial) -> None:
    text = "长" * (10 * 2**20 // 3)
    async with dial() as napcat:
        await napcat.send(message(text))
        [event] = await house.sink.until(1)
    assert isinstance(event, MessageReceived)
    assert event.segments == (Text(text),)


async def test_leaving_says_goodbye_and_forgets_the_connections(house: House) -> None:
    async with house.server(token="") as server:
        port = server.port
        socket = await connect(f"ws://127.0.0.1:{port}", proxy=None)
        await socket.send(json.dumps(lifecycle()))
        await house.until(house.peers.accounts)
    await socket.wait_closed()
    assert socket.close_code == 1001
    assert house.peers.accounts() == ()
    with pytest.raises(NotConnected):
        await house.transport.send(HELLO)


async def test_an_address_that_is_taken_is_a_problem_for_the_operator(house: House, server: ReverseServer) -> None:
    with pytest.raises(ConfigError) as refused:
        async with house.server(port=server.port):
            pass
    [problem] = refused.value.problems
    assert problem.name == "ONEBOT_PORT"
    assert str(server.port) in problem.what


async def test_a_server_that_does_not_listen_has_no_port(house: House) -> None:
    server = house.server()
    assert server.port == 0
    async with server:
        assert server.port != 0
    assert server.port == 0
