"""A job that is cancelled, moved or ended while the bot waits for something on its account."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from adapters.simulator.wire import mention, text
from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnanswered
from bot.core.jobs import Job, JobChanged, JobKind, JobMade, JobState
from bot.core.journal import MessageErased
from bot.core.ports import WebResponse
from bot.jobs.feeds import FeedNotes
from bot.jobs.scheduler import Scheduler
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.script import FOLDER, read_scenario
from tests.e2e.scenarios.stage import GROUP, Stage

MAKER = 20002
WHERE = Conversation(10001, "group", GROUP)
TASK = FOLDER / "1067-a-task.yaml"
NEWS = b'{"version": "https://jsonfeed.org/version/1.1", "title": "N", "items": [{"id": "1", "title": "R:1"}]}'


class Gate:
    """Stands in for a part of the service: once it is shut, what is asked of it comes only when it opens."""

    def __init__(self, part: Any, *slow: str) -> None:
        self._part, self._slow = part, slow
        self._open = asyncio.Event()
        self._open.set()
        self.shut, self.open = self._open.clear, self._open.set

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._part, name)
        if name not in self._slow:
            return real

        async def late(*args: Any, **more: Any) -> Any:
            try:
                return await real(*args, **more)
            finally:
                await self._open.wait()

        return late


class Failing:
    """A part of the service of which one call fails, once."""

    def __init__(self, part: Any, name: str, error: Exception) -> None:
        self._part, self._name = part, name
        self._errors = [error]

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._part, name)
        if name != self._name:
            return real

        async def attempt(*args: Any, **more: Any) -> Any:
            if self._errors:
                raise self._errors.pop()
            return await real(*args, **more)

        return attempt


class Lane:
    """The lane of the group, which begins nothing while it is held."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._lanes = scheduler._lanes

    def shut(self) -> None:
        self._lanes.hold(WHERE)

    def open(self) -> None:
        self._lanes.release(WHERE)


class Feeds:
    """The web, with one feed in it."""

    async def get(self, _: str, **__: Any) -> Any:
        return WebResponse(200, NEWS, "https://a.test/feed")


def gate(scheduler: Scheduler, part: str, *slow: str) -> Gate:
    shut = Gate(getattr(scheduler, part), *slow)
    setattr(scheduler, part, shut)
    return shut


def role(scheduler: Scheduler) -> Gate:
    return gate(scheduler, "_transport", "get_member")


def feed(scheduler: Scheduler) -> Gate:
    scheduler._web = Feeds()  # type: ignore[assignment]  # a stand-in
    return gate(scheduler, "_web", "get")


def reading(scheduler: Scheduler) -> Gate:
    return gate(scheduler, "_jobs", "due")


def failing(scheduler: Scheduler) -> Gate:
    """The look-up of the role fails in the end."""
    scheduler._transport = Failing(scheduler._transport, "get_member", ActionUnanswered("cut"))
    return gate(scheduler, "_transport", "get_member")


def breaking(scheduler: Scheduler) -> Gate:
    """The reader of the feed breaks once in the end."""
    scheduler._web = Failing(Feeds(), "get", RuntimeError("broken"))
    return gate(scheduler, "_web", "get")


def fate(scheduler: Scheduler) -> Gate:
    return gate(scheduler, "_jobs", "fate")


async def cancel(stage: Stage, job: Job) -> None:
    assert stage._service is not None
    assert await stage._service.app.job_book.cancel_in(WHERE, job.number)


async def move(stage: Stage, job: Job) -> None:
    """As the job book does."""
    assert stage._service is not None
    later = replace(job, state=JobState.WAITING, due=job.due + 7200, wake=job.due + 7200)
    assert await stage._service.app.store.commit(JobChanged(later))


async def move_and_mute(stage: Stage, job: Job) -> None:
    await move(stage, job)
    await stage.simulator.incidents.mute(600)


async def leave(stage: Stage, job: Job) -> None:
    assert stage._service is not None
    stage._service.app.scheduler.left(WHERE, job.maker, at=stage.clock.now())


async def recall(stage: Stage, _: Job) -> None:
    assert stage._service is not None
    stage._service.app.store.put(MessageErased(WHERE, "77"))


async def forget(stage: Stage, job: Job) -> None:
    await stage.simulator.say([mention(10001), text(" /忘记 我")], user_id=job.maker)


def play(
    folder: Path,
    kind: JobKind,
    shut: Callable[[Scheduler], Any],
    change: Callable[[Stage, Job], Awaitable[None]],
) -> tuple[int, int]:
    """How often a job was said, or asked, up to an hour after its moment, and up to three hours."""

    async def live(loop: ScriptedLoop) -> tuple[int, int]:
        stage = Stage(read_scenario(TASK, DOINGS), loop=loop, folder=folder)
        async with stage:
            assert stage._service is not None
            app, now = stage._service.app, stage.clock.now()
            door = shut(app.scheduler)
            is_feed = kind is JobKind.FEED
            job = Job(
                number=1,
                where=WHERE,
                maker=MAKER,
                kind=kind,
                words="R:1",
                made=now,
                due=now + 60,
                wake=now + 60,
                message_id="77",
                rule="every 300" if is_feed else "",
                state=JobState.FIRING if shut is fate else JobState.WAITING,
                claim="erased" if shut is fate else "",
                notes=codec.write(FeedNotes("https://a.test/feed")) if is_feed else "",
            )
            assert await app.store.commit(JobMade(job))
            app.scheduler.look()
            await loop.pass_time(1)
            door.shut()
            await loop.pass_time(69)
            await change(stage, job)
            await loop.pass_time(5)
            door.open()

            def said() -> int:
                times = sum("R:1" in text_of(message) for message in stage.simulator.delivered)
                return times + len(stage.model.requests)

            await loop.pass_time(3600)
            first = said()
            await loop.pass_time(7200)
            return first, said()

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(live(loop))


WAITS = [
    pytest.param(JobKind.TEXT, reading, id="the journal is read"),
    pytest.param(JobKind.RUN, role, id="its maker's role is looked up"),
    pytest.param(JobKind.RUN, Lane, id="its question waits in the lane"),
    pytest.param(JobKind.FEED, feed, id="its feed is read"),
    pytest.param(JobKind.RUN, failing, id="the look-up of its maker's role fails"),
    pytest.param(JobKind.FEED, breaking, id="the reader of its feed breaks"),
    pytest.param(JobKind.TEXT, fate, id="it is looked up what became of it"),
]


@pytest.mark.parametrize(("kind", "shut"), WAITS)
@pytest.mark.parametrize("change", [cancel, leave, recall, forget])
def test_a_job_that_ended_meanwhile_is_not_said(
    tmp_path: Path, kind: JobKind, shut: Callable[[Scheduler], Any], change: Callable[[Stage, Job], Awaitable[None]]
) -> None:
    assert play(tmp_path, kind, shut, change) == (0, 0)


@pytest.mark.parametrize(("kind", "shut"), WAITS)
def test_a_job_that_was_moved_meanwhile_is_said_at_its_new_moment_only(
    tmp_path: Path, kind: JobKind, shut: Callable[[Scheduler], Any]
) -> None:
    first, in_all = play(tmp_path, kind, shut, move)
    assert first == 0
    assert in_all >= 1


def test_a_moved_one_whose_question_is_not_asked_keeps_its_new_moment(tmp_path: Path) -> None:
    first, in_all = play(tmp_path, JobKind.RUN, Lane, move_and_mute)
    assert first == 0
    assert in_all >= 1


def test_what_was_said_while_the_book_was_read_is_not_told_as_cancelled(tmp_path: Path) -> None:
    """Nor is its claim overwritten by what was read before."""

    async def live(loop: ScriptedLoop) -> tuple[bool, list[str]]:
        stage = Stage(read_scenario(TASK, DOINGS), loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app, now = stage._service.app, stage.clock.now()
            job = Job(
                number=1,
                where=WHERE,
                maker=MAKER,
                kind=JobKind.TEXT,
                words="R:1",
                made=now,
                due=now + 60,
                wake=now + 60,
            )
            assert await app.store.commit(JobMade(job))
            app.scheduler.look()
            await loop.pass_time(55)
            book: Any = app.job_book
            door = Gate(book._jobs, "listed")
            book._jobs = door
            door.shut()
            async with asyncio.TaskGroup() as group:
                cancelling = group.create_task(book.cancel_in(WHERE, 1))
                await loop.pass_time(10)
                door.open()
                await loop.pass_time(1)
            return cancelling.result(), [text_of(one).strip() for one in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(live(loop)) == (False, ["⏰ 提醒：R:1"])


def test_a_reminder_whose_row_could_not_be_promised_is_not_said_later(tmp_path: Path) -> None:
    """Its maker was told that it was not set, and may have set it again."""

    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            book: Any = stage._service.app.job_book
            store = book._store

            class Slow:
                """A journal that takes a reminder and cannot promise it in time."""

                def __getattr__(self, name: str) -> Any:
                    return getattr(store, name)

                async def commit(self, *entries: Any) -> bool:
                    await store.commit(*entries)
                    return not any(isinstance(one, JobMade) for one in entries)

            book._store = Slow()
            await stage.simulator.say([mention(10001), text(" 三点提醒我交作业")], user_id=MAKER)
            await loop.pass_time(7200)
            return [text_of(one) for one in stage.simulator.delivered if "⏰" in text_of(one)]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(live(loop)) == []
