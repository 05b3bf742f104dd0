from __future__ import annotations

import asyncio

import pytest

from adapters.console import trying
from bot.cli.playing import Play
from tests.adapters.console.samples import HOSTILE
from tests.adapters.console.visiting import SAME, visiting

ENGLISH = {"Accept-Language": "en"}


async def test_somebody_talks_in_the_simulated_group_and_reads_the_answer() -> None:
    play, said = Play(("user1", "user2"), ("timeout",)), list[str]()

    async def say(line: str) -> None:
        said.append(line)
        play.note("bot", HOSTILE)

    play.connect(say)
    async with visiting(trying=play) as place:
        await place.log_in()
        form = {"form": await place.form()}
        for fields, status in (
            ({"as": "user2", "text": "hello", "call": "1"}, 303),
            ({"as": "user1", "text": "!drop 9"}, 303),
            ({"as": "user1", "text": "", "fault": "timeout"}, 303),
            ({"as": "user1", "text": "", "fault": "drop"}, 303),
            ({"as": "bot", "text": "forged"}, 400),
        ):
            assert (await place.ask("POST", "/try", data=form | fields, headers=SAME))[0] == status
        assert said == ["user2: @bot hello", "user1: drop 9", "!timeout"]
        _, text, _ = await place.ask("GET", "/try?as=user2", headers=ENGLISH)
        assert "<option selected>user2</option>" in text
        assert "alert(1)" in text
        assert "<script>" not in text


async def test_a_page_does_not_wait_for_a_slow_answer_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "PATIENCE", 0.01)
    play, cut = Play(("user1",), ()), list[bool]()

    async def say(_: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cut.append(True)

    play.connect(say)
    async with visiting(trying=play) as place:
        await place.log_in()
        fields = {"form": await place.form(), "as": "user1", "text": "a story"}
        assert (await place.ask("POST", "/try", data=fields, headers=SAME))[0] == 303
        assert cut


async def test_where_nothing_is_tried_there_is_no_such_page() -> None:
    async with visiting() as place:
        await place.log_in()
        assert (await place.ask("GET", "/try"))[0] == 404
        assert "/try" not in (await place.ask("GET", "/access"))[1]
