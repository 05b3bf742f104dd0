"""A server and a web that reaches it under the name public.example."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from adapters.fetching.transport import Resolve, resolve_name
from tests.adapters.fetching.replay import Replay, StoppedClock


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def server() -> AsyncIterator[Replay]:
    async with Replay() as server:
        yield server


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
async def make_web(server: Replay, clock: StoppedClock) -> AsyncIterator[Callable[..., HttpxWeb]]:
    """Makes a web whose public.example is the server; closes every one it made."""
    async with AsyncExitStack() as stack:

        def make(
            *,
            base_urls: Mapping[str, str] | None = None,
            limits: FetchLimits | None = None,
            resolve: Resolve = resolve_name,
            foreign: bool = False,
        ) -> HttpxWeb:
            web = HttpxWeb(
                clock=clock,
                user_agent="FrostAgent/test (+tests)",
                base_urls=base_urls or server.standing_in_for("public.example"),
                limits=limits,
                resolve=resolve,
                foreign=foreign,
            )
            stack.push_async_callback(web.aclose)
            return web

        yield make


@pytest.fixture
def web(make_web: Callable[..., HttpxWeb]) -> HttpxWeb:
    return make_web()
