"""The traffic of people who have reminders set, and tasks scheduled, for the next seconds; and what must hold of them:
each is said once, or its maker hears once that it was missed.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bot.core.jobs import JobState
from bot.core.journal import SendState
from tests.torture.evidence import Evidence, Verdict
from tests.torture.oracle import judge
from tests.torture.stage import ANN, ONE, PATIENCE, TWO, Stage

SETTINGS: dict[str, Any] = {"bot_new_group": "live", "bot_send_rate": 0.0}
SAID = re.compile(r"⏰ (?:提醒：|Reminder: )(R:q\d+)")
DONE = re.compile(r"A:(r\d+)")
LOOK = 0.1  # seconds between two looks into the journal of another process
MISSED = ("没能按时做到", "I missed this")
OURS = re.compile(r"⏰|later#r|'A:r\d+'")
"""In complaints about what nobody has asked in so many words."""


class RemindingStage(Stage):
    """What people do who are reminded. `journal` is the file in which the jobs are."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.journal = Path()

    async def play(self) -> None:
        """The script of the first life."""
        await self.simulator.wait_connected(timeout=PATIENCE)
        asked = [await self._ask("remind", group=ONE, bare=True), await self._ask("remind", friend=ANN, bare=True)]
        asked += [await self._ask("schedule", group=TWO, bare=True), await self._ask("remind", group=TWO, bare=True)]
        await self._wait_answered(asked)
        await self._all_done()
        await self._wait_answered([await self._ask("schedule", group=ONE, bare=True)])
        await self._all_done()

    async def while_dead(self) -> None:
        """Nobody says anything; the way is free."""
        await self.simulator.wait_until(lambda: not self.simulator.connected, timeout=PATIENCE)
        self._ago = min(self._ago, 1.0)
        self.simulator.sockets.come_back()
        self._ago = -1.0

    async def play_again(self, mend: Callable[[], None]) -> None:
        """A life between the first and the last one."""
        mend()
        await self.finish()

    async def finish(self) -> None:
        """Whatever is set is said, and somebody is reminded once more."""
        await self.simulator.wait_connected(timeout=PATIENCE)
        await self._wait_answered([await self._ask("remind", group=ONE, bare=True)])
        await self._all_done()

    async def _all_done(self) -> None:
        """Until nothing is left to be said."""
        async with asyncio.timeout(PATIENCE):
            while any(one["wake"] is not None for one in read_jobs(self.journal)):  # noqa: ASYNC110  # another process's
                await asyncio.sleep(LOOK)


def read_jobs(file: Path) -> list[dict[str, Any]]:
    """The jobs as they stand; none where there is no journal yet."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute("SELECT * FROM jobs ORDER BY id")]
    except sqlite3.OperationalError:
        return []


def judge_reminders(evidence: Evidence, jobs: Sequence[dict[str, Any]]) -> Verdict:
    """Everything that can be said about such a moment."""
    verdict = judge(evidence)
    verdict.complaints = [one for one in verdict.complaints if not OURS.search(one)]
    verdict.complaints += said_wrongly([one.text for one in evidence.delivered], jobs, evidence.journal.sends)
    return verdict


def said_wrongly(
    delivered: Sequence[str], jobs: Sequence[dict[str, Any]], sends: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """No reminder and no task twice, none that nobody has set, and none of those lost without a word."""
    said = Counter(words for text in delivered for words in [*SAID.findall(text), *DONE.findall(text)])
    missed = [text for text in delivered if any(words in text for words in MISSED)]
    states = {row["send_id"]: row["state"] for row in sends}
    known = {_token(job["words"]) for job in jobs}
    for words, times in said.items():
        if times > 1:
            yield f"{words} was said {times} times"
        if words not in known:
            yield f"nobody has set {words}"
    for job in jobs:
        words = _token(job["words"])
        told = sum(job["words"] in text for text in missed)
        is_excused = job["kind"] == "run" or states.get(job["claim"]) == SendState.UNKNOWN
        if job["state"] != JobState.ENDED:
            yield f"J{job['number']} was left {job['state']}"
        elif told > 1 or (told and said[words]):
            yield f"{words} was told as missed {told} times, and said {said[words]} times"
        elif not (told or said[words] or is_excused):
            yield f"{words} was neither said nor told as missed"


def _token(words: str) -> str:
    """What is said of a job: its words, or the token of the question that its task asks."""
    return words.partition("#")[2] or words
