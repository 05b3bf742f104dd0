"""Plays a scenario, line by line, and tells what was not as it should be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.simulator.call import SentMessage
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.model import as_text
from tests.e2e.scenarios.parts import mentioned_in, nodes_of, quoted_in, text_of
from tests.e2e.scenarios.script import DOINGS, EXPECTATIONS, TIMES, Line, Scenario
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
        async with stage.simulator:
            await stage.open()
            for line in stage.scenario.lines:
                await self._play(line)
            await stage.close()
        self.wrong += stage.model.surplus
        for answer in stage.model.left:
            if not answer.always:
                self.wrong.append(f"the model was never asked for {answer}")

    async def _play(self, line: Line) -> None:
        stage = self.stage
        if "at" in line:
            await stage.loop.pass_time(float(line["at"]) - stage.now)
        if "after" in line:
            await stage.loop.pass_time(float(line["after"]))
        for key, value in line.items():
            if key in DOINGS:
                await stage.do(key, value)
            elif key not in EXPECTATIONS | TIMES:
                await stage.say(key, value)
        await stage.loop.pass_time()
        for key, value in line.items():
            if key in EXPECTATIONS:
                for complaint in CHECKS[key](self, value, line):
                    self._blame(complaint)

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

    def pictures(self, wanted: int, line: Line) -> list[str]:
        seen = self._request(line).count("<picture>")
        return [] if seen == wanted else [f"{wanted} pictures in the request, not {seen}"]

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
    "requests": Play.requests,
    "cancelled": Play.cancelled,
    "shown": Play.shown,
    "hidden": Play.hidden,
    "pictures": Play.pictures,
    "request": lambda *_: [],
}


def play(scenario: Scenario, folder: Path) -> Play:
    """Play it from beginning to end, in a loop of its own."""

    async def run(loop: ScriptedLoop) -> Play:
        made = Play(Stage(scenario, loop=loop, folder=folder))
        await made.run()
        return made

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(run(loop))
