"""The limits of jobs, on both sides of each."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from adapters.simulator.wire import mention, text
from bot.core.conversation import Conversation
from bot.core.jobs import Job, JobKind, JobMade
from bot.core.language import Language
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.script import FOLDER, read_scenario
from tests.e2e.scenarios.stage import GROUP, Stage

WHERE = Conversation(10001, "group", GROUP)
ELSEWHERE = Conversation(10001, "group", 5252)
MAKER = 20002
HOUR = 3600.0

T = TypeVar("T")


def job(number: int, due: float, *, maker: int = MAKER, where: Conversation = WHERE) -> JobMade:
    return JobMade(
        Job(
            number=number,
            where=where,
            maker=maker,
            kind=JobKind.TEXT,
            words=f"R:{number}.",
            made=due - 24 * HOUR,
            due=due,
            wake=due,
        )
    )


def play(folder: Path, act: Callable[[Any, Stage, ScriptedLoop], Awaitable[T]]) -> T:
    async def live(loop: ScriptedLoop) -> T:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=folder)
        async with stage:
            assert stage._service is not None
            return await act(stage._service.app, stage, loop)

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(live(loop))


def said(stage: Stage) -> list[str]:
    return [text_of(message).strip() for message in stage.simulator.delivered]


@pytest.mark.parametrize(("late", "words"), [(12 * HOUR, "⏰ 提醒：R:1.（迟到 720 分钟）"), (12 * HOUR + 1, "⏰ 没能")])
def test_a_reminder_is_said_up_to_twelve_hours_late(tmp_path: Path, late: float, words: str) -> None:
    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> list[str]:
        assert await app.store.commit(job(1, stage.clock.now() - late))
        app.scheduler.look()
        await loop.pass_time(30)
        return said(stage)

    (line,) = play(tmp_path, act)
    assert line.startswith(words)


@pytest.mark.parametrize(("muted", "words"), [(3595, "⏰ 提醒：R:1.（迟到 60 分钟）"), (3700, "⏰ 没能")])
def test_a_reminder_is_tried_for_an_hour(tmp_path: Path, muted: float, words: str) -> None:
    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> list[str]:
        await stage.simulator.incidents.mute(int(muted) + 60)
        await loop.pass_time(1)
        assert await app.store.commit(job(1, stage.clock.now() + 59))
        app.scheduler.look()
        await loop.pass_time(2 * HOUR)
        return said(stage)

    (line,) = play(tmp_path, act)
    assert line.startswith(words)


@pytest.mark.parametrize(("missed", "count"), [(30 * 24 * HOUR, 1), (30 * 24 * HOUR + 1, 0)])
def test_a_miss_of_a_month_ago_is_not_reported(tmp_path: Path, missed: float, count: int) -> None:
    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> list[str]:
        assert await app.store.commit(job(1, stage.clock.now() - missed))
        app.scheduler.look()
        await loop.pass_time(HOUR)
        return said(stage)

    assert len(play(tmp_path, act)) == count


@pytest.mark.parametrize(
    ("theirs", "others", "refusal"),
    [
        (19, 30, ""),
        (20, 0, "they have 20 reminders already"),
        (0, 49, ""),
        (0, 50, "there are 50 reminders here already"),
    ],
)
def test_a_person_and_a_group_have_only_so_many(tmp_path: Path, theirs: int, others: int, refusal: str) -> None:
    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> str:
        later = stage.clock.now() + 24 * HOUR
        made = [
            job(number, later, maker=MAKER if number <= theirs else 30_000) for number in range(1, theirs + others + 1)
        ]
        elsewhere = [job(number, later, maker=30_001, where=ELSEWHERE) for number in range(101, 151)]
        assert await app.store.commit(*made, *elsewhere)
        await stage.simulator.say([mention(10001), text(" 三点提醒我交作业")], user_id=MAKER)
        await loop.pass_time(5)
        return str(stage.model.requests[-1].messages[-1])

    told = play(tmp_path, act)
    assert refusal in told if refusal else "已设好 J" in told


def test_what_has_ended_takes_no_place(tmp_path: Path) -> None:
    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> str:
        now = stage.clock.now()
        made = [job(number, now + number) for number in range(1, 21)]
        assert await app.store.commit(*made)
        app.scheduler.look()
        await loop.pass_time(300)
        assert len(stage.simulator.delivered) == 20
        await stage.simulator.say([mention(10001), text(" 三点提醒我交作业")], user_id=MAKER)
        await loop.pass_time(5)
        return str(stage.model.requests[-1].messages[-1])

    assert "已设好 J21" in play(tmp_path, act)


@pytest.mark.parametrize(("column", "value"), [("kind", "dance"), ("conversation", "here")])
def test_reminders_are_said_beside_a_job_that_cannot_be_read(tmp_path: Path, column: str, value: str) -> None:
    """And the journal is not read over and over for it."""

    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> tuple[list[str], int]:
        now, reads = stage.clock.now(), 0
        assert await app.store.commit(job(1, now + 30), job(2, now + 60))
        await loop.pass_time(5)
        with closing(sqlite3.connect(tmp_path / "bot.db")) as connection:
            connection.execute(f"UPDATE jobs SET {column} = ? WHERE number = 1", (value,))  # a name of ours
            connection.commit()
        due = app.scheduler._jobs.due

        async def counting(*args: Any) -> Any:
            nonlocal reads
            reads += 1
            return await due(*args)

        app.scheduler._jobs.due = counting
        app.scheduler.look()
        await loop.pass_time(120)
        return said(stage), reads

    lines, reads = play(tmp_path, act)
    assert lines == ["⏰ 提醒：R:2."]
    assert reads < 150


def test_a_held_reminder_keeps_its_hour_after_the_clock_was_set_forward(tmp_path: Path) -> None:
    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> list[str]:
        await stage.simulator.incidents.mute(600)
        await loop.pass_time(1)
        assert await app.store.commit(job(1, stage.clock.now() + 59))
        app.scheduler.look()
        await loop.pass_time(120)
        stage.clock._began += 2 * HOUR
        await loop.pass_time(120)
        await stage.simulator.incidents.mute(0)
        await loop.pass_time(HOUR)
        return said(stage)

    (line,) = play(tmp_path, act)
    assert line.startswith("⏰ 提醒：R:1.（迟到 12")


def test_the_daily_recap_counts_to_no_persons_limit(tmp_path: Path) -> None:
    async def act(app: Any, stage: Stage, loop: ScriptedLoop) -> tuple[bool, list[JobKind]]:
        due = stage.clock.now() + HOUR
        assert await app.store.commit(*(job(number, due, where=ELSEWHERE) for number in range(1, 21)))
        made = await app.job_book.schedule_recap(WHERE, "22:00", Language.CHINESE)
        again = await app.job_book.schedule_recap(WHERE, "22:00", Language.CHINESE)
        here = await app.job_book.visible(WHERE, 0)
        return made and again, [one.kind for one in here or ()]

    assert play(tmp_path, act) == (True, [JobKind.RECAP])
