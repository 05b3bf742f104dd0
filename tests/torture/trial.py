"""One moment, all of it: the service lives, dies, lives again and is judged."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adapters.simulator.server import Simulator
from bot.runtime.loop import BAD_CONFIGURATION
from tests.torture import bells
from tests.torture.crossings import Death
from tests.torture.drafting import SETTINGS as DRAFTING
from tests.torture.drafting import DraftingStage, judge_drafts
from tests.torture.evidence import Evidence, Verdict
from tests.torture.journal import read_journal
from tests.torture.keepsakes import Deed, KeepingStage, recollect, write_personas
from tests.torture.kept import gone_places, judge_kept, read_keepsakes
from tests.torture.model import ScriptedModel
from tests.torture.moments import SERVERS, Kind, Moment
from tests.torture.oracle import judge
from tests.torture.processes import Life, Nursery
from tests.torture.reminding import SETTINGS as REMINDED
from tests.torture.reminding import RemindingStage, judge_reminders, read_jobs
from tests.torture.servers import SETTINGS as SERVED
from tests.torture.servers import ServerStage, judge_server
from tests.torture.stage import PATIENCE, Stage, make_world
from tests.torture.troubles import trouble

WAITLESS = {
    "bot_loop": 0,
    "bot_user_rate": None,
    "bot_group_rate": None,
    "bot_debounce": 0.02,
    "bot_pace": False,
    "bot_memory": False,
    "bot_send_burst": 20,
}
"""What only waits, or is held back by who asks so fast."""

UNREACHED = 10**9  # tokens: with a limit that nobody reaches first requests are reserved, too

STAGES: dict[Kind, type[Stage]] = {
    Kind.KEEPING: KeepingStage,
    Kind.DRAFTING: DraftingStage,
    Kind.REMINDING: RemindingStage,
    **dict.fromkeys(SERVERS, ServerStage),
}
"""What people do where that is not the usual."""

TO_OWNERS = "发到 "  # how the owners are told of a send whose fate nobody knows


@dataclass(frozen=True, slots=True)
class Trial:
    """A moment and what became of it.

    `deaths` are where the lives really ended, `crossed` all that they crossed, `recovering` how much of that before
    they took an event; None where they came to none.
    """

    moment: Moment
    verdict: Verdict
    deaths: tuple[str, ...]
    crossed: tuple[dict[str, int], ...]
    recovering: tuple[int | None, ...]
    seconds: float
    log: str = field(repr=False)


async def try_moment(nursery: Nursery, moment: Moment) -> Trial:
    """Live through a moment with a database of its own."""
    started = time.monotonic()
    logged = nursery.log.stat().st_size
    errors: list[str] = []
    with TemporaryDirectory(prefix="torture-") as folder:
        file, tools = _make_places(Path(folder))
        ledger = tools / bells.LEDGER.name
        async with Simulator(make_world(), heartbeat=0, on_sent=lambda _: stage.note_delivery()) as simulator:
            stage = STAGES.get(moment.kind, Stage)(simulator, kind=moment.kind)
            if isinstance(stage, RemindingStage):
                stage.journal = file
            answer = recollect if isinstance(stage, KeepingStage) else None
            async with ScriptedModel(stage.on_ask, answer) as model:
                settings = {
                    "llm_base_url": model.base_url,
                    "llm_model": "scripted",
                    "onebot_mode": "forward",
                    "onebot_url": await simulator.serve(),
                    "store_url": f"sqlite+aiosqlite:///{file}",
                    "media_dir": folder,
                    "tools_dir": str(tools),
                    **WAITLESS,
                    "bot_day_tokens_all": UNREACHED if moment.kind.has_limit else 0,
                    "web_port": 0,
                    **_settings_of(stage, Path(folder)),
                }
                if moment.kind is Kind.TWO:
                    stage.start_rival = partial(_start_rival, Path(folder) / "rival.log", settings, errors)
                await _live_on(nursery, moment, stage, settings, file, errors)
        log = nursery.log.read_bytes()[logged:].decode("utf-8", "replace")
        evidence = Evidence(
            kind=moment.kind,
            questions=list(stage.questions.values()),
            sent=simulator.sent,
            delivered=simulator.delivered,
            delivered_in=stage.delivered_in,
            asked=model.asked,
            asked_in=stage.asked_in,
            asked_again=stage.asked_again,
            invalid=model.invalid,
            promised=[life.promised for life in stage.lives],
            rung=ledger.read_text().splitlines() if ledger.exists() else [],
            journal=read_journal(file),
            taken_back=tuple(stage.taken_back),
            errors=errors,
            log=log.splitlines(),
        )
        verdict = _judge(evidence, stage, file)
    deaths = tuple(str(life.died or "at rest") for life in stage.lives[:-1])
    crossed = tuple(dict(life.crossed) for life in stage.lives)
    recovering = tuple(life.recovering for life in stage.lives)
    return Trial(moment, verdict, deaths, crossed, recovering, time.monotonic() - started, log)


def _make_places(folder: Path) -> tuple[Path, Path]:
    """Where the journal will be, and the folder of the tools."""
    file, tools = folder / "journal" / "frostagent.db", folder / "tools"
    for needed in (file.parent, tools):
        needed.mkdir()
    shutil.copy(bells.__file__, tools)
    return file, tools


def _settings_of(stage: Stage, folder: Path) -> dict[str, Any]:
    """What is set for its script alone."""
    if isinstance(stage, KeepingStage):
        return write_personas(folder / "personas")
    if isinstance(stage, ServerStage):
        return SERVED
    if isinstance(stage, RemindingStage):
        return REMINDED
    return DRAFTING if isinstance(stage, DraftingStage) else {}


def _judge(evidence: Evidence, stage: Stage, file: Path) -> Verdict:
    match stage:
        case DraftingStage():
            return judge_drafts(evidence, stage.wishes)
        case RemindingStage():
            return judge_reminders(evidence, read_jobs(file))
        case ServerStage():
            return judge_server(evidence, stage.own_recalls)
        case KeepingStage():
            return _judge_both(evidence, stage.deeds, file)
        case _:
            return judge(evidence)


def _judge_both(evidence: Evidence, deeds: Sequence[Deed], file: Path) -> Verdict:
    """What everybody got, and all that is kept for long."""
    kept = read_keepsakes(file)
    commanded = (TO_OWNERS, *{deed.answer for deed in deeds})
    evidence = replace(evidence, commanded=commanded, gone=gone_places(deeds, kept))
    verdict = judge(evidence)
    verdict.complaints += judge_kept(evidence, deeds, kept)
    return verdict


async def _live_on(
    nursery: Nursery, moment: Moment, stage: Stage, settings: dict[str, Any], journal: Path, errors: list[str]
) -> None:
    """All lives, one after the other; the last one ends as an operator ends it.

    Where the journal is in trouble there is a second life in which it is, whether that dies or not.
    """
    first, *later = moment.deaths or (None,)
    await _live(nursery, stage, settings, first, stage.play, errors)
    await stage.while_dead()
    lives: list[Death | None] = [*later] or [None] * (moment.kind.comes_back or moment.kind.is_lost)
    for death in lives:
        with ExitStack() as block:
            block.enter_context(trouble(moment.kind, journal))
            mend = block.close if moment.early else _leave_it
            await _live(nursery, stage, settings, death, partial(stage.play_again, mend), errors)
        await stage.while_dead()
    await _live(nursery, stage, settings, None, stage.finish, errors)


def _lines_of(log: Path) -> list[str]:
    return log.read_text("utf-8").splitlines()


async def _start_rival(log: Path, settings: dict[str, Any], errors: list[str]) -> None:
    """A second process on the journal says why it cannot be, and is no more; that it did nothing the oracle sees."""
    rival = Life()
    try:
        async with asyncio.timeout(PATIENCE), Nursery(log) as nursery:
            await nursery.bear(rival, settings, None)
    except TimeoutError:
        errors.append("a second process on the journal went on")
        return
    lines = _lines_of(log)
    if rival.code != BAD_CONFIGURATION or len(lines) != 2 or "the journal is in use" not in lines[1]:
        errors.append(f"a second process on the journal ended with code {rival.code}: {lines}")


def _leave_it() -> None:
    """What is wrong stays so until the life has ended."""


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
