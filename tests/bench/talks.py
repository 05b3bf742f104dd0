"""Group conversations played to a real bot with a real model, to be read: what was said, what was answered, and how
much of our prompt stands in it.

`python -m tests.bench.talks --model-url http://127.0.0.1:8080/v1 --model NAME` plays those of tests/data/talks, a file
each: the name of the group, then a line for what somebody says, `name: words`. `@bot` in front asks, `name >other:`
quotes the last line of the other, `+name:` does not wait for the answer to what was asked before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters.simulator.call import SentMessage
from adapters.simulator.server import Simulator
from adapters.simulator.wire import mention, text
from adapters.simulator.world import Person, World
from bot.configured_tools import find_tools
from bot.policy.fallback_replies import is_fallback_reply
from config.settings import Settings
from tests.bench.leftovers import FORMS, Room
from tests.bench.listening import Exchange, Listener, listening
from tests.bench.subject import ROOT, end

TALKS = ROOT / "tests" / "data" / "talks"
NAMES = ("小霜", "Frost")
FIRST_GROUP, FIRST_PERSON = 5_000, 30_001
ASKED = "@bot "
LINE = re.compile(r"(?P<at_once>\+?)(?P<name>[^:>]+?)(?: >(?P<quoted>[^:]+))?: (?P<words>.+)")
ANSWERED_WITHIN = 900.0  # seconds: small machines are slow
STARTED_WITHIN = 60.0
LOOK_AGAIN = 0.2
APART = 30.0  # seconds between two lines


@dataclass(frozen=True, slots=True)
class Line:
    """What somebody says; it may quote somebody's last line, and not wait for who asked before."""

    name: str
    words: str
    quoted: str = ""
    at_once: bool = False

    @property
    def asks(self) -> bool:
        return self.words.startswith(ASKED)


@dataclass(frozen=True, slots=True)
class Script:
    """A conversation: the name of its group, and its lines."""

    group: str
    lines: tuple[Line, ...]

    @classmethod
    def read(cls, words: str) -> Script:
        """Raises ValueError for a line that nobody says."""
        group, *lines = filter(None, words.splitlines())
        return cls(group, tuple(map(read_line, lines)))

    @property
    def people(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.name for line in self.lines))


def read_line(line: str) -> Line:
    if not (match := LINE.fullmatch(line)):
        raise ValueError(f"nobody says this line: {line}")
    return Line(match["name"], match["words"], match["quoted"] or "", bool(match["at_once"]))


@dataclass(frozen=True, slots=True)
class Answer:
    """What was sent to a question, whether that quoted it, what of our prompt is in it, and what the model was asked
    and said for it.
    """

    line: Line
    sent: str = ""
    quotes_it: bool = False
    forms: tuple[str, ...] = ()
    exchanges: tuple[Exchange, ...] = ()

    def told(self) -> str:
        flaws = (*self.forms, *([] if self.quotes_it else ["quotes somebody else"] if self.sent else ["silence"]))
        mark = f"    [{', '.join(flaws)}]" if flaws else ""
        return "  >> " + self.sent.replace("\n", "\n     ") + mark


class Clock:
    """The time of the group's server, so many seconds ahead: lines are said one after the other without waiting, and
    would else all belong to the next question of who said them.
    """

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Playing:
    """Says the lines of one script in a group, and collects what is answered."""

    def __init__(
        self, script: Script, group: int, simulator: Simulator, *, clock: Clock, journal: Path, listener: Listener
    ) -> None:
        self._script, self._group, self._simulator = script, group, simulator
        self._clock, self._journal, self._listener = clock, journal, listener
        self._last: dict[str, int] = {}  # of whom, the id of what they said last
        self._waiting: dict[int, Line] = {}
        self._heard, self._seen = len(simulator.delivered), len(listener.exchanges)

    async def run(self) -> AsyncIterator[Line | Answer]:
        """Each line, and each answer, as they come."""
        for place, line in enumerate(self._script.lines):
            message_id = await self._say(line)
            yield line
            if not line.asks:
                continue
            self._waiting[message_id] = line
            if not any(one.at_once for one in self._script.lines[place + 1 : place + 2]):
                for answer in await self._answers():
                    yield answer

    async def _say(self, line: Line) -> int:
        self._clock.ahead += 0 if line.at_once else APART
        world = self._simulator.world
        members = world.group(self._group).members.values()
        number = next(one.user_id for one in members if one.name == line.name)
        segments = [{"type": "reply", "data": {"id": str(self._last[line.quoted])}}] if line.quoted else []
        segments += [mention(world.self_id)] if line.asks else []
        segments += [text(f" {line.words.removeprefix(ASKED)}" if line.asks else line.words)]
        said = await self._simulator.say(segments, group_id=self._group, user_id=number)
        self._last[line.name] = said
        return said

    async def _answers(self) -> list[Answer]:
        """What was sent to all that was asked, once that is settled."""
        await settled(self._journal, {str(one) for one in self._waiting})
        sent, self._heard = self._simulator.delivered[self._heard :], len(self._simulator.delivered)
        seen, self._seen = tuple(self._listener.exchanges[self._seen :]), len(self._listener.exchanges)
        waiting, self._waiting = self._waiting, {}
        room = self._room(seen)
        return [self._answer(line, said, room, seen) for line, said in matched(waiting, sent)]

    def _answer(self, line: Line, said: Sequence[SentMessage], room: Room, seen: tuple[Exchange, ...]) -> Answer:
        words = "\n".join(one.text for one in said)
        forms = () if is_fallback_reply(words) else room.forms(words, line.words.removeprefix(ASKED))
        return Answer(line, words, bool(said) and quoted_by(said[0]) != 0, forms, seen)

    def _room(self, seen: Sequence[Exchange]) -> Room:
        rules = "".join(one["content"] for exchange in seen for one in exchange.messages[:1])
        lines = [line.words for line in self._script.lines if not line.asks]
        return Room(self._script.group, self._script.people, NAMES, lines, rules.casefold())


def matched(waiting: dict[int, Line], sent: Sequence[SentMessage]) -> Iterator[tuple[Line, list[SentMessage]]]:
    """Each question with what was sent to it: the message that quotes it and those behind; what quotes none of them is
    told with its quotation as 0, so that it counts as wrong.
    """
    of: dict[int, list[SentMessage]] = {question: [] for question in waiting}
    last = next(iter(waiting))
    for one in sent:
        last = quoted if (quoted := quoted_by(one)) in of else last
        of[last].append(one if quoted in of or of[last] else replace(one, segments=without_quote(one)))
    for question, said in of.items():
        yield waiting[question], said


def quoted_by(one: SentMessage) -> int:
    return next((int(part["data"]["id"]) for part in one.segments if part["type"] == "reply"), 0)


def without_quote(one: SentMessage) -> tuple[dict[str, object], ...]:
    return tuple(part for part in one.segments if part["type"] != "reply")


async def settled(journal: Path, questions: set[str]) -> None:
    """Until the turns of all these messages are closed. Raises TimeoutError."""
    for _ in range(int(ANSWERED_WITHIN / LOOK_AGAIN)):
        if questions <= closed(journal):
            return
        await asyncio.sleep(LOOK_AGAIN)
    raise TimeoutError(f"no answer within {ANSWERED_WITHIN:.0f} s")


def closed(journal: Path) -> set[str]:
    """The messages whose turns are closed."""
    if not journal.exists():
        return set()
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
        return {one for (one,) in connection.execute("SELECT message_id FROM turns WHERE closed IS NOT NULL")}


@asynccontextmanager
async def serving(folder: Path, **settings: str) -> AsyncIterator[None]:
    """The bot as a process in this folder while the block runs; what it logged is told where the block fails."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **settings}
    log = folder / "log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", "run"), cwd=folder, env=environment, stdout=output, stderr=output
        )
    try:
        yield
    except BaseException as error:
        error.add_note(log.read_text("utf-8", "replace")[-3000:])
        raise
    finally:
        await end(process)


async def play(
    scripts: Sequence[Script], model_url: str, *, model: str, key: str = "none", tools: bool = False
) -> AsyncIterator[Script | Line | Answer]:
    """Each script, its lines and its answers, as they come; one bot plays them all, a group each."""
    clock = Clock()
    world = World(now=clock)
    for place, script in enumerate(scripts):
        people = [Person(FIRST_PERSON + number, name) for number, name in enumerate(script.people)]
        world.add_group(FIRST_GROUP + place, script.group, people)
    with TemporaryDirectory(prefix="talks-") as temporary:
        folder = Path(temporary)
        async with listening(model_url) as listener, Simulator(world) as simulator:
            settings = {
                **settings_of(listener.url, await simulator.serve(), folder, model=model, key=key),
                "BOT_ALIASES": NAMES[1],
                "BOT_MEMORY": "0",
                "TOOLS_DENY": "" if tools else ",".join(names_of_tools()),
            }
            async with serving(folder, **settings):
                await simulator.wait_connected(timeout=STARTED_WITHIN)
                for place, script in enumerate(scripts):
                    yield script
                    playing = Playing(
                        *(script, FIRST_GROUP + place, simulator),
                        clock=clock,
                        journal=folder / "bot.db",
                        listener=listener,
                    )
                    async for heard in playing.run():
                        yield heard


def settings_of(model_url: str, onebot_url: str, folder: Path, *, model: str, key: str) -> dict[str, str]:
    """The environment of a bot that a real model answers for: nothing holds it back, nothing ends while it thinks."""
    return {
        "LLM_BASE_URL": model_url,
        "LLM_API_KEY": key,
        "LLM_MODEL": model,
        "LLM_FIRST_TOKEN": "600",
        "ONEBOT_MODE": "forward",
        "ONEBOT_URL": onebot_url,
        "BOT_NAME": NAMES[0],
        "BOT_NEW_GROUP": "live",
        "BOT_STALE": "0",
        "BOT_LOOP": "0",
        "BOT_PACE": "0",
        "BOT_SEND_RATE": "0",
        "STORE_URL": f"sqlite:///{folder}/bot.db",
        "WEB_PORT": "0",
    }


def names_of_tools() -> list[str]:
    return [tool.name for tool in find_tools(Settings()).tools]


def figures(answers: Sequence[Answer]) -> str:
    """How many answers there are, and how many hold each form."""
    framed = sum(any(form != "markdown" for form in answer.forms) for answer in answers)
    forms = Counter(form for answer in answers for form in answer.forms)
    wrong = sum(not answer.quotes_it for answer in answers if answer.sent)
    silent = sum(not answer.sent for answer in answers)
    apologies = sum(is_fallback_reply(answer.sent) for answer in answers)
    counted = {"answers": len(answers), "apologies": apologies, "silent": silent, "with a frame": framed}
    counted |= {"quote somebody else": wrong} | {f"  {form}": forms[form] for form in FORMS}
    return "".join(f"{number:4} {what}\n" for what, number in counted.items())


async def show(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Print the talks as they are played, then the figures; keep the exchanges where that is wanted."""
    scripts = [Script.read(path.read_text("utf-8")) for path in paths]
    answers: list[Answer] = []
    playing = play(
        scripts, options.model_url, model=options.model, key=os.environ.get("LLM_API_KEY", "none"), tools=options.tools
    )
    async for heard in playing:
        match heard:
            case Script():
                say(f"\n=== {heard.group}\n")
            case Line():
                say(f"{heard.name}: {heard.words}\n")
            case Answer():
                answers.append(heard)
                say(f"{heard.told()}\n")
                if options.keep:
                    keep(heard, options.keep)
    say(f"\n{figures(answers)}")


def keep(answer: Answer, file: Path) -> None:
    """Add an answer to the file, a line of JSON."""
    exchanges = [{"messages": one.messages, "said": one.said} for one in answer.exchanges]
    line = {"asked": answer.line.words, "sent": answer.sent, "forms": answer.forms, "exchanges": exchanges}
    with file.open("a", encoding="utf-8") as kept:
        kept.write(json.dumps(line, ensure_ascii=False) + "\n")


def say(words: str) -> None:
    sys.stdout.write(words)
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.talks", description=__doc__)
    parser.add_argument("--model-url", help="an OpenAI-compatible endpoint; its key is in LLM_API_KEY")
    parser.add_argument("--model", default="local", help="the model's name there")
    parser.add_argument("--tools", action="store_true", help="with the bot's tools, which take small models long")
    parser.add_argument("--only", default="", help="talks whose files have this in their names")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add what the model was asked and said")
    options = parser.parse_args()
    if not options.model_url:
        parser.exit(2, "no model is given: say where it is with --model-url\n")
    paths = sorted(path for path in TALKS.glob("*.txt") if options.only in path.name)
    asyncio.run(show(options, paths))


if __name__ == "__main__":
    main()
