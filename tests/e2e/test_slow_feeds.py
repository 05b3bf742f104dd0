"""A feed whose server does not answer holds up no reminder."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.jobs import Job, JobKind, JobMade
from bot.jobs.feeds import FeedNotes
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.script import FOLDER, read_scenario
from tests.e2e.scenarios.stage import GROUP, Stage

FEEDS = 60  # more than are read side by side


class Hanging:
    """A web that never answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def get(self, url: str, **_: Any) -> Any:
        self.asked += 1
        await asyncio.get_running_loop().create_future()

    async def post(self, url: str, **_: Any) -> Any:
        raise AssertionError(f"a feed is read, never posted to: {url}")


def test_reminders_come_while_feeds_hang(tmp_path: Path) -> None:
    scenario = read_scenario(FOLDER / "1050-a-reminder.yaml", DOINGS)
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
                    kind=JobKind.TEXT if number > FEEDS else JobKind.FEED,
                    words=f"R:{number}",
                    rule="" if number > FEEDS else "every 30",
                    made=now,
                    due=now + 10 + number / 10,
                    wake=now + 10 + number / 10,
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
        assert runner.run(live(loop)) == [f"⏰ 提醒：R:{FEEDS + 1}", f"⏰ 提醒：R:{FEEDS + 2}"]
    assert 0 < web.asked < FEEDS
