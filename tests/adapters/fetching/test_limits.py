"""What one fetch may cost, against a real server."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from frostagent.types.errors import ToolFailed
from tests.adapters.fetching.replay import Replay

URL = "https://public.example/data"
PATH = "/public.example/data"

MakeWeb = Callable[..., HttpxWeb]


async def test_a_body_that_is_too_large_is_cut_off(server: Replay, make_web: MakeWeb) -> None:
    web = make_web(limits=FetchLimits(body_bytes=1000))
    server.tell(PATH, b"x" * 1000)
    assert len((await web.get(URL)).body) == 1000
    server.tell(PATH, b"x" * 1001)
    with pytest.raises(ToolFailed, match="sent more than 1,000 bytes"):
        await web.get(URL)


async def test_a_body_is_measured_as_it_unfolds(server: Replay, make_web: MakeWeb) -> None:
    web = make_web(limits=FetchLimits(body_bytes=1000))
    server.tell(PATH, gzip.compress(b"0" * 100_000), headers={"Content-Encoding": "gzip"})
    with pytest.raises(ToolFailed, match="sent more than"):
        await web.get(URL)


async def test_a_server_that_is_too_slow_is_given_up(server: Replay, make_web: MakeWeb) -> None:
    web = make_web(limits=FetchLimits(request_seconds=0.05))
    server.tell(PATH, b"", gate=asyncio.Event())
    with pytest.raises(ToolFailed, match=r"public\.example did not answer within 0\.05 s"):
        await web.get(URL)


async def test_all_hops_together_have_a_limit(server: Replay, make_web: MakeWeb) -> None:
    web = make_web(limits=FetchLimits(total_seconds=0.05))
    server.tell(PATH, b"", gate=asyncio.Event())
    with pytest.raises(ToolFailed, match=r"public\.example took longer than 0\.05 s in all"):
        await web.get(URL)
