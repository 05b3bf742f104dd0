"""The armed faults, their remaining hits, and how a line of text arms one. Pure state.

A fault waits for something it can hit, and is used once per hit. If several wait for the same
thing, the first armed goes first, so that a list of faults is a script.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from adapters.simulator.wire import MUTED, NOT_DONE, CallRefused, Json, rejected, unconfirmed
from adapters.simulator.world import UNKNOWN_MESSAGE
from bot.core.language import CATALOGUE, Phrase
from frostagent.types.errors import BotError


class Fault(StrEnum):
    """A fault; the value is its name in the chat."""

    # the fate of a message that the bot sends: one of these
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
    # the same, for some messages only
    REFUSE_MENTION = "refuse-mention"
    REFUSE_QUOTE = "refuse-quote"
    LATE_FORWARD = "lateforward"
    # the answer to get_msg
    NO_MESSAGE = "nomessage"
    # how calls are answered, whatever the answer
    SLOW = "slow"
    DISORDER = "disorder"
    # the fate of events
    DUPLICATE = "duplicate"
    REPEAT = "repeat"
    DEAF = "deaf"  # lost, although the connection stays
    # what happens to a question once the bot has received it
    RECALL = "recall"
    RECONNECT = "reconnect"
    DROP = "drop"


WORDINGS = {
    Fault.TIMEOUT: unconfirmed(result=0, errMsg=""),
    Fault.REFUSE: rejected(110, "发送失败，你已被移出该群，请重新加群。"),
    Fault.MUTED: MUTED,
    Fault.NOT_FRIEND: rejected(16, "发送失败，请先添加对方为好友。"),
    # QQ silently drops it: the server cannot tell it from a delivered message (onebot.md 2).
    Fault.RISK: unconfirmed(result=0, errMsg=""),
    Fault.TOO_LONG: rejected(102, "发送失败，消息内容过长。"),
    Fault.BAD_MEDIA: "文件下载失败, 识别URL失败, uri= /app/data/media/picture.png",
    Fault.REFUSE_MENTION: "Get Uid Error",
    Fault.REFUSE_QUOTE: UNKNOWN_MESSAGE,
    Fault.LATE_FORWARD: "发送转发消息（res_id：7000000000000000000）失败",
    Fault.NO_MESSAGE: UNKNOWN_MESSAGE,
}
"""The text of faults that answer with a refusal: NapCat's if onebot.md has it, otherwise similar.

The numbers in `notfriend` and `toolong` are invented.
"""

ARRIVED = frozenset({Fault.TIMEOUT, Fault.LATE_FORWARD})
"""Faults of messages that arrive although the answer is a refusal."""

REFUSED = frozenset(WORDINGS) - ARRIVED - {Fault.NO_MESSAGE}
SENDING = (Fault.SILENCE, Fault.LOST, Fault.NEXT_CONNECTION, *sorted(ARRIVED), *sorted(REFUSED))
ONLY = {Fault.REFUSE_MENTION: "at", Fault.REFUSE_QUOTE: "reply", Fault.LATE_FORWARD: "node"}
"""The segment that a message must have to be hit."""

WORDED = frozenset({Fault.REFUSE, *ONLY})
"""The refusals with a custom text."""

ASKING = (Fault.RECALL, Fault.RECONNECT, Fault.DROP)

VALUES = {
    Fault.SLOW: 1.0,  # seconds
    Fault.DISORDER: 2.0,  # answers
    Fault.REPEAT: 1.0,  # events
    Fault.RECALL: 0.0,  # seconds
    Fault.RECONNECT: 1.0,  # seconds
    Fault.DROP: 5.0,  # seconds
}
"""The faults with a number, and its default."""

WHEN = re.compile(r"(?:^|\s)(?:(next|always|off)|([0-9]{1,6})\s+times?)\s*$", re.IGNORECASE)


PART = re.compile(r"^(refuse)\s+(mention|quote)\b", re.IGNORECASE)
OWN_ANSWER = re.compile(r"(code|result)\s+(-?[0-9]{1,9})(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


NO_SUCH_FAULT = Phrase("没有这种故障：{name}", "there is no fault {name}")
TAKES_NONE = Phrase(
    "{fault} 后面不能写 {own}，只能写 next、always、N times、off",
    "{fault} takes no {own}, only: next, always, N times, off",
)
NO_NUMBER = Phrase("{text} 不是数字", "{text} is not a number")
CATALOGUE.register(__name__, globals())


class NoFault(BotError):
    """A line that arms nothing; the text says in both languages what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Armed:
    """A waiting fault: its remaining hits (None: all), its number, and its text, if any. A refusal
    has this `retcode`; with a `result`, the text is from QQ's kernel in its EventRet. `about`
    limits it to messages with this text.
    """

    fault: Fault
    times: int | None = 1
    value: float = 0.0
    wording: str = ""
    retcode: int = NOT_DONE
    result: int | None = None
    about: str = ""

    def __str__(self) -> str:
        when = {None: "always", 0: "off", 1: "next"}.get(self.times, f"{self.times} times")
        value = f"{self.value:g}" if self.fault in VALUES else ""
        code = f"code {self.retcode}" if self.retcode != NOT_DONE else ""
        code = f"result {self.result}" if self.result is not None else code
        own_words = self.wording if code or self.wording != WORDINGS.get(self.fault) else ""
        return " ".join(filter(None, (self.fault, value, code, own_words, when)))

    @property
    def refusal(self) -> CallRefused:
        """The refusal of a call that it hits."""
        if self.result is None:
            return CallRefused(self.retcode, self.wording)
        return CallRefused(self.retcode, unconfirmed(result=self.result, errMsg=self.wording))

    def hits(self, segments: Iterable[Json]) -> bool:
        """Whether it applies to a message with these segments."""
        only = ONLY.get(self.fault)
        is_of_kind = only is None or any(segment["type"] == only for segment in segments)
        return is_of_kind and self.about in json.dumps(list(segments), ensure_ascii=False)


class Faults:
    def __init__(self) -> None:
        self._armed: dict[Fault, Armed] = {}  # in order of arming

    @property
    def armed(self) -> tuple[Armed, ...]:
        """The waiting faults, in order of arming."""
        return tuple(self._armed.values())

    def arm(
        self,
        fault: Fault,
        *,
        times: int | None = 1,
        value: float | None = None,
        wording: str | None = None,
    ) -> Armed:
        """Arm a fault for this many hits: None for all, 0 to disarm. It replaces an armed one of
        its kind.

        `value` is in the unit of `VALUES`, `wording` is the text of a refusal.
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
        """Arm the result of `parse_fault`."""
        self._armed.pop(armed.fault, None)
        if armed.times != 0:
            self._armed[armed.fault] = armed

    def disarm(self) -> None:
        self._armed.clear()

    def use(self, *faults: Fault, segments: Iterable[Json] = ()) -> Armed | None:
        """Use a hit of the first armed fault that applies to the segments, if any."""
        armed = next(
            (one for one in self._armed.values() if one.fault in faults and one.hits(segments)),
            None,
        )
        if armed is not None and armed.times is not None:
            if armed.times > 1:
                self._armed[armed.fault] = replace(armed, times=armed.times - 1)
            else:
                del self._armed[armed.fault]
        return armed


def parse_fault(text: str) -> Armed:
    """Read `NAME [NUMBER] [next | always | N times | off]`, as in `slow 0.5 3 times`; `next` is the
    default.

    A refusal takes its text instead of a number, after `code N` (its retcode) or `result N` (of
    QQ's kernel). Raises NoFault.
    """
    name, _, rest = PART.sub(r"\1-\2", text.strip()).partition(" ")
    if name.lower() not in set(Fault):
        raise NoFault(NO_SUCH_FAULT.fill(name=name))
    fault = Fault(name.lower())
    when = WHEN.search(rest)
    own = rest[: when.start() if when else None].strip()
    times = _times(when)
    if fault in VALUES:
        return Armed(fault, times, parse_number(own) if own else VALUES[fault])
    if own and fault not in WORDED:
        raise NoFault(TAKES_NONE.fill(fault=str(fault), own=own))
    if (answer := OWN_ANSWER.fullmatch(own)) is not None:
        kind, number, said = answer[1].lower(), int(answer[2]), answer[3] or ""
        if kind == "result":
            return Armed(fault, times, wording=said, result=number)
        return Armed(fault, times, wording=said, retcode=number)
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
    """A number of at least 0. Raises NoFault."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise NoFault(NO_NUMBER.fill(text=text))
    return number
