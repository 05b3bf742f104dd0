"""The whole simulator over real sockets, in both directions, with a bot of a few lines."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from adapters.simulator.call import SentMessage
from adapters.simulator.server import Simulator
from adapters.simulator.wire import Refusal, mention, text
from adapters.simulator.world import World, demo_world

Bot = ClientConnection | ServerConnection


async def receive(bot: Bot) -> dict[str, Any]:
    async with asyncio.timeout(5):
        frame: dict[str, Any] = json.loads(await bot.recv())
        return frame


async def call(bot: Bot, action: str, **params: Any) -> dict[str, Any]:
    """Ask, and skip events until the answer comes."""
    await bot.send(json.dumps({"action": action, "params": params, "echo": "mine"}))
    while (frame := await receive(bot)).get("echo") != "mine":
        pass
    return frame


async def test_a_bot_dials_hears_and_answers() -> None:
    printed: list[SentMessage] = []
    async with Simulator(demo_world(), on_sent=printed.append) as simulator:
        async with connect(await simulator.serve(), proxy=None) as bot:
            assert (await receive(bot))["sub_type"] == "connect"
            await simulator.wait_connected()
            message_id = await simulator.say("@bot hi")
            event = await receive(bot)
            assert (event["message_id"], event["group_id"], event["user_id"]) == (message_id, 4242, 20001)
            assert event["message"] == [mention(10001), text(" hi")]
            answer = await call(bot, "send_group_msg", group_id=4242, message=[text("hello")])
            (sent,) = await simulator.wait_sent(1)
            assert (sent.text, sent.message_id) == ("hello", answer["data"]["message_id"])
            assert printed == [sent]
        await simulator.wait_until(lambda: simulator.connected == 0)


async def test_the_simulator_dials_the_bot_and_dials_again() -> None:
    seen: asyncio.Queue[tuple[Request | None, list[dict[str, Any]]]] = asyncio.Queue()

    async def bot(connection: ServerConnection) -> None:
        frames = [await receive(connection)]
        answer = await call(connection, "get_login_info")
        await seen.put((connection.request, [*frames, answer]))

    async with serve(bot, "127.0.0.1", 0) as server, Simulator(demo_world(), reconnect=0.01) as simulator:
        port = next(iter(server.sockets)).getsockname()[1]
        simulator.dial(f"ws://127.0.0.1:{port}/onebot/v11/ws", token="secret")
        for _ in range(2):
            async with asyncio.timeout(5):
                request, (hello, answer) = await seen.get()
            assert request is not None
            assert request.path == "/onebot/v11/ws"
            assert {name: request.headers[name] for name in HEADERS} == HEADERS
            assert (hello["sub_type"], answer["data"]["user_id"]) == ("connect", 10001)


HEADERS = {
    "X-Self-ID": "10001",
    "x-client-role": "Universal",
    "Authorization": "Bearer secret",
    "User-Agent": "OneBot/11",
}


async def test_a_bot_that_refuses_the_upgrade_is_dialled_again() -> None:
    def refuse(_connection: ServerConnection, _request: Request) -> Response:
        return Response(401, "Unauthorized", Headers({"Content-Length": "0"}), b"")

    async def bot(_connection: ServerConnection) -> None:
        """Nobody comes this far."""

    async with (
        serve(bot, "127.0.0.1", 0, process_request=refuse) as server,
        Simulator(demo_world(), reconnect=0.01) as simulator,
    ):
        port = next(iter(server.sockets)).getsockname()[1]
        simulator.dial(f"ws://127.0.0.1:{port}/")
        await simulator.wait_until(lambda: len(simulator.refused) >= 2)
        assert "401" in simulator.refused[0]


async def test_a_bot_that_is_not_there_yet_is_dialled_again(unused_tcp_port: int) -> None:
    arrived = asyncio.Event()

    async def bot(connection: ServerConnection) -> None:
        arrived.set()
        await connection.wait_closed()

    async with Simulator(demo_world(), reconnect=0.01) as simulator:
        simulator.dial(f"ws://127.0.0.1:{unused_tcp_port}/")
        await simulator.wait_until(lambda: bool(simulator.refused))
        async with serve(bot, "127.0.0.1", unused_tcp_port), asyncio.timeout(5):
            await arrived.wait()


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("", "Bearer secret"),
        ("", "secret"),
        ("?access_token=secret", None),
        ("?access_token=secret", "Bearer wrong"),
        ("?access_token=", "Bearer secret"),
    ],
)
async def test_a_token_is_shown_in_the_header_or_the_query(path: str, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    async with Simulator(demo_world(), token="secret") as simulator:
        url = await simulator.serve() + path
        async with connect(url, additional_headers=headers, proxy=None) as bot:
            assert (await receive(bot))["post_type"] == "meta_event"


@pytest.mark.parametrize(
    ("path", "header"),
    [("", None), ("", "Token secret"), ("", "Bearer wrong"), ("?access_token=wrong", "Bearer secret")],
)
async def test_a_wrong_token_fails_after_the_upgrade(path: str, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    async with Simulator(demo_world(), token="secret") as simulator:
        url = await simulator.serve() + path
        async with connect(url, additional_headers=headers, proxy=None) as bot:
            assert (await receive(bot))["retcode"] == 1403
            with pytest.raises(ConnectionClosed):
                await receive(bot)
            assert simulator.connected == 0


@pytest.mark.parametrize("path", ["api", "api/"])
async def test_the_api_path_takes_calls_and_hears_nothing(path: str) -> None:
    async with Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with connect(url + path, proxy=None) as api, connect(url + "event", proxy=None) as both:
            await receive(both)
            await simulator.wait_connected()
            await simulator.say("hi")
            await api.send('{"action": "get_status"}')
            assert (await receive(api))["data"]["good"] is True
            assert (await receive(both))["raw_message"] == "hi"
            assert (await call(both, "get_status"))["status"] == "ok"


async def test_every_listening_socket_hears_every_event() -> None:
    async with Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with connect(url, proxy=None) as one, connect(url, proxy=None) as other:
            await simulator.wait_connected(2)
            await simulator.say("hi", user_id=20002)
            for bot in (one, other):
                await receive(bot)
                assert (await receive(bot))["user_id"] == 20002


async def test_recalls_pokes_and_private_words_are_events() -> None:
    async with Simulator(demo_world()) as simulator, connect(await simulator.serve(), proxy=None) as bot:
        await receive(bot)
        await simulator.wait_connected()
        message_id = await simulator.say([text("oops")], group_id=4242, user_id=7)
        await simulator.recall(message_id)
        await simulator.poke(user_id=20001, group_id=4242)
        await simulator.say_private("psst", user_id=20001)
        await simulator.push({"post_type": "notice", "notice_type": "bot_offline"})
        said, recalled, poked, whispered, pushed = [await receive(bot) for _ in range(5)]
    assert said["sender"]["nickname"] == "7"
    assert (recalled["notice_type"], recalled["operator_id"]) == ("group_recall", 7)
    assert (poked["sub_type"], poked["target_id"]) == ("poke", 10001)
    assert (whispered["message_type"], whispered["raw_message"]) == ("private", "psst")
    assert pushed["notice_type"] == "bot_offline"


async def test_lines_are_spoken_by_whom_they_name() -> None:
    async with Simulator(demo_world()) as simulator, connect(await simulator.serve(), proxy=None) as bot:
        await receive(bot)
        await simulator.wait_connected()
        assert await simulator.say_line("  ") is None
        await simulator.say_line("小红: @bot hi")
        await simulator.say_line("hi @小红")
        first, second = [await receive(bot) for _ in range(2)]
    assert (first["sender"]["nickname"], first["raw_message"]) == ("小红", "[CQ:at,qq=10001] hi")
    assert second["user_id"] == 20001
    assert second["raw_message"] == f"hi [CQ:at,qq={first['user_id']}]"


async def test_what_causes_an_event_is_answered_before_it() -> None:
    async with Simulator(demo_world()) as simulator, connect(await simulator.serve(), proxy=None) as bot:
        await receive(bot)
        message_id = (await call(bot, "send_msg", group_id=4242, message="x"))["data"]["message_id"]
        assert (await call(bot, "delete_msg", message_id=message_id))["retcode"] == 0
        assert (await receive(bot))["notice_type"] == "group_recall"


async def test_waiting_in_vain_ends() -> None:
    async with Simulator(demo_world()) as simulator:
        with pytest.raises(TimeoutError):
            await simulator.wait_sent(1, timeout=0.01)
        with pytest.raises(TimeoutError):
            await simulator.wait_connected(timeout=0.01)


async def test_nobody_speaks_in_a_group_that_is_not_there() -> None:
    async with Simulator(World()) as simulator:
        with pytest.raises(Refusal):
            await simulator.say("hi")


async def test_events_without_a_listener_are_lost() -> None:
    async with Simulator(demo_world()) as simulator:
        await simulator.say("hello?")
        async with connect(await simulator.serve(), proxy=None) as bot:
            assert (await receive(bot))["post_type"] == "meta_event"
            assert (await call(bot, "get_group_msg_history", group_id=4242))["data"]["messages"] != []
