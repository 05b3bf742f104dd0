"""What tests of tools that fetch share: a server on 127.0.0.1, a clock, and the web that leads to the one by the other.

A folder says in a fixture of its own, `hosts`, for which hosts the server stands.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from tests.adapters.fetching.replay import Replay, StoppedClock


@pytest.fixture(autouse=True)
def _no_certificates(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here speaks TLS, and reading the certificates takes each client 0.1 s."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path_factory.getbasetemp()))


@pytest.fixture
async def server() -> AsyncIterator[Replay]:
    async with Replay() as server:
        yield server


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def hosts() -> Iterable[str]:
    """The hosts that the server stands in for."""
    return ()


@pytest.fixture
def patience() -> float:
    """Seconds that a source has; a test of one that hangs gives it less."""
    return 10.0


@pytest.fixture
async def web(server: Replay, clock: StoppedClock, hosts: Iterable[str], patience: float) -> AsyncIterator[HttpxWeb]:
    web = HttpxWeb(
        clock=clock,
        user_agent="FrostAgent/test (+tests)",
        base_urls=server.standing_in_for(*hosts),
        limits=FetchLimits(request_seconds=patience),
    )
    yield web
    await web.aclose()
