"""One moment, all of it: the service lives, dies, lives again and is judged."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adapters.simulator.server import Simulator
from tests.torture import bells
from tests.torture.crossings import Death
from tests.torture.journal import read_journal
from tests.torture.model import ScriptedModel
from tests.torture.moments import Moment
from tests.torture.oracle import Evidence, Verdict, judge
from tests.torture.processes import Life, Nursery
from tests.torture.stage import PATIENCE, Stage, make_world


@dataclass(frozen=True, slots=True)
class Trial:
    """A moment and what became of it; `deaths` are where the lives really ended, `crossed` all that they crossed."""

    moment: Moment
    verdict: Verdict
    deaths: tuple[str, ...]
    crossed: tuple[dict[str, int], ...]
    seconds: float
    log: str = field(repr=False)


async def try_moment(nursery: Nursery, moment: Moment) -> Trial:
    """Live through a moment with a database of its own."""
    started = time.monotonic()
    logged = nursery.log.stat().st_size
    errors: list[str] = []
    with TemporaryDirectory(prefix="torture-") as folder:
        file, tools = Path(folder) / "frostagent.db", Path(folder) / "tools"
        tools.mkdir()
        shutil.copy(bells.__file__, tools)
        ledger = tools / bells.LEDGER.name
        async with Simulator(make_world(), heartbeat=0) as simulator:
            stage = Stage(simulator)
            async with ScriptedModel(stage.on_ask) as model:
                settings = {
                    "llm_base_url": model.base_url,
                    "llm_model": "scripted",
                    "onebot_mode": "forward",
                    "onebot_url": await simulator.serve(),
                    "store_url": f"sqlite+aiosqlite:///{file}",
                    "media_dir": folder,
                    "tools_dir": str(tools),
                    "web_port": 0,
                }
                await _live_on(nursery, moment, stage, settings, errors)
        log = nursery.log.read_bytes()[logged:].decode("utf-8", "replace")
        errors += (line for line in log.splitlines() if " ERROR " in line or line.startswith("Traceback"))
        evidence = Evidence(
            questions=list(stage.questions.values()),
            delivered=simulator.delivered,
            asked=model.asked,
            invalid=model.invalid,
            promised=[life.promised for life in stage.lives],
            rung=ledger.read_text().splitlines() if ledger.exists() else [],
            journal=read_journal(file),
            errors=errors,
        )
        verdict = judge(evidence)
    deaths = tuple(str(life.died or "at rest") for life in stage.lives[:-1])
    crossed = tuple(dict(life.crossed) for life in stage.lives)
    return Trial(moment, verdict, deaths, crossed, time.monotonic() - started, log)


async def _live_on(nursery: Nursery, moment: Moment, stage: Stage, settings: dict[str, Any], errors: list[str]) -> None:
    """All lives, one after the other; the last one ends as an operator ends it."""
    deaths: list[Death | None] = [*moment.deaths] or [None]
    for place, death in enumerate(deaths):
        await _live(nursery, stage, settings, death, stage.play_again if place else stage.play, errors)
        await stage.while_dead()
    await _live(nursery, stage, settings, None, stage.finish, errors)


async def _live(
    nursery: Nursery,
    stage: Stage,
    settings: dict[str, Any],
    death: Death | None,
    play: Callable[[], Awaitable[None]],
    errors: list[str],
) -> None:
    """One life: it dies while the script is played, or is ended when all is done."""
    life, end = Life(), death.signal if death else signal.SIGTERM
    stage.lives.append(life)

    async def to_the_end() -> None:
        try:
            async with asyncio.timeout(2 * PATIENCE):
                await play()
                await life.settle()
        except TimeoutError:
            errors.append(f"life {len(stage.lives)} did not come to its end")
        life.end(end)

    async with asyncio.TaskGroup() as group:
        playing = group.create_task(to_the_end())
        await nursery.bear(life, settings, death)
        playing.cancel()
    if life.code != (-end if end is signal.SIGKILL else 0):
        errors.append(f"life {len(stage.lives)} ended with code {life.code}")
