"""A process that is killed while it says a reminder: the next one says it once in all."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from adapters.onebot.transport import OneBotTransport
from adapters.simulator.wire import mention, text
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.script import FOLDER, read_scenario
from tests.e2e.scenarios.stage import GROUP, Stage

SCENARIO = FOLDER / "1050-a-reminder.yaml"
TO_BOT = [mention(10001)]
MISSED = "⏰ 没能按时做到：\n· 周六 3月14日 14:10 报天气（J1）"
MOMENT = 3600.0  # seconds after the beginning


class Killed:
    """The journal as it was when the process died, and what it was about to do."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, after_the_wire: bool, sign: str = "⏰"
    ) -> None:
        self.folder, self.kept = folder, folder / "killed"
        self.is_dead = False
        said = OneBotTransport.send

        async def send(transport: Any, action: SendMessage) -> str:
            if self.is_dead or sign not in action.words:
                return await said(transport, action)
            if after_the_wire:
                await said(transport, action)
            self.die()
            await asyncio.get_running_loop().create_future()
            raise AssertionError("it is dead")

        monkeypatch.setattr(OneBotTransport, "send", send)

    def die(self) -> None:
        """Nothing that is written from now on ever was."""
        self.is_dead = True
        self.kept.mkdir()
        # The writer goes on meanwhile: lines of `-ahead` that it moves into the database must not be missing in both.
        files = sorted(self.folder.glob("bot.db*"), key=lambda file: not file.name.endswith("-ahead"))
        for file in files:
            shutil.copy(file, self.kept / file.name)

    def come_back(self) -> None:
        """What was written after the death never was."""
        for file in self.folder.glob("bot.db*"):
            file.unlink()
        for file in self.kept.iterdir():
            shutil.copy(file, self.folder / file.name)


@pytest.mark.parametrize("after_the_wire", [False, True])
@pytest.mark.parametrize("away", [0.0, 600.0, 7200.0])
def test_a_reminder_is_said_once_whenever_its_process_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after_the_wire: bool, away: float
) -> None:
    scenario = read_scenario(SCENARIO, DOINGS)

    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(scenario, loop=loop, folder=tmp_path)
        killed = Killed(tmp_path, monkeypatch, after_the_wire=after_the_wire)
        async with stage:
            await stage.simulator.say([*TO_BOT, text(" 三点提醒我交作业")], user_id=20002)
            await loop.pass_time(MOMENT + 5)
            assert killed.is_dead
            await stage.close()
            killed.come_back()
            if away:
                await loop.pass_time(away)
            await stage.open()
            await loop.pass_time(7200)
        return [text_of(message) for message in stage.simulator.delivered if "⏰" in text_of(message)]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        said = runner.run(live(loop))
    assert len(said) == 1
    assert "交作业" in said[0]


@pytest.mark.parametrize(("away", "said"), [(0.0, ["晴。"]), (600.0, ["晴。"]), (50_000.0, [MISSED])])
def test_a_task_is_done_once_if_its_process_dies_while_the_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: float, said: list[str]
) -> None:
    scenario = read_scenario(FOLDER / "1007-restart-in-a-task.yaml", DOINGS)

    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(scenario, loop=loop, folder=tmp_path)
        killed = Killed(tmp_path, monkeypatch, after_the_wire=False)
        async with stage:
            await stage.simulator.say([*TO_BOT, text(" 十分钟后定时报天气")], user_id=20002)
            await loop.pass_time(605)
            assert len(stage.model.requests) == 3
            killed.die()
            await stage.close()
            killed.come_back()
            if away:
                await loop.pass_time(away)
            await stage.open()
            await loop.pass_time(7200)
        return [text_of(message).strip() for message in stage.simulator.delivered[1:]]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(live(loop)) == said


def test_a_task_is_done_soon_if_its_process_dies_while_it_waits_in_its_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = read_scenario(FOLDER / "1067-a-task.yaml", DOINGS)

    async def live(loop: ScriptedLoop) -> tuple[int, int]:
        stage = Stage(scenario, loop=loop, folder=tmp_path)
        killed = Killed(tmp_path, monkeypatch, after_the_wire=False)
        async with stage:
            await stage.simulator.say([*TO_BOT, text(" 半小时后查一下香山，定时")], user_id=20002)
            await loop.pass_time(1700)
            assert stage._service is not None
            stage._service.app.lanes.hold(Conversation(10001, "group", GROUP))
            await loop.pass_time(105)
            before = len(stage.model.requests)
            killed.die()
            await stage.close()
            killed.come_back()
            await stage.open()
            await loop.pass_time(15)
            soon = len(stage.model.requests)
            await loop.pass_time(7200)
            assert len(stage.model.requests) == soon
        return before, soon

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(live(loop)) == (2, 4)


@pytest.mark.parametrize("after_the_wire", [False, True])
@pytest.mark.parametrize("away", [0.0, 600.0, 7200.0])
def test_a_daily_recap_is_said_once_whenever_its_process_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after_the_wire: bool, away: float
) -> None:
    scenario = read_scenario(FOLDER / "1180-a-recap-that-qq-refuses.yaml", DOINGS)

    async def live(loop: ScriptedLoop) -> list[str]:
        stage = Stage(scenario, loop=loop, folder=tmp_path)
        killed = Killed(tmp_path, monkeypatch, after_the_wire=after_the_wire, sign="省流")
        async with stage:
            for number in range(40):
                await stage.simulator.say([text(f"第 {number} 句")], user_id=20002)
            await loop.pass_time(MOMENT + 5)
            assert killed.is_dead
            await stage.close()
            killed.come_back()
            if away:
                await loop.pass_time(away)
            await stage.open()
            await loop.pass_time(7200)
        assert len(stage.model.requests) == (1 if after_the_wire else 2)
        return [text_of(message) for message in stage.simulator.delivered]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        said = runner.run(live(loop))
    assert len(said) == 1
    assert "大家数了一天。" in said[0]
