"""Why something cannot be had: what is told of it depends on that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from adapters.media.attachments import ReceivedFiles
from bot.core.ports import KeptFile
from frostagent.types.errors import Lack, MediaError
from tests.adapters.fetching.replay import Replay, StoppedClock

HOST = "multimedia.nt.qq.com.cn"
LIMIT = 1000


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Replay]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with Replay() as server:
        yield server


@pytest.fixture
async def received(server: Replay) -> AsyncIterator[ReceivedFiles]:
    limits = FetchLimits(body_bytes=2 * LIMIT)
    web = HttpxWeb(clock=StoppedClock(), user_agent="test", base_urls=server.standing_in_for(HOST), limits=limits)
    try:
        yield ReceivedFiles(web, max_bytes=LIMIT, fetching=0.5)
    finally:
        await web.aclose()


async def test_why_something_cannot_be_had_is_told_apart(server: Replay, received: ReceivedFiles) -> None:
    server.tell(f"/{HOST}/old", '{"retcode":-5503007}', status=400)
    server.tell(f"/{HOST}/broken", "", status=500)
    server.tell(f"/{HOST}/large", "x" * (LIMIT + 1))
    server.tell(f"/{HOST}/slow", "x", gate=asyncio.Event())
    for name, lack in {
        "old": Lack.EXPIRED,
        "gone": Lack.EXPIRED,
        "broken": Lack.OUT_OF_REACH,
        "large": Lack.TOO_LARGE,
        "slow": Lack.OUT_OF_REACH,
    }.items():
        with pytest.raises(MediaError) as caught:
            await received.fetch_url(f"https://{HOST}/{name}")
        assert (name, caught.value.lack) == (name, lack)
    with pytest.raises(MediaError) as caught:
        received.check(LIMIT + 1)
    assert caught.value.lack is Lack.TOO_LARGE


async def test_what_a_server_keeps_is_not_fetched_by_the_url_that_failed(received: ReceivedFiles) -> None:
    with pytest.raises(MediaError) as caught:
        await received.fetch(KeptFile(url=f"https://{HOST}/a"), tried=f"https://{HOST}/a")
    assert caught.value.lack is Lack.OUT_OF_REACH
