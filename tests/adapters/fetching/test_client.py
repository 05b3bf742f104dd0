"""The `Web` port against a real server: limits, redirects, re-basing, the cache."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from bot.core.ports import Web
from frostagent.types.errors import ToolFailed
from tests.adapters.fetching.replay import Replay, StoppedClock

URL = "https://public.example/data"
PATH = "/public.example/data"

MakeWeb = Callable[..., HttpxWeb]


async def test_it_fits_the_port_and_brings_what_was_asked_for(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, {"name": "北京"}, a="1", b="x y")
    port: Web = web
    response = await port.get(f"{URL}?a=1", params={"b": "x y"}, headers={"X-Key": "k"})
    assert (response.status, response.json(), response.url) == (200, {"name": "北京"}, f"{URL}?a=1&b=x+y")
    assert response.headers["content-type"] == "application/json"
    assert server.asked[0].headers["User-Agent"] == "FrostAgent/test (+tests)"
    assert server.asked[0].headers["X-Key"] == "k"


@pytest.mark.parametrize("status", [204, 400, 403, 404, 429, 500, 503])
async def test_any_status_comes_back(server: Replay, web: HttpxWeb, status: int) -> None:
    server.tell(PATH, b"", status=status)
    response = await web.get(URL)
    assert (response.status, response.body) == (status, b"")


async def test_a_compressed_body_is_opened(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, gzip.compress(b'{"ok": true}'), headers={"Content-Encoding": "gzip"})
    assert (await web.get(URL)).json() == {"ok": True}


async def test_a_body_that_is_not_what_it_says_is_a_failure(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, b"not gzip at all", headers={"Content-Encoding": "gzip"})
    with pytest.raises(ToolFailed, match=r"public\.example could not be reached"):
        await web.get(URL)


async def test_what_is_not_json_is_the_callers_to_judge(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, "Unknown location; please try ~39.9,116.4")
    response = await web.get(URL)
    with pytest.raises(ValueError, match="Expecting value"):
        response.json()


async def test_a_server_that_is_not_there_is_unreachable(make_web: MakeWeb, unused_tcp_port: int) -> None:
    web = make_web(base_urls={"public.example": f"http://127.0.0.1:{unused_tcp_port}"})
    with pytest.raises(ToolFailed, match=r"public\.example could not be reached \(ConnectError\)"):
        await web.get(f"{URL}?key=secret")


@pytest.mark.parametrize("url", ["http://[", "https://exa mple/", "ftp://public.example/", "public.example/x", ""])
async def test_what_is_no_web_address_is_refused(web: HttpxWeb, url: str) -> None:
    with pytest.raises(ToolFailed):
        await web.get(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "http://localhost/", "http://[::1]/", "http://2130706433/"])
async def test_a_private_address_is_refused(web: HttpxWeb, url: str) -> None:
    with pytest.raises(ToolFailed, match="not fetched"):
        await web.get(url)


async def test_a_redirect_is_followed(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, b"", status=302, headers={"Location": "/public.example/elsewhere?x=1"})
    server.tell("/public.example/elsewhere", "there", x="1")
    assert (await web.get(URL)).body == b"there"


async def test_a_redirect_to_a_rebased_host_is_rebased_too(server: Replay, make_web: MakeWeb) -> None:
    web = make_web(base_urls=server.standing_in_for("public.example", "cdn.example"))
    server.tell(PATH, b"", status=301, headers={"Location": "https://cdn.example/file"})
    server.tell("/cdn.example/file", "from the cdn")
    response = await web.get(URL, headers={"X-Api-Key": "for public.example only"})
    assert (response.body, response.url) == (b"from the cdn", "https://cdn.example/file")


async def test_a_redirect_to_another_host_does_not_carry_the_headers_along(server: Replay, make_web: MakeWeb) -> None:
    async with Replay() as other:
        base_urls = server.standing_in_for("public.example") | other.standing_in_for("cdn.example")
        server.tell(PATH, b"", status=302, headers={"Location": "https://cdn.example/file"})
        other.tell("/cdn.example/file", "from the cdn")
        await make_web(base_urls=base_urls).get(URL, headers={"X-Api-Key": "secret"})
        assert "X-Api-Key" in server.asked[0].headers
        assert "X-Api-Key" not in other.asked[0].headers


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest/", "http://127.0.0.1:9/", "//localhost/x", "file:///etc/passwd", "http://0x7f.1/"],
)
async def test_a_redirect_to_a_private_place_is_refused(server: Replay, web: HttpxWeb, location: str) -> None:
    server.tell(PATH, b"", status=302, headers={"Location": location})
    with pytest.raises(ToolFailed, match=r"not fetched|only http and https"):
        await web.get(URL)


async def test_a_redirect_to_a_name_that_resolves_to_a_private_address_is_refused(
    server: Replay, make_web: MakeWeb
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["10.1.2.3"]

    server.tell(PATH, b"", status=302, headers={"Location": "http://sly.example/"})
    with pytest.raises(ToolFailed, match=r"sly\.example leads to an address that is not public"):
        await make_web(resolve=resolve).get(URL)


async def test_a_redirect_to_nonsense_is_a_failure(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, b"", status=302, headers={"Location": "http://a:b:c/"})
    with pytest.raises(ToolFailed, match=r"public\.example could not be reached"):
        await web.get(URL)


async def test_redirects_in_a_circle_end(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, b"", status=302, headers={"Location": PATH})
    with pytest.raises(ToolFailed, match="redirects more than 5 times"):
        await web.get(URL)
    assert server.count(PATH) == 6


async def test_nothing_is_kept_unasked(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, "x")
    await web.get(URL)
    await web.get(URL)
    assert server.count(PATH) == 2


async def test_a_fresh_answer_is_served_from_memory(server: Replay, web: HttpxWeb, clock: StoppedClock) -> None:
    server.tell(PATH, "x")
    first = await web.get(URL, params={"q": "1"}, fresh=600)
    assert await web.get(f"{URL}?q=1", fresh=600) is first
    await web.get(URL, params={"q": "2"}, fresh=600)
    await web.get(URL, params={"q": "1"}, headers={"X-Key": "other"}, fresh=600)
    assert server.count(PATH) == 3
    clock.time += 600
    await web.get(URL, params={"q": "1"}, fresh=600)
    assert server.count(PATH) == 4


async def test_a_crowd_asking_the_same_is_one_request(server: Replay, web: HttpxWeb) -> None:
    gate = asyncio.Event()
    server.tell(PATH, "x", gate=gate)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tasks = [group.create_task(web.get(URL, fresh=600)) for _ in range(10)]
        await server.arrived.wait()
        gate.set()
    assert {task.result().body for task in tasks} == {b"x"}
    assert server.count(PATH) == 1


async def test_cookies_are_not_remembered(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, "x", headers={"Set-Cookie": "session=1"})
    await web.get(URL)
    await web.get(URL)
    assert "Cookie" not in server.asked[1].headers


async def test_a_closed_web_opens_again_when_needed(server: Replay, web: HttpxWeb) -> None:
    server.tell(PATH, "x")
    await web.aclose()
    await web.get(URL)
    await web.aclose()
    assert (await web.get(URL)).status == 200


# --- urls that others name ------------------------------------------------------------------------


async def test_what_stands_in_for_a_host_is_reached_by_foreign_urls_under_that_name_only(
    server: Replay, make_web: MakeWeb
) -> None:
    web = make_web(foreign=True)
    server.tell(PATH, b"", status=302, headers={"Location": "/public.example/elsewhere"})
    server.tell("/public.example/elsewhere", "there")
    assert (await web.get(URL)).body == b"there"
    async with Replay() as other:
        both = server.standing_in_for("public.example") | other.standing_in_for("evil.example")
        web = make_web(base_urls=both, foreign=True)
        other.tell("/evil.example/", b"", status=302, headers={"Location": server.url("/public.example/elsewhere")})
        for url in ("http://evil.example/", server.url("/public.example/elsewhere")):
            with pytest.raises(ToolFailed, match=r"127\.0\.0\.1 is not a public address"):
                await web.get(url)
    assert server.count("/public.example/elsewhere") == 1
    assert (await make_web().get(server.url("/public.example/elsewhere"))).body == b"there", "our own may name it"


@pytest.mark.parametrize("url", ["https://public.example:8443/data", "https://me@public.example/data"])
async def test_a_foreign_url_of_another_port_or_with_a_login_is_refused_also_where_something_stands_in(
    server: Replay, make_web: MakeWeb, url: str
) -> None:
    with pytest.raises(ToolFailed, match="it names"):
        await make_web(foreign=True).get(url)
    assert server.asked == []
    server.tell(PATH, "x")
    assert (await make_web().get(url)).body == b"x"


async def test_a_server_that_falls_silent_is_given_up_before_one_that_goes_on(make_web: MakeWeb) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        limits = FetchLimits(request_seconds=60, total_seconds=60, silent_seconds=0.1)
        web = make_web(base_urls={"public.example": f"http://127.0.0.1:{port}"}, limits=limits)
        with pytest.raises(ToolFailed, match=r"public\.example did not answer within 0\.1 s"):
            await web.get(URL)
        await web.aclose()


# --- posts ----------------------------------------------------------------------------------------


async def test_a_post_sends_json_and_gives_any_status(server: Replay, web: HttpxWeb) -> None:
    server.tell("/public.example/ask", {"code": 1}, status=402)
    response = await web.post("http://public.example/ask", json={"q": "霜降"}, headers={"Authorization": "Bearer k"})
    assert (response.status, response.json()) == (402, {"code": 1})
    (asked,) = server.asked
    assert asked.json() == {"q": "霜降"}
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["Authorization"] == "Bearer k"


async def test_a_post_follows_no_redirect(server: Replay, web: HttpxWeb) -> None:
    server.tell("/public.example/ask", "", status=307, headers={"Location": "http://public.example/other"})
    assert (await web.post("http://public.example/ask", json={})).status == 307
    assert len(server.asked) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://10.0.0.1/", "http://localhost/", "ftp://public.example/"])
async def test_a_post_reaches_nothing_of_our_own_surroundings(url: str, server: Replay, web: HttpxWeb) -> None:
    with pytest.raises(ToolFailed):
        await web.post(url, json={})
    assert server.asked == []
