"""Plays a scenario, line by line, and tells what was not as it should be."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import json

from adapters.media.decoder_process import DecoderProcess
from adapters.media.formats import describe, picture_kind
from adapters.media.reader import read
from adapters.media.reader_process import ReaderProcess
from adapters.simulator.call import Gesture, SentMessage
from bot.core.documents import Document, UnreadableDocument
from frostagent.types.errors import MediaError
from tests.e2e.scenarios import servers
from tests.e2e.scenarios.doings import DOINGS, do, say
from tests.e2e.scenarios.laws import broken_by
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.model import as_text
from tests.e2e.scenarios.parts import mentioned_in, nodes_of, quoted_in, text_of
from tests.e2e.scenarios.script import EXPECTATIONS, TIMES, Line, read_scenario
from tests.e2e.scenarios.stage import Happening, Stage


@dataclass
class Play:
    """A scenario that is being played, or was. `wrong` is what was not as it should be."""

    stage: Stage
    wrong: list[str] = field(default_factory=list)
    checked: int = 0  # messages of the bot that were looked at

    async def run(self) -> None:
        """All lines, and at the end whether the model was asked as often as its script says."""
        stage = self.stage
        decoded = patch.object(DecoderProcess, "decode", decoded_here)
        with decoded, patch.object(ReaderProcess, "read", read_here):
            async with stage:
                for line in stage.scenario.lines:
                    await self._play(line)
        people = stage.group.members
        self.wrong += [*stage.model.surplus, *broken_by(stage.model.requests, stage.simulator.delivered, people)]
        for answer in stage.model.left:
            if not answer.always:
                self.wrong.append(f"the model was never asked for {answer}")

    async def _play(self, line: Line) -> None:
        stage = self.stage
        if "at" in line:
            await stage.loop.pass_time(float(line["at"]) - stage.now)
        if "after" in line:
            await stage.loop.pass_time(float(line["after"]))
        for number in range(1, line.get("repeat", 1) + 1):
            await self._happen(line, number)
            await stage.loop.pass_time(float(line.get("every", 0)))
        for key, value in line.items():
            if key in EXPECTATIONS:
                for complaint in CHECKS[key](self, value, line):
                    self._blame(complaint)

    async def _happen(self, line: Line, number: int) -> None:
        """What is said and done in a line, for this time."""
        for key, value in line.items():
            if key in DOINGS:
                await do(self.stage, key, value)
            elif key not in EXPECTATIONS | TIMES:
                await say(self.stage, key, numbered(value, number))

    def _blame(self, complaint: str) -> None:
        told = f"at {self.stage.now:.1f} s: {complaint}"
        self.wrong.append(told)
        self.stage.seen.append(Happening(self.stage.now, "!", complaint))

    # --- what is looked at ------------------------------------------------------------------------

    def sent(self, wanted: list[Any], _: Line) -> list[str]:
        """Exactly these messages came since the last look."""
        came = self.stage.simulator.delivered[self.checked :]
        self.checked += len(came)
        texts = [text_of(message) for message in came]
        if len(came) != len(wanted):
            return [f"{len(wanted)} messages should have come, not {texts}"]
        pairs = zip(wanted, came, strict=True)
        return [complaint for want, got in pairs for complaint in self._differs(want, got)]

    def _differs(self, want: str | Mapping[str, Any], got: SentMessage) -> list[str]:
        wants = {"say": want} if isinstance(want, str) else dict(want)
        if label := wants.pop("id", ""):
            self.stage.labels[label] = got.message_id
        return [
            f"{key} should be {value!r}, not {LOOKS[key](self, got)!r}"
            for key, value in wants.items()
            if not _fits(key, value, LOOKS[key](self, got))
        ]

    def count(self, wanted: int, _: Line) -> list[str]:
        """So many messages came since the last look."""
        came = len(self.stage.simulator.delivered) - self.checked
        self.checked += came
        return [] if came == wanted else [f"{wanted} messages should have come, not {came}"]

    def gestures(self, wanted: list[dict[str, str]], _: Line) -> list[str]:
        """Exactly these gestures were made since the last look."""
        made, self.stage.gestures = self.stage.gestures, []
        shown = [{one.kind: self._meant(one)} for one in made]
        return [] if shown == wanted else [f"gestures should be {wanted}, not {shown}"]

    def _meant(self, gesture: Gesture) -> str:
        if gesture.kind == "reaction":
            label = self.stage.label_of(gesture.message_id)
            return f"-{label}" if gesture.taken_back else label
        if gesture.kind in {"recall", "pin"}:
            return self.stage.label_of(gesture.message_id)
        person = self.stage.world.person(gesture.user_id)
        return person.nickname if person else ""

    def fetched(self, wanted: list[str], _: Line) -> list[str]:
        asked = self.stage.shelf.asked
        return [] if asked == wanted else [f"{wanted} should have been fetched, not {asked}"]

    def visited(self, wanted: list[str], _: Line) -> list[str]:
        """Searches and pages, since the beginning."""
        asked = self.stage.web.asked
        return [] if asked == wanted else [f"{wanted} should have been visited, not {asked}"]

    def heard(self, wanted: list[str], _: Line) -> list[str]:
        words = self.stage.shelf.heard
        return [] if words == wanted else [f"{wanted} should have been heard, not {words}"]

    def requests(self, wanted: int, _: Line) -> list[str]:
        made = len(self.stage.model.requests)
        return [] if made == wanted else [f"{wanted} requests, not {made}"]

    def cancelled(self, wanted: list[int], _: Line) -> list[str]:
        given_up = self.stage.model.cancelled
        return [] if given_up == wanted else [f"cancelled should be {wanted}, not {given_up}"]

    def shown(self, wanted: list[str], line: Line) -> list[str]:
        """The model was shown these, in this order."""
        text, found = self._request(line), 0
        for words in wanted:
            at = text.find(words, found)
            if at < 0:
                return [f"the model was not shown {words!r} (after what stands before) in:\n{text}"]
            found = at + len(words)
        return []

    def hidden(self, wanted: list[str], line: Line) -> list[str]:
        text = self._request(line)
        return [f"the model was shown {words!r}:\n{text}" for words in wanted if words in text]

    def asked(self, wanted: list[str], _: Line) -> list[str]:
        """The latest requests went to models of these names."""
        latest = self.stage.asked[-len(wanted) :]
        return [] if latest == wanted else [f"{wanted} should have been asked, not {latest}"]

    def pictures(self, wanted: int, line: Line) -> list[str]:
        seen = self._request(line).count("<picture>")
        return [] if seen == wanted else [f"{wanted} pictures in the request, not {seen}"]

    def offered(self, wanted: list[str], line: Line) -> list[str]:
        """Of tools that are not always there, and of what brings those of servers, exactly these."""
        found = [
            name for name in self._tools(line) if name.startswith(("x_", "y_", "use_tools", "remind", "subscribe"))
        ]
        return [] if found == wanted else [f"{wanted} should have been offered, not {found}"]

    def named(self, wanted: list[str], line: Line) -> list[str]:
        """The description of what brings tools has these words, and none where that is none."""
        text = self._tools(line).get("use_tools", "")
        return [f"{words!r} is not in: {text}" for words in wanted if words not in text]

    def done(self, wanted: list[str], _: Line) -> list[str]:
        """Tools of servers did exactly this, ever."""
        return [] if wanted == servers.DONE else [f"{wanted} should have been done, not {servers.DONE}"]

    def _tools(self, line: Line) -> dict[str, str]:
        request = self.stage.model.requests[line.get("request", 0) - 1]
        return {spec.name: spec.description for spec in request.tools}

    def _request(self, line: Line) -> str:
        requests = self.stage.model.requests
        number = line.get("request", len(requests))
        return as_text(requests[number - 1].messages) if 0 < number <= len(requests) else ""

    # --- what is in a message ---------------------------------------------------------------------

    def words(self, message: SentMessage) -> str:
        return text_of(message)

    def quotes(self, message: SentMessage) -> str:
        quoted = quoted_in(message)
        return next((name for name, number in self.stage.labels.items() if number == quoted), "")

    def mentions(self, message: SentMessage) -> list[str]:
        return mentioned_in(message, self.stage.group)

    def to(self, message: SentMessage) -> str:
        if message.group_id is not None:
            return self.stage.world.group(message.group_id).name
        person = self.stage.world.person(message.user_id or 0)
        return person.nickname if person else ""

    def nodes(self, message: SentMessage) -> list[str]:
        return nodes_of(message)


def _fits(key: str, value: Any, got: Any) -> bool:
    return value in got if key == "has" else bool(value == got)


LOOKS: Mapping[str, Callable[[Play, SentMessage], Any]] = {
    "say": Play.words,
    "has": Play.words,
    "quotes": Play.quotes,
    "mentions": Play.mentions,
    "to": Play.to,
    "forward": Play.nodes,
}
CHECKS: Mapping[str, Callable[[Play, Any, Line], list[str]]] = {
    "sent": Play.sent,
    "count": Play.count,
    "gestures": Play.gestures,
    "fetched": Play.fetched,
    "visited": Play.visited,
    "heard": Play.heard,
    "requests": Play.requests,
    "cancelled": Play.cancelled,
    "shown": Play.shown,
    "hidden": Play.hidden,
    "asked": Play.asked,
    "pictures": Play.pictures,
    "offered": Play.offered,
    "named": Play.named,
    "done": Play.done,
    "request": lambda *_: [],
}


async def decoded_here(_: DecoderProcess, data: bytes) -> bytes:
    """The pictures of a scenario are ours: they are unpacked without a process of their own."""
    if not picture_kind(data):
        raise MediaError(f"it is no picture but {describe(data)}")
    return data


async def read_here(_: ReaderProcess, data: bytes, *, told: str = "") -> Document:
    """The documents of a scenario are ours, too."""
    try:
        return json.decode(read(told.encode() + b"\n" + data), type=Document)
    except MediaError as error:
        raise UnreadableDocument(str(error), error.lack) from error


def numbered(written: Any, number: int) -> Any:
    """The same with the number of the repetition for `{n}`."""
    match written:
        case str():
            return written.replace("{n}", str(number))
        case list():
            return [numbered(each, number) for each in written]
        case dict():
            return {key: numbered(value, number) for key, value in written.items()}
        case _:
            return written


@contextmanager
def living_in(zone: str) -> Iterator[None]:
    """The process is in this time zone for as long as the block; in its own where that is empty."""
    try:
        with patch.dict(os.environ, {"TZ": zone} if zone else {}):
            time.tzset()
            yield
    finally:
        time.tzset()


def play(file: Path, folder: Path) -> Play:
    """Play a script from beginning to end, in a loop of its own."""
    scenario = read_scenario(file, DOINGS)

    async def run(loop: ScriptedLoop) -> Play:
        made = Play(Stage(scenario, loop=loop, folder=folder))
        await made.run()
        return made

    loop = ScriptedLoop()
    with living_in(scenario.zone), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(run(loop))
