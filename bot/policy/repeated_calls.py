"""The same call again, and again: what a model gets that goes round in circles. Pure; one of these
for each run.

Counted are calls of the same tool with the same arguments in different steps, as long as nothing
was written and nobody said anything in between: the second gets the result there already is, the
third an error, the fourth ends the run with a last answer. A call that failed may be tried a second
time. And a tool that was called with wrong arguments three times in a row is closed for the rest of
the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from bot.domain.result import ToolResult

MAX_WRONG = 3  # calls of one tool with wrong arguments, in a row

Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Known:
    """A call made for the second time, with the result of the first."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class TooOften:
    """A call made for the third time or later. `is_last` says that the run must come to its end."""

    times: int
    is_last: bool


def key_of(name: str, arguments: Mapping[str, Any]) -> Key:
    """The key that equal calls share: the layout and order of the arguments do not matter."""
    return name, json.dumps(arguments, sort_keys=True, default=str)


class Repeats:
    """The calls of a run so far. Those of a step count once the step is over: `next_step`."""

    def __init__(self) -> None:
        self._times: dict[Key, int] = {}
        self._results: dict[Key, ToolResult] = {}
        self._now: dict[Key, ToolResult | None] = {}
        self._wrong: dict[str, int] = {}

    def judge(self, key: Key) -> Known | TooOften | None:
        """Judge a call before it is run; None where it is to be run."""
        times = self._times.get(key, 0) + 1
        self._now.setdefault(key, None)
        if times > 2:
            return TooOften(times, is_last=times > 3)
        known = self._results.get(key)
        return None if known is None else Known(known)

    def keep(self, key: Key, result: ToolResult) -> None:
        """Keep the result of a call, which may be given again."""
        self._now[key] = result

    def next_step(self) -> None:
        """Count the calls of the step that is over."""
        for key, result in self._now.items():
            self._times[key] = self._times.get(key, 0) + 1
            if result is not None:
                self._results[key] = result
        self._now.clear()

    def forget(self) -> None:
        """Forget all calls: something was written or said, so results may be otherwise now."""
        self._times.clear()
        self._results.clear()
        self._now.clear()

    def took(self, name: str, *, fits: bool) -> None:
        """Note whether the arguments of a call fitted its tool."""
        if fits:
            self._wrong.pop(name, None)
        else:
            self._wrong[name] = self._wrong.get(name, 0) + 1

    def is_closed(self, name: str) -> bool:
        """Whether the tool was called with wrong arguments too many times in a row."""
        return self._wrong.get(name, 0) >= MAX_WRONG
