"""The way a request leaves: checked addresses, pinned connections, the environment's proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import httpcore
import httpx
import pytest

from adapters.fetching.transport import CheckedTransport, SocketOption, endpoint_of, proxy_for
from frostagent.types.errors import ToolFailed
from tests.adapters.fetching.replay import Replay


class Wires(httpcore.AsyncNetworkBackend):
    """Notes where a connection was wanted, and makes it to the test's server; `dead` addresses refuse."""

    def __init__(self, port: int, *, dead: frozenset[str] = frozenset()) -> None:
        self.port, self.dead = port, dead
        self.wanted: list[str] = []
        self._real = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.wanted.append(host)
        if host in self.dead:
            raise httpcore.ConnectError("refused")
        return await self._real.connect_tcp("127.0.0.1", self.port, timeout)


class Names:
    """A resolver with answers of its own; the last one repeats."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.times = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.times += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def get(transport: CheckedTransport, url: str) -> httpx.Response:
    async with asyncio.timeout(30), httpx.AsyncClient(transport=transport) as client:
        return await client.get(url)


async def test_the_connection_goes_to_the_address_that_was_checked(server: Replay) -> None:
    server.tell("/page", "hello")
    wires, names = Wires(server.port), Names(["93.184.216.34"], ["127.0.0.1"])
    transport = CheckedTransport(trusted=frozenset(), resolve=names, network=wires)
    response = await get(transport, "http://public.example/page")
    assert response.text == "hello"
    assert wires.wanted == ["93.184.216.34"]
    assert names.times == 1
    assert server.asked[0].headers["Host"] == "public.example"


async def test_a_name_with_a_private_address_is_not_connected_to(server: Replay) -> None:
    wires = Wires(server.port)
    names = Names(["93.184.216.34", "192.168.1.1"])
    transport = CheckedTransport(trusted=frozenset(), resolve=names, network=wires)
    with pytest.raises(ToolFailed, match=r"public\.example leads to an address that is not public"):
        await get(transport, "http://public.example/page")
    assert wires.wanted == []


async def test_the_next_address_is_tried_when_one_is_dead(server: Replay) -> None:
    server.tell("/page", "hello")
    wires = Wires(server.port, dead=frozenset({"2606:4700::1"}))
    transport = CheckedTransport(
        trusted=frozenset(), resolve=Names(["2606:4700::1", "93.184.216.34"]), network=wires
    )  # fmt: skip
    assert (await get(transport, "http://public.example/page")).text == "hello"
    assert wires.wanted == ["2606:4700::1", "93.184.216.34"]


async def test_a_name_whose_addresses_are_all_dead_is_unreachable(server: Replay) -> None:
    wires = Wires(server.port, dead=frozenset({"93.184.216.34"}))
    transport = CheckedTransport(trusted=frozenset(), resolve=Names(["93.184.216.34"]), network=wires)
    with pytest.raises(httpx.ConnectError):
        await get(transport, "http://public.example/page")


async def test_a_name_without_addresses_is_unreachable(server: Replay) -> None:
    transport = CheckedTransport(trusted=frozenset(), resolve=Names([]), network=Wires(server.port))
    with pytest.raises(httpx.ConnectError):
        await get(transport, "http://public.example/page")


async def test_a_name_that_cannot_be_resolved_is_unreachable() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(httpx.ConnectError, match="could not be resolved"):
        await get(CheckedTransport(trusted=frozenset(), resolve=resolve), "http://public.example/page")


async def test_a_trusted_endpoint_is_reached_where_it_is(server: Replay) -> None:
    server.tell("/page", "hello")
    transport = CheckedTransport(trusted=frozenset({("127.0.0.1", server.port)}))
    assert (await get(transport, server.url("/page"))).text == "hello"


async def test_trust_is_for_one_port_only(server: Replay) -> None:
    transport = CheckedTransport(trusted=frozenset({("127.0.0.1", server.port + 1)}))
    with pytest.raises(ToolFailed, match="not a public address"):
        await get(transport, server.url("/page"))


async def test_the_proxy_of_the_environment_is_used(server: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"127.0.0.1:{server.port}")
    server.tell("/page", "through the proxy")
    names = Names(["10.0.0.1"])
    transport = CheckedTransport(trusted=frozenset(), resolve=names)
    assert (await get(transport, "http://public.example/page")).text == "through the proxy"
    assert names.times == 0, "a proxy resolves names itself"


async def test_a_proxy_opens_no_way_to_private_addresses(server: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url())
    with pytest.raises(ToolFailed, match="not a public address"):
        await get(CheckedTransport(trusted=frozenset()), "http://169.254.169.254/latest/meta-data/")
    assert server.asked == []


async def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "quic://127.0.0.1:1")
    with pytest.raises(ToolFailed, match="proxy set in the environment cannot be used"):
        await get(CheckedTransport(trusted=frozenset()), "http://public.example/")


def test_hosts_may_be_excepted_from_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://proxy.example:7890")
    monkeypatch.setenv("no_proxy", "mojang.com")
    assert proxy_for("https", "piston-meta.mojang.com") == ""
    assert proxy_for("https", "api.open-meteo.com") == "http://proxy.example:7890"


def test_an_endpoint_has_the_port_of_its_scheme() -> None:
    assert endpoint_of(httpx.URL("https://a.example/x")) == ("a.example", 443)
    assert endpoint_of(httpx.URL("http://[::1]:8080/x")) == ("::1", 8080)


# --- urls that others name ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://public.example:8080/", "https://public.example:8443/", "http://public.example:22/",
        "http://me@public.example/", "http://me:secret@public.example/", "http://127.0.0.1.nip.io/",
    ],
)  # fmt: skip
async def test_of_foreign_urls_only_plain_ones_of_the_web_are_asked(server: Replay, url: str) -> None:
    wires, names = Wires(server.port), Names(["93.184.216.34"])
    with pytest.raises(ToolFailed):
        await get(CheckedTransport(trusted=frozenset(), resolve=names, network=wires, foreign=True), url)
    assert wires.wanted == []
    ours = CheckedTransport(trusted=frozenset(), resolve=names, network=wires)
    assert (await get(ours, url.replace("https", "http"))).status_code == 404, "our own may"


async def test_the_usual_ports_are_asked_also_where_they_are_named(server: Replay) -> None:
    server.tell("/page", "hello")
    wires = Wires(server.port)
    transport = CheckedTransport(trusted=frozenset(), resolve=Names(["93.184.216.34"]), network=wires, foreign=True)
    for url in ("http://public.example/page", "http://public.example:80/page", "http://public.example:443/page"):
        assert (await get(transport, url)).text == "hello"


async def test_a_foreign_name_that_is_private_here_does_not_go_to_the_proxy_either(
    server: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url())
    transport = CheckedTransport(trusted=frozenset(), resolve=Names(["10.0.0.1"]), foreign=True)
    with pytest.raises(ToolFailed, match=r"sly\.example leads to an address that is not public"):
        await get(transport, "http://sly.example/page")
    assert server.asked == []


@pytest.mark.parametrize("problem", ["unknown", "slow"])
async def test_a_foreign_name_that_means_nothing_here_goes_to_the_proxy(
    server: Replay, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        if problem == "slow":
            await asyncio.Event().wait()
        raise OSError("no such name")

    monkeypatch.setenv("http_proxy", server.url())
    monkeypatch.setattr("adapters.fetching.transport.LOOK_UP", 0.05)
    server.tell("/page", "through the proxy")
    transport = CheckedTransport(trusted=frozenset(), resolve=resolve, foreign=True)
    assert (await get(transport, "http://public.example/page")).text == "through the proxy"
