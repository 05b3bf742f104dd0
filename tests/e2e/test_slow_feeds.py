"""Feeds whose servers are slow: they hold up no reminder, and what happened meanwhile counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.jobs import Job, JobChanged, JobKind, JobMade
from bot.core.ports import WebResponse
from bot.jobs.feeds import DEAD, FeedNotes
from bot.jobs.scheduler import AT_ONCE
from bot.memory.modes import Mode
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.script import FOLDER, read_scenario
from tests.e2e.scenarios.stage import GROUP, Stage

FEEDS = 600  # more than are read of the journal at once


class Hanging:
    """A web that never answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def get(self, url: str, **_: Any) -> Any:
        self.asked += 1
        await asyncio.get_running_loop().create_future()

    async def post(self, url: str, **_: Any) -> Any:
        raise AssertionError(f"a feed is read, never posted to: {url}")


def test_reminders_and_tasks_come_while_feeds_hang(tmp_path: Path) -> None:
    scenario = read_scenario(FOLDER / "1067-a-task.yaml", DOINGS)
    web = Hanging()

    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(scenario, loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app = stage._service.app
            app.scheduler._web = web
            now, where = stage.clock.now(), Conversation(stage.world.self_id, "group", GROUP)
            notes = codec.write(FeedNotes("https://a.test/feed"))
            jobs = [
                Job(
                    number=number,
                    where=where,
                    maker=20002,
                    kind={FEEDS + 1: JobKind.TEXT, FEEDS + 2: JobKind.RUN}.get(number, JobKind.FEED),
                    words=f"R:{number}",
                    rule="" if number > FEEDS else "every 30",
                    made=now,
                    due=now + 10 + number / 1000,
                    wake=now + 10 + number / 1000,
                    notes="" if number > FEEDS else notes,
                )
                for number in range(1, FEEDS + 3)
            ]
            assert await app.store.commit(*map(JobMade, jobs))
            app.scheduler.look()
            await loop.pass_time(20)
        return [text_of(message).strip() for message in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(live(loop)) == [f"⏰ 提醒：R:{FEEDS + 1}", "好，到时候查。"]
    assert 0 < web.asked < FEEDS


def test_reminders_come_while_hundreds_of_tasks_wait_in_their_lanes(tmp_path: Path) -> None:
    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app, now, account = stage._service.app, stage.clock.now(), stage.world.self_id
            places = [Conversation(account, "private", 30000 + number) for number in range(12)]
            for place in places:
                app.lanes.hold(place)
            tasks = [
                Job(
                    number=number,
                    where=places[number % len(places)],
                    maker=places[number % len(places)].session_id,
                    kind=JobKind.RUN,
                    words="R",
                    made=now,
                    due=now + 10,
                    wake=now + 10,
                )
                for number in range(1, 601)
            ]
            reminder = Job(
                number=601,
                where=Conversation(account, "group", GROUP),
                maker=20002,
                kind=JobKind.TEXT,
                words="R:601",
                made=now,
                due=now + 140,
                wake=now + 140,
            )
            assert await app.store.commit(*map(JobMade, [*tasks, reminder]))
            app.scheduler.look()
            await loop.pass_time(145)
            assert len(app.lanes.at(places[0])) == 50
        return [text_of(message).strip() for message in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(live(loop)) == ["⏰ 提醒：R:601"]


class Slow:
    """A web with one new entry in each feed, which comes when the gate is open."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.gate = asyncio.Event()

    async def get(self, url: str, **_: Any) -> WebResponse:
        self.urls.append(url)
        await self.gate.wait()
        news = f'{{"version": "https://jsonfeed.org/version/1.1", "items": [{{"id": "1", "title": "N:{url}."}}]}}'
        return WebResponse(200, news.encode(), url)


def play(
    tmp_path: Path, count: int, meanwhile: Callable[[Stage], Awaitable[None]] | None = None, **settings: str
) -> list[int]:
    """How many messages came up to ten minutes after so many slow feeds were read, and four hours later."""
    scenario = read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS)
    scenario = replace(scenario, settings={**scenario.settings, **settings})
    web = Slow()

    async def live(loop: ScriptedLoop) -> list[int]:
        stage = Stage(scenario, loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app, now = stage._service.app, stage.clock.now()
            app.scheduler._web = web  # type: ignore[assignment]  # a stand-in
            where = Conversation(stage.world.self_id, "group", GROUP)
            jobs = [
                Job(
                    number=number,
                    where=where,
                    maker=20002,
                    kind=JobKind.FEED,
                    words="R",
                    rule="every 30",
                    made=now,
                    due=now + 10,
                    wake=now + 10,
                    notes=codec.write(FeedNotes(f"https://a.test/{number}")),
                )
                for number in range(1, count + 1)
            ]
            assert await app.store.commit(*map(JobMade, jobs))
            app.scheduler.look()
            await loop.pass_time(15)
            assert len(web.urls) == count
            if meanwhile is not None:
                await meanwhile(stage)
            web.gate.set()
            await loop.pass_time(600)
            first = len(stage.simulator.delivered)
            await loop.pass_time(4 * 3600)
            said = [text_of(message) for message in stage.simulator.delivered]
            assert [sum(f"test/{number}." in text for text in said) for number in range(1, count + 1)] == [1] * count
            return [first, len(said)]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(live(loop))


def test_feeds_that_are_read_at_once_say_no_more_than_five_an_hour(tmp_path: Path) -> None:
    assert play(tmp_path, 8) == [5, 8]


def test_what_was_read_while_the_bot_was_silenced_is_said_later(tmp_path: Path) -> None:
    async def silence(stage: Stage) -> None:
        assert stage._service is not None
        modes, where = stage._service.app.modes, Conversation(stage.world.self_id, "group", GROUP)
        modes.put(where, Mode.SHADOW)
        stage.loop.call_later(1800, modes.put, where, Mode.LIVE)

    assert play(tmp_path, 1, silence) == [0, 1]


def test_what_was_read_when_the_quiet_hours_began_is_said_after_them(tmp_path: Path) -> None:
    async def pass_the_beginning(stage: Stage) -> None:
        await stage.loop.pass_time(120)

    assert play(tmp_path, 1, pass_the_beginning, BOT_QUIET="14:01-16:00") == [0, 1]


def test_a_feed_that_dies_while_the_bot_is_silenced_is_told_later_once(tmp_path: Path) -> None:
    class Dead:
        """A web that fails once the gate is open."""

        def __init__(self) -> None:
            self.gate = asyncio.Event()

        async def get(self, url: str, **_: Any) -> WebResponse:
            await self.gate.wait()
            return WebResponse(500, b"", url)

    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app, now, web = stage._service.app, stage.clock.now(), Dead()
            app.scheduler._web = web  # type: ignore[assignment]  # a stand-in
            where = Conversation(stage.world.self_id, "group", GROUP)
            job = Job(
                number=1,
                where=where,
                maker=20002,
                kind=JobKind.FEED,
                words="R",
                rule="every 30",
                made=now,
                due=now + 10,
                wake=now + 10,
                notes=codec.write(FeedNotes("https://a.test/feed", failures=DEAD - 1)),
            )
            assert await app.store.commit(JobMade(job))
            app.scheduler.look()
            await loop.pass_time(15)
            app.modes.put(where, Mode.SHADOW)
            web.gate.set()
            await loop.pass_time(60)
            assert stage.simulator.delivered == []
            app.modes.put(where, Mode.LIVE)
            await loop.pass_time(4 * 86_400)
        return [text_of(message) for message in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        (line,) = runner.run(live(loop))
    assert "R 一直读不到" in line


def test_a_feed_that_is_moved_while_it_waits_for_its_place_keeps_its_new_moment(tmp_path: Path) -> None:
    web = Slow()

    async def live(loop: ScriptedLoop) -> tuple[int, list[float]]:
        stage = Stage(read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS), loop=loop, folder=tmp_path)
        async with stage:
            assert stage._service is not None
            app, now = stage._service.app, stage.clock.now()
            app.scheduler._web = web  # type: ignore[assignment]  # a stand-in
            where = Conversation(stage.world.self_id, "group", GROUP)
            feeds = [
                Job(
                    number=number,
                    where=where,
                    maker=20002,
                    kind=JobKind.FEED,
                    words="R",
                    rule="every 30",
                    made=now,
                    due=now + 10,
                    wake=now + 10,
                    notes=codec.write(FeedNotes(f"https://a.test/{number}")),
                )
                for number in range(1, AT_ONCE + 2)
            ]
            assert await app.store.commit(*map(JobMade, feeds))
            app.scheduler.look()
            await loop.pass_time(15)
            waiting = next(one for one in feeds if f"https://a.test/{one.number}" not in web.urls)
            assert await app.store.commit(JobChanged(structs.replace(waiting, due=now + 20_000, wake=now + 20_000)))
            web.gate.set()
            await loop.pass_time(120)
            found = await app.journal.jobs.listed(where.platform_id, number=waiting.number)
        return len(web.urls), [one.due - now for one in found or ()]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(live(loop)) == (AT_ONCE, [20_000])
