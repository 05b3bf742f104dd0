from __future__ import annotations

from typing import Any

import pytest

from adapters.console import live
from adapters.console.server import HEADERS
from tests.adapters.console.visiting import Place, visiting
from tests.bot.memory.test_newest import kept_silent
from tests.fakes import until


@pytest.fixture(autouse=True)
def beating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left is noticed soon."""
    monkeypatch.setattr(live, "LOOK", 0.02)


async def events(place: Place, number: int, **more: Any) -> list[str]:
    """The ids and names of so many events."""
    told: list[str] = []
    async with place.session.get(f"http://{place.host}/live", **more) as answer:
        assert answer.status == 200
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        async for line in answer.content:
            if line.startswith((b"id:", b"data:")):
                told.append(line.decode().strip())
            if len(told) == 2 * number:
                return told
    return told


async def test_what_is_new_is_told_and_goes_on_behind_what_a_browser_had() -> None:
    async with visiting() as place:
        await place.log_in()
        for name in "abc":
            place.newest.see(kept_silent(name))
        b, c = ["id: 2", 'data: {"name": "b"}'], ["id: 3", 'data: {"name": "c"}']
        assert await events(place, 2, params={"after": "1"}) == [*b, *c]
        assert await events(place, 1, headers={"Last-Event-ID": "2"}, params={"after": "0"}) == c
        await until(lambda: live.GATHER in place.clock.slept)  # before the next are told


async def test_whoever_leaves_is_dropped_and_so_is_an_ended_login() -> None:
    async with visiting() as place:
        await place.log_in()
        stream = await place.session.get(f"http://{place.host}/live")
        await stream.content.readline()
        place.console.logins.end_all()
        assert b"id:" not in await stream.content.read()  # to its end
        await place.log_in()
        left = await place.session.get(f"http://{place.host}/live")
        await left.content.readline()
        assert place.streams() == 1
        left.close()
        await until(lambda: place.streams() == 0)


@pytest.mark.parametrize("limit", ["MOST", "OF_ONE"])
async def test_only_so_many_pages_look_at_a_time(monkeypatch: Any, limit: str) -> None:
    monkeypatch.setattr(live, limit, 1)
    async with visiting() as place:
        await place.log_in()
        async with place.session.get(f"http://{place.host}/live") as first:
            await first.content.readline()
            assert (await place.ask("GET", "/live"))[0] == 503
