"""Each missed reminder is reported once, whatever the journal can do at that moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.core.conversation import Conversation
from bot.core.jobs import Job, JobKind, JobMade
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.script import FOLDER, read_scenario
from tests.e2e.scenarios.stage import GROUP, Stage

WHERE = Conversation(10001, "group", GROUP)
HOUR = 3600.0
TIMES = 50


class Failing:
    """A part of the service that fails as often as it is told to. `asked` is how often it was asked."""

    def __init__(self, part: Any, name: str, failure: object) -> None:
        self._part, self._name, self._failure = part, name, failure
        self.left = self.asked = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._part, name)
        if name != self._name:
            return real

        async def attempt(*args: Any, **more: Any) -> Any:
            self.asked += 1
            if self.left:
                self.left -= 1
                return self._failure
            return await real(*args, **more)

        return attempt


def missed(number: int, now: float, words: str = "") -> Job:
    """A reminder of yesterday."""
    moments = {"made": now - 40 * HOUR, "due": now - 20 * HOUR, "wake": now - 20 * HOUR}
    return Job(number=number, where=WHERE, maker=20002, kind=JobKind.TEXT, words=words or f"R:{number}.", **moments)  # type: ignore[arg-type]  # all are moments


def reports(folder: Path, count: int, part: str = "_jobs", name: str = "listed", failure: object = None) -> list[str]:
    """What is said of so many missed reminders, with this part failing TIMES times at first."""

    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=folder)
        async with stage:
            assert stage._service is not None
            app, now = stage._service.app, stage.clock.now()
            failing = Failing(getattr(app.scheduler, part), name, failure)
            setattr(app.scheduler, part, failing)
            assert await app.store.commit(*(JobMade(missed(number, now)) for number in range(1, count + 1)))
            await loop.pass_time(1)
            failing.left = TIMES
            failing.asked = 0
            app.scheduler.look()
            await loop.pass_time(60)
            assert failing.asked <= TIMES / 2 * count  # it is not asked at once again
            await loop.pass_time(2 * HOUR)
        return [text_of(message) for message in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(live(loop))


@pytest.mark.parametrize(("part", "name", "failure"), [("_jobs", "listed", None), ("_store", "commit", False)])
def test_a_missed_one_is_reported_once_the_journal_can_be_used(
    tmp_path: Path, part: str, name: str, failure: object
) -> None:
    said = reports(tmp_path, 1, part, name, failure)
    assert [text.count("R:1.") for text in said] == [1]


def test_one_that_is_cancelled_before_the_report_is_not_named(tmp_path: Path) -> None:
    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app, now = stage._service.app, stage.clock.now()
            listed = app.scheduler._jobs.listed

            async def late(*args: Any, **more: Any) -> Any:
                found = await listed(*args, **more)
                assert await app.job_book.cancel_in(WHERE, 2)
                return found

            scheduler: Any = app.scheduler
            scheduler._jobs = Failing(app.scheduler._jobs, "nothing", None)
            scheduler._jobs.listed = late
            assert await app.store.commit(*(JobMade(missed(number, now)) for number in (1, 2, 3)))
            app.scheduler.look()
            await loop.pass_time(HOUR)
        return [text_of(message) for message in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        said = runner.run(live(loop))
    assert [sum(f"R:{number}." in text for text in said) for number in (1, 2, 3)] == [1, 0, 1]


def test_of_many_missed_ones_each_is_named_once(tmp_path: Path) -> None:
    said = reports(tmp_path, 23, "_jobs", "nothing")
    assert [sum(f"R:{number}." in text for text in said) for number in range(1, 24)] == [1] * 23
    assert len(said) == 3


def test_a_missed_one_of_many_lines_and_words_is_named_in_one_line(tmp_path: Path) -> None:
    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app, now = stage._service.app, stage.clock.now()
            words = "[CQ:at,qq=all]\n· 周六 别的（J9）\n" + "长" * 60
            assert await app.store.commit(JobMade(missed(1, now, words)))
            app.scheduler.look()
            await loop.pass_time(HOUR)
        return [text_of(message) for message in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        (line,) = runner.run(live(loop))
    heading, told = line.strip().splitlines()
    assert heading == "⏰ 没能按时做到："
    assert told.endswith(f"[CQ:at,qq=all] · 周六 别的（J9） {'长' * 33}…（J1）")
