"""A scenario's file, read: its cast, its settings, its model and its lines. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tests.e2e.scenarios.loop import AFTERNOON, DAY
from tests.e2e.scenarios.model import Answer, read_answer

FOLDER = Path(__file__).parent
CAST: Mapping[str, Any] = {"主人": "owner", "小明": "member", "阿澈": "member", "小红": "member"}
KEYS = {"title", "of", "about", "zone", "day", "begins", "settings", "files", "pages", "people", "model", "script"}
NUMBERED = 100  # the scenarios of the specification have numbers up to this
TOPICS = ("summary", "memory", "persona", "command")  # of part (b) of the conversation's specification
EXPECTATIONS = {
    "sent", "count", "gestures", "requests", "cancelled", "shown", "hidden", "request", "asked", "pictures",
    "fetched", "visited", "heard", "offered", "named", "done",
}  # fmt: skip
TIMES = {"at", "after", "repeat", "every"}

Line: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One script. `begins` is in seconds after the midnight of `day` in the time zone `zone` (empty: that of whoever
    plays it), `people` each name's role, or number and role and more.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    answers: tuple[Answer, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str | tuple[str, int]] = field(default_factory=dict)
    pages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    of: str = ""
    about: str = ""
    zone: str = ""
    day: date = DAY
    begins: float = AFTERNOON


def files() -> list[Path]:
    """Every scenario there is, in the order of their numbers."""
    return sorted(FOLDER.glob("*.yaml"), key=lambda file: int(file.stem.partition("-")[0]))


def topic_of(file: Path) -> str:
    """What the scenario in this file is of, by its head alone; empty where that is nothing of the TOPICS."""
    head = file.read_text("utf-8").splitlines()[1:2]
    return head[0].removeprefix("of: ") if head and head[0].startswith("of: ") else ""


def read_scenario(file: Path, verbs: Collection[str]) -> Scenario:
    """The scenario in a file, in which these things can happen. Raises ValueError for a key that means nothing."""
    written = yaml.load(file.read_text("utf-8"), Loader=yaml.CSafeLoader)
    if strange := written.keys() - KEYS:
        raise ValueError(f"{file.name}: what is {sorted(strange)}?")
    if (topic := written.get("of", "")) not in {"", *TOPICS}:
        raise ValueError(f"{file.name}: of what is {topic}?")
    people = {**CAST, **written.get("people", {})}
    lines = tuple(written["script"])
    for line in lines:
        if strange := line.keys() - EXPECTATIONS - set(verbs) - TIMES - people.keys():
            raise ValueError(f"{file.name}: what is {sorted(strange)}?")
    return Scenario(
        name=file.stem,
        title=written["title"],
        of=topic,
        about=written.get("about", ""),
        zone=written.get("zone", ""),
        day=written.get("day", DAY),
        begins=seconds_of(written["begins"]) if "begins" in written else AFTERNOON,
        lines=lines,
        answers=tuple(map(read_answer, written.get("model", ()))),
        settings={name: str(value) for name, value in written.get("settings", {}).items()},
        people=people,
        files=written.get("files", {}),
        pages=written.get("pages", {}),
    )


def seconds_of(time_of_day: str) -> float:
    """Seconds after midnight of `23:59`."""
    hours, minutes = map(int, time_of_day.split(":"))
    return 3600.0 * hours + 60.0 * minutes
