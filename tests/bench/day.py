"""`python -m tests.bench.day`: a day of a group of 2,000, made, at a third of what it would cost; what came of it.

The whole service lives it, over a real websocket and with a real journal, on a clock that only the day advances. The
day is lived twice: first without a limit, to know what it would cost.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from adapters.simulator.wire import mention, text
from bot.budget.limits import limit_level
from bot.runtime import watchdog
from frostagent.models.tokens import estimate
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, ModelRequest, ToolCall, Usage
from tests.bench.crowd import Crowd, make_crowd
from tests.bench.talk import ANSWERS
from tests.bench.trial import percentile
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.script import Scenario
from tests.e2e.scenarios.stage import GROUP, Stage

BOTS = ("机器人甲", "机器人乙")
SELDOM = 3600.0  # seconds between two looks at a clock that only the day advances
TALKATIVE = 40  # answers that each of the other bots would give
EARLY = 30.0  # seconds before its first line, in which the service is there already
PRICES = """
[[model]]
name = "scripted"
input = 5.0
output = 15.0

[[model]]
name = "small"
input = 1.0
output = 3.0
"""
SETTINGS = {"LLM_PRICES": "$FILES/prices.toml", "LLM_CHEAP_MODEL": "small"}


class SlowModel:
    """Answers after seconds, now and then after half a minute; one time in four it looks something up before."""

    name = "scripted"

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._ids = count(1)

    async def complete(self, request: ModelRequest) -> Completion:
        """An answer or a call, at the price of all it read."""
        chance = self._chance
        await asyncio.sleep(30.0 if chance.random() < 0.02 else chance.uniform(1.5, 6))
        usage = Usage(round(estimate(request)), chance.randint(30, 200))
        if request.tools and chance.random() < 0.25:
            call = ToolCall(f"c{next(self._ids)}", "look_up", '{"word": "香山"}')
            return Completion(AssistantMessage("", (call,)), FinishReason.TOOL_CALLS, usage)
        return Completion(AssistantMessage(f"{chance.choice(ANSWERS)}（{next(self._ids)}）"), FinishReason.STOP, usage)


@dataclass(frozen=True, slots=True)
class Question:
    """A line for the bot: when it was said, at which rung, and why it was refused; empty where it was taken."""

    asker: int
    at: float
    rung: int
    refused: str
    is_answered: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """A run: whose, from when its question was said to when it ended; the rung at which it began."""

    asker: int
    asked: float
    opened: float
    closed: float
    rung: int


@dataclass(frozen=True, slots=True)
class Lived:
    """What came of a day: the bill and its limit in US dollars (0: none), every question, every run."""

    limit: float
    bill: float
    questions: Sequence[Question]
    turns: Sequence[Turn]
    spammers: frozenset[int]
    bots: frozenset[int]

    @property
    def rungs(self) -> dict[int, tuple[int, int, int]]:
        """By rung, how many asked, were taken, and were answered."""
        of: dict[int, list[Question]] = {}
        for one in self.questions:
            of.setdefault(one.rung, []).append(one)
        return {
            rung: (len(ones), sum(not one.refused for one in ones), sum(one.is_answered for one in ones))
            for rung, ones in sorted(of.items())
        }

    @property
    def passed(self) -> int:
        """The most runs of one other person that somebody waited for."""
        return max((max(self._waited(turn).values(), default=0) for turn in self.turns), default=0)

    def _waited(self, turn: Turn) -> Counter[int]:
        others = (one for one in self.turns if one.asker != turn.asker)
        return Counter(one.asker for one in others if one.opened < turn.opened and one.closed > turn.asked)

    def most(self, askers: frozenset[int], seconds: float) -> int:
        """The most runs of one of these within so many seconds."""
        of = [[turn.opened for turn in self.turns if turn.asker == asker] for asker in askers]
        return max((sum(at <= other < at + seconds for other in runs) for runs in of for at in runs), default=0)

    def table(self) -> str:
        """All of it, for people."""
        share = f", {self.bill / self.limit:.1%} of the limit" if self.limit else ""
        lines = [f"bill ${self.bill:.4f}{share}; {len(self.questions)} questions, {len(self.turns)} runs"]
        lines += [
            f"  from {rung:3} %: {asked} asked, {taken} taken, {answered} answered"
            for rung, (asked, taken, answered) in self.rungs.items()
        ]
        refused = Counter(one.refused for one in self.questions if one.refused)
        lines += [f"  refused {number} times: {why}" for why, number in refused.most_common()]
        waited = sorted(turn.opened - turn.asked for turn in self.turns)
        lines.append(f"  waited {percentile(waited, 50):.1f} s, one of twenty {percentile(waited, 95):.1f} s or more")
        lines.append(f"  runs of one other person that somebody waited for: {self.passed}")
        lines.append(f"  of one spammer in a minute: {self.most(self.spammers, 60)}")
        lines.append(f"  of one other bot in ten minutes: {self.most(self.bots, 600)}")
        return "\n".join(lines) + "\n"


async def live(crowd: Crowd, stage: Stage) -> frozenset[int]:
    """Live the day on a stage; the numbers of the other bots, which come at its middle."""
    bots: frozenset[int] = frozenset()
    middle = crowd.lines[len(crowd.lines) // 2].at
    async with stage:
        for line in crowd.lines:
            if not bots and line.at >= middle:
                invited = [stage.simulator.robots.invite(name, times=TALKATIVE) for name in BOTS]
                bots = frozenset(robot.user_id for robot in invited)
            await stage.loop.pass_time(max(0.0, line.at - stage.scenario.begins - stage.now))
            segments = [mention(stage.world.self_id)] if line.asks else []
            await stage.simulator.say([*segments, text(line.text)], group_id=GROUP, user_id=line.user_id)
        await stage.loop.pass_time(600)
    return bots


def day(crowd: Crowd, folder: Path, *, limit: float = 0.0, seed: int = 1, **settings: str) -> Lived:
    """A day with a limit of so many US dollars; its journal is in the folder."""
    scenario = Scenario(
        name="day",
        title="a day of a large group",
        lines=(),
        settings={**SETTINGS, "BOT_DAY_COST_ALL": f"{limit:.6f}", **settings},
        people={name: {"number": number} for number, name in crowd.people.items()},
        files={"prices.toml": PRICES},
        begins=max(0.0, crowd.lines[0].at - EARLY),
    )
    with patch.object(watchdog, "TICK", SELDOM), asyncio.Runner(loop_factory=ScriptedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, ScriptedLoop)
        stage = Stage(scenario, loop=loop, folder=folder, model=SlowModel(seed))
        bots = runner.run(live(crowd, stage))
    return read(folder / "bot.db", limit, crowd.spammers, bots)


def read(file: Path, limit: float, spammers: frozenset[int], bots: frozenset[int]) -> Lived:
    """What a journal says of its day."""
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        spent = connection.execute("SELECT at, cost FROM usage WHERE step >= 0 ORDER BY at").fetchall()
        asked = connection.execute(ASKED).fetchall()
        turns = connection.execute(TURNS).fetchall()
    bill = sum(row["cost"] for row in spent)

    def rung(at: float) -> int:
        used = sum(one["cost"] for one in spent if one["at"] <= at)
        return int(limit_level(used / limit if limit else 0.0, is_owner=False))

    questions = [
        Question(
            row["sender"],
            row["at"],
            rung(row["at"]),
            "" if row["wakes"] else row["reason"],
            bool(row["answered"] and row["wakes"]),
        )
        for row in asked
    ]
    runs = [Turn(row["asker"], row["asked"], row["opened"], row["closed"], rung(row["opened"])) for row in turns]
    return Lived(limit, bill, questions, runs, spammers, bots)


ASKED = """
    SELECT verdicts.sender, verdicts.at, verdicts.wakes, verdicts.reason,
        EXISTS (SELECT 1 FROM sends WHERE sends.turn_id = messages.turn_id AND sends.final
            AND sends.state = 'confirmed') AS answered
    FROM verdicts JOIN messages USING (conversation, message_id)
    WHERE verdicts.id IN (SELECT max(id) FROM verdicts GROUP BY conversation, message_id) AND messages.turn_id != ''
        OR NOT verdicts.wakes"""
TURNS = """
    SELECT asker, opened, closed, min(taken) AS asked
    FROM turns JOIN messages ON messages.turn_id = turns.turn_id AND sender = asker AND NOT overheard
    GROUP BY turns.id ORDER BY opened"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.day", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=9000)
    options = parser.parse_args()
    crowd = make_crowd(options.seed, people=options.people, lines=options.lines)
    with TemporaryDirectory(prefix="day-") as folder:
        free = day(crowd, Path(folder) / "free")
        sys.stdout.write(f"without a limit: {free.table()}")
        sys.stdout.write(f"at a third: {day(crowd, Path(folder) / 'limited', limit=free.bill / 3).table()}")


if __name__ == "__main__":
    main()
