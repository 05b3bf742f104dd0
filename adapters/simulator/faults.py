"""The faults to come: which faults are armed, for how many times, and how a line of text arms one.
Pure state.

A fault waits until something it can hit comes by, and is used up once for each hit. Of several that
wait for the same thing the one armed first goes first, so that a list of faults is a script.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum

from adapters.simulator.wire import MUTED, rejected, unconfirmed
from bot.domain.errors import BotError


class Fault(StrEnum):
    """A fault that can be armed; the value is its name in the chat."""

    # What becomes of a message the bot sends: one of these.
    TIMEOUT = "timeout"
    SILENCE = "silence"
    LOST = "lost"
    REFUSE = "refuse"
    MUTED = "muted"
    NOT_FRIEND = "notfriend"
    RISK = "risk"
    TOO_LONG = "toolong"
    BAD_MEDIA = "badmedia"
    NEXT_CONNECTION = "next-connection"
    # How the bot is answered, whatever the answer is.
    SLOW = "slow"
    DISORDER = "disorder"
    # What becomes of events.
    DUPLICATE = "duplicate"
    REPEAT = "repeat"
    DEAF = "deaf"  # it does not come, though the connection stays
    # What happens to a question as soon as the bot has heard it.
    RECALL = "recall"
    RECONNECT = "reconnect"
    DROP = "drop"


WORDINGS = {
    Fault.TIMEOUT: unconfirmed(result=0, errMsg=""),
    Fault.REFUSE: rejected(110, "发送失败，你已被移出该群，请重新加群。"),
    Fault.MUTED: MUTED,
    Fault.NOT_FRIEND: rejected(16, "发送失败，请先添加对方为好友。"),
    # QQ swallows it and says nothing: the server cannot tell it from a message that arrived
    # (onebot.md 2).
    Fault.RISK: unconfirmed(result=0, errMsg=""),
    Fault.TOO_LONG: rejected(102, "发送失败，消息内容过长。"),
    Fault.BAD_MEDIA: "文件下载失败, 识别URL失败, uri= /app/data/media/picture.png",
}
"""The answers of the faults that answer with a refusal: NapCat's where onebot.md has them,
otherwise like them.

The numbers in `notfriend` and `toolong` are invented.
"""

REFUSED = frozenset(WORDINGS) - {Fault.TIMEOUT}
SENDING = (Fault.TIMEOUT, Fault.SILENCE, Fault.LOST, Fault.NEXT_CONNECTION, *REFUSED)
ASKING = (Fault.RECALL, Fault.RECONNECT, Fault.DROP)

VALUES = {
    Fault.SLOW: 1.0,  # seconds
    Fault.DISORDER: 2.0,  # answers
    Fault.REPEAT: 1.0,  # events
    Fault.RECALL: 0.0,  # seconds
    Fault.RECONNECT: 1.0,  # seconds
    Fault.DROP: 5.0,  # seconds
}
"""The faults that have a number, and what it is unless another is given."""

WHEN = re.compile(r"(?:^|\s)(?:(next|always|off)|([0-9]{1,6})\s+times?)\s*$", re.IGNORECASE)


class NoFault(BotError):
    """A line that arms nothing; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Armed:
    """A fault that waits: for how many hits (None: for all to come), with its number and its
    wording, if it has any.
    """

    fault: Fault
    times: int | None = 1
    value: float = 0.0
    wording: str = ""

    def __str__(self) -> str:
        when = {None: "always", 0: "off", 1: "next"}.get(self.times, f"{self.times} times")
        value = f"{self.value:g}" if self.fault in VALUES else ""
        own_words = self.wording if self.wording != WORDINGS.get(self.fault) else ""
        return " ".join(filter(None, (self.fault, value, own_words, when)))


class Faults:
    """Those that are armed."""

    def __init__(self) -> None:
        self._armed: dict[Fault, Armed] = {}  # in order of arming

    @property
    def armed(self) -> tuple[Armed, ...]:
        """The waiting faults, in the order in which they were armed."""
        return tuple(self._armed.values())

    def arm(
        self,
        fault: Fault,
        *,
        times: int | None = 1,
        value: float | None = None,
        wording: str | None = None,
    ) -> Armed:
        """Let a fault wait for so many hits: None for all to come, 0 for none any more; it replaces
        its like.

        `value` is in the unit of `VALUES`, `wording` what a refusal says.
        """
        armed = Armed(
            fault,
            times,
            VALUES.get(fault, 0.0) if value is None else value,
            WORDINGS.get(fault, "") if wording is None else wording,
        )
        self.put(armed)
        return armed

    def put(self, armed: Armed) -> None:
        """Arm what `parse_fault` read."""
        self._armed.pop(armed.fault, None)
        if armed.times != 0:
            self._armed[armed.fault] = armed

    def disarm(self) -> None:
        """Nothing is to go wrong any more."""
        self._armed.clear()

    def use(self, *faults: Fault) -> Armed | None:
        """The first of these that was armed, hit once more; None where none is."""
        armed = next((armed for armed in self._armed.values() if armed.fault in faults), None)
        if armed is not None and armed.times is not None:
            if armed.times > 1:
                self._armed[armed.fault] = replace(armed, times=armed.times - 1)
            else:
                del self._armed[armed.fault]
        return armed


def parse_fault(text: str) -> Armed:
    """Read `NAME [NUMBER] [next | always | N times | off]`, as in `slow 0.5 3 times`; `next` goes
    unsaid.

    `refuse` takes what it says instead of a number. Raises NoFault.
    """
    name, _, rest = text.strip().partition(" ")
    if name.lower() not in set(Fault):
        raise NoFault(f"there is no fault {name!r}")
    fault = Fault(name.lower())
    when = WHEN.search(rest)
    own = rest[: when.start() if when else None].strip()
    times = _times(when)
    if fault in VALUES:
        return Armed(fault, times, parse_number(own) if own else VALUES[fault])
    if own and fault is not Fault.REFUSE:
        raise NoFault(f"{fault} takes no {own!r}, only: next, always, N times, off")
    return Armed(fault, times, wording=own or WORDINGS.get(fault, ""))


def says_when(text: str) -> bool:
    """Whether a line ends with next, always, N times or off."""
    return WHEN.search(text) is not None


def _times(when: re.Match[str] | None) -> int | None:
    match when and (when[1] or "").lower():
        case "always":
            return None
        case "off":
            return 0
        case "":
            return int(when[2]) if when else 1
        case _:
            return 1


def parse_number(text: str) -> float:
    """A number from 0 on. Raises NoFault."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise NoFault(f"{text!r} is no number")
    return number
