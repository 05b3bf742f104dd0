"""A conversation in which people tell facts of themselves, and questions about these after a restart and a reset: how
many facts are kept, how many wrong ones, how many are told with the question they are about, and how many answered.

`python -m tests.bench.facts --model-url http://127.0.0.1:8080/v1 --model NAME` plays those of tests/data/facts, a file
each, as tests.bench.talks has them; behind `---` stand the questions, `name: @bot words = whom it is about, the word`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters.simulator.server import Simulator
from adapters.simulator.wire import mention, text
from adapters.simulator.world import Person, World
from tests.bench.listening import Listener, listening
from tests.bench.subject import ROOT
from tests.bench.talks import (
    FIRST_GROUP,
    FIRST_PERSON,
    LOOK_AGAIN,
    STARTED_WITHIN,
    Answer,
    Clock,
    Line,
    Playing,
    Script,
    names_of_tools,
    read_line,
    say,
    serving,
    settings_of,
)

TALKS = ROOT / "tests" / "data" / "facts"
PICKED_WITHIN = 1200.0  # seconds: small machines are slow
PICKED = "facts of "  # the log says so, of any number
RESET = ("从这里重新开始", "we begin anew")
RECALLED = "\n[记得]\n"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked after the restart: the answer is this word, of this person."""

    line: Line
    whom: str
    word: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation, and what is asked about it."""

    script: Script
    questions: tuple[Question, ...]

    @classmethod
    def read(cls, words: str) -> Talk:
        """Raises ValueError for a line that nobody says, and a question without its answer."""
        said, _, asked = words.partition("\n---\n")
        return cls(Script.read(said), tuple(map(_question, filter(None, asked.splitlines()))))


def _question(line: str) -> Question:
    said, _, answer = line.rpartition(" = ")
    whom, word = answer.split()
    return Question(read_line(said), whom, word)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one question: whether its fact was kept, whether the model was told it, and what was answered."""

    question: Question
    kept: bool
    told: bool
    answer: Answer

    @property
    def is_right(self) -> bool:
        return self.question.word in self.answer.sent


@dataclass(frozen=True, slots=True)
class Result:
    """What became of all questions; `facts` are all that were kept, whom each is about and its words."""

    talk: Talk
    facts: tuple[tuple[str, str], ...]
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def others(self) -> tuple[tuple[str, str], ...]:
        """The facts that no question is about: true ones, and wrong ones."""
        asked = [(one.whom, one.word) for one in self.talk.questions]
        return tuple(
            (whom, words) for whom, words in self.facts if not any(whom == of and word in words for of, word in asked)
        )

    def told(self) -> str:
        """Everything, for people to read."""
        lines = [f"{len(self.talk.script.lines)} lines, {len(self.outcomes)} facts, {self.seconds:.0f} s"]
        lines += [f"  kept: {whom or 'the group'}: {words}" for whom, words in self.facts]
        for one in self.outcomes:
            found = ("kept", one.kept), ("told", one.told), ("right", one.is_right)
            marks = " ".join(f"{word if is_so else '-':<5}" for word, is_so in found)
            lines.append(f"  {marks} {one.question.line.words}  >> {one.answer.sent}")
        counts = (
            sum(one.kept for one in self.outcomes),
            sum(one.told for one in self.outcomes),
            sum(one.is_right for one in self.outcomes),
        )
        many = len(self.outcomes)
        lines.append("kept {1} of {0}, told {2} of {0}, answered {3} of {0}".format(many, *counts))
        lines.append(f"kept besides: {len(self.others)}")
        return "\n".join(lines) + "\n"


class Rig:
    """A group of a simulator, a bot that is in it for as long as somebody lets it, and its journal."""

    def __init__(self, talk: Talk, folder: Path, simulator: Simulator, listener: Listener, clock: Clock) -> None:
        self._talk, self._folder = talk, folder
        self._simulator, self._listener, self._clock = simulator, listener, clock
        self.people = {FIRST_PERSON + place: name for place, name in enumerate(talk.script.people)}

    async def play(self, settings: dict[str, str]) -> Result:
        """The talk, a restart, a reset, then the questions. Raises TimeoutError."""
        began = time.monotonic()
        async with serving(self._folder, **settings):
            await self._simulator.wait_connected(timeout=STARTED_WITHIN)
            async for heard in self._playing(self._talk.script).run():
                say(f"{heard.name}: {heard.words}\n" if isinstance(heard, Line) else f"{heard.told()}\n")
            await self._wait_picked()
        facts = kept(self._folder / "bot.db", self.people)
        async with serving(self._folder, **settings):
            await self._simulator.wait_connected(timeout=STARTED_WITHIN)
            await self._reset()
            asked = Script(self._talk.script.group, tuple(one.line for one in self._talk.questions))
            answers = [one async for one in self._playing(asked).run() if isinstance(one, Answer)]
        outcomes = map(self._outcome, self._talk.questions, answers, [facts] * len(answers))
        return Result(self._talk, facts, tuple(outcomes), time.monotonic() - began)

    def _playing(self, script: Script) -> Playing:
        parts = script, FIRST_GROUP, self._simulator
        return Playing(*parts, clock=self._clock, journal=self._folder / "bot.db", listener=self._listener)

    def _outcome(self, question: Question, answer: Answer, facts: Sequence[tuple[str, str]]) -> Outcome:
        told = [
            message["content"].rpartition(RECALLED)[2]
            for exchange in answer.exchanges
            for message in exchange.messages[-1:]
            if RECALLED in message["content"]
        ]
        is_kept = any(whom == question.whom and question.word in words for whom, words in facts)
        return Outcome(question, is_kept, any(question.word in words for words in told), answer)

    async def _wait_picked(self) -> None:
        """Until the model was asked for facts, once."""
        for _ in range(int(PICKED_WITHIN / LOOK_AGAIN)):
            if PICKED in (self._folder / "log").read_text("utf-8", "replace"):
                return
            await asyncio.sleep(LOOK_AGAIN)
        raise TimeoutError(f"nobody was asked for facts within {PICKED_WITHIN:.0f} s")

    async def _reset(self) -> None:
        """The owner, who is the first of all, begins anew: what was said is in no prompt then."""
        number = len(self._simulator.delivered) + 1
        words = [mention(self._simulator.world.self_id), text(" /重来")]
        await self._simulator.say(words, group_id=FIRST_GROUP, user_id=FIRST_PERSON)
        await self._simulator.wait_until(lambda: len(self._simulator.delivered) >= number)
        answered = self._simulator.delivered[-1].text
        if not any(words in answered for words in RESET):
            raise ValueError(f"it does not begin anew: {answered}")


def kept(journal: Path, people: dict[int, str]) -> tuple[tuple[str, str], ...]:
    """The facts there are: whom each is about (empty for the group), and its words."""
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT subject, text FROM memories ORDER BY id").fetchall()
    return tuple((people.get(subject, ""), words) for subject, words in rows)


async def play(talk: Talk, model_url: str, *, model: str, key: str = "none") -> Result:
    """A talk with a bot of its own."""
    clock = Clock()
    world = World(now=clock)
    world.add_group(
        FIRST_GROUP,
        talk.script.group,
        [Person(FIRST_PERSON + place, name) for place, name in enumerate(talk.script.people)],
    )
    with TemporaryDirectory(prefix="facts-") as temporary:
        folder = Path(temporary)
        async with listening(model_url) as listener, Simulator(world) as simulator:
            settings = {
                **settings_of(listener.url, await simulator.serve(), folder, model=model, key=key),
                "BOT_OWNERS": str(FIRST_PERSON),
                "TOOLS_DENY": ",".join(names_of_tools()),
            }
            return await Rig(talk, folder, simulator, listener, clock).play(settings)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.facts", description=__doc__)
    parser.add_argument("--model-url", help="an OpenAI-compatible endpoint; its key is in LLM_API_KEY")
    parser.add_argument("--model", default="local", help="the model's name there")
    options = parser.parse_args()
    if not options.model_url:
        parser.exit(2, "no model is given: say where it is with --model-url\n")
    for path in sorted(TALKS.glob("*.txt")):
        talk = Talk.read(path.read_text("utf-8"))
        key = os.environ.get("LLM_API_KEY", "none")
        done = asyncio.run(play(talk, options.model_url, model=options.model, key=key))
        say(f"\n=== {talk.script.group}\n{done.told()}")


if __name__ == "__main__":
    main()
