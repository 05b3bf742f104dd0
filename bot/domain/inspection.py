"""Tools as the operator's console shows them, and the doctor's findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from bot.domain.chat import Usage

TELLING = 3  # calls that say how a tool is


class ToolState(Struct, frozen=True, kw_only=True):
    """A tool now: the `reason` it cannot be used for (empty where it can), whether its calls run,
    for whom it is, and for whom in the groups where that is another; at most how many calls in how
    many seconds, where there is such a quota. `unfit` is why a page may not call it (a word for
    `tools.unfit`), empty where it may; then `parameters` are the schema of its arguments.
    """

    name: str
    about: str
    reason: str
    permission: str
    audience: str
    elsewhere: tuple[tuple[int, str], ...] = ()
    quota: tuple[int, float] | None = None
    unfit: str = "effects"
    parameters: Mapping[str, Any] = field(default_factory=dict)


class ToolAnswer(Struct, frozen=True):
    """The result of a call from a page, as a model would read it: its `code` is `ok` or that of its
    failure; how many seconds it took, and how many pictures came with it.
    """

    text: str
    code: str
    seconds: float
    pictures: int = 0


class ToolUse(Struct, frozen=True):
    """The latest calls of a tool: how many, how many failed, and the code of the last failure, with
    the `error` that the model read; `slow` is the time that nearly all of them keep within, in
    seconds. `lately` is how many failed of the last few that were made to their end.

    Invariant: `calls` are those that were `fine`, `failed` or are `going_on`.
    """

    name: str
    calls: int
    failed: int
    code: str
    slow: float
    going_on: int = 0
    lately: tuple[int, int] = (0, 0)
    error: str = ""

    @property
    def fine(self) -> int:
        """How many gave a result."""
        return self.calls - self.failed - self.going_on

    @property
    def health(self) -> Literal["good", "warn", "bad"]:
        """`bad` where the last few all failed, `warn` where half of them did; two calls say little
        of a tool.
        """
        failed, made = self.lately
        if made < TELLING or 2 * failed < made:
            return "good"
        return "bad" if failed == made else "warn"


class Finding(Struct, frozen=True):
    """The doctor's finding about one thing: its `verdict` is `ok`, `warning` or `problem`; the mend
    is empty where all is well. Both in English, and in Chinese where there is any.
    """

    check: str
    verdict: str
    said: str
    mend: str
    said_zh: str = ""
    mend_zh: str = ""

    def told(self, chinese: bool) -> str:
        """The words about it, in one of the two languages."""
        return (chinese and self.said_zh) or self.said

    def advice(self, chinese: bool) -> str:
        """The mend, in one of the two languages."""
        return (chinese and self.mend_zh) or self.mend


class Doctor(Protocol):
    """Looks at all that a running bot needs, by its settings alone; `charge` is told which model
    took what.
    """

    async def __call__(self, charge: Callable[[str, Usage], None]) -> Sequence[Finding]: ...
