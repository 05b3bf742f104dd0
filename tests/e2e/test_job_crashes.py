"""A process that is killed while it says a reminder: the next one says it once in all."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from adapters.onebot.transport import OneBotTransport
from bot.core.actions import SendMessage
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.script import FOLDER, read_scenario
from tests.e2e.scenarios.stage import Stage

SCENARIO = FOLDER / "970-a-reminder.yaml"
MOMENT = 3600.0  # seconds after the beginning


class Killed:
    """The journal as it was when the process died, and what it was about to do."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, after_the_wire: bool) -> None:
        self.folder, self.kept = folder, folder / "killed"
        self.is_dead = False
        said = OneBotTransport.send

        async def send(transport: Any, action: SendMessage) -> str:
            if self.is_dead or "⏰" not in action.words:
                return await said(transport, action)
            if after_the_wire:
                await said(transport, action)
            self._die()
            await asyncio.get_running_loop().create_future()
            raise AssertionError("it is dead")

        monkeypatch.setattr(OneBotTransport, "send", send)

    def _die(self) -> None:
        self.is_dead = True
        self.kept.mkdir()
        for file in self.folder.glob("bot.db*"):
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
            await stage.simulator.say([{"type": "at", "data": {"qq": str(stage.world.self_id)}}, *WORDS], user_id=20002)
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


WORDS = [{"type": "text", "data": {"text": " 三点提醒我交作业"}}]
