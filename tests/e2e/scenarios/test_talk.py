"""Whatever people say, and whatever happens meanwhile: each question is answered once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.e2e.scenarios.laws import broken_by
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.script import CAST, Scenario
from tests.e2e.scenarios.stage import Stage
from tests.e2e.scenarios.talk import Talk, TalkingModel

STEPS = 40


@pytest.mark.parametrize("seed", range(8))
def test_each_question_is_answered_once(seed: int, tmp_path: Path) -> None:
    assert talk(seed, tmp_path) == []


def talk(seed: int, folder: Path) -> list[str]:
    """What was wrong in the talk of this seed."""
    loop, chance = ScriptedLoop(), random.Random(seed)
    settings = {
        "BOT_LOOP": "0",
        "BOT_STALE": "0",
        "BOT_USER_RATE": "0",
        "BOT_GROUP_RATE": "0",
        "BOT_SCOPE": ("group", "member")[seed % 2],
    }
    scenario = Scenario("talk", "talk", (), settings=settings, people=CAST)

    async def run() -> list[str]:
        model = TalkingModel(chance)
        stage = Stage(scenario, loop=loop, folder=folder, model=model)
        async with stage:
            talk = Talk(stage, model, chance)
            await talk.go_on(STEPS)
        return [*talk.wrong(), *broken_by(model.requests, stage.simulator.delivered, stage.group.members)]

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(run())
