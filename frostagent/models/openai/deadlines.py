"""How long one attempt may take: every deadline of it, on one timer.

What counts is the answer, not the bytes: comments and empty deltas keep a connection alive for ever
if a server wants that, and somebody is waiting. All times are in seconds.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Final

from frostagent.models.openai.stream import AnswerReader
from frostagent.text.language import Bilingual, fill_pair

FAREWELL = 0.25  # after [DONE] for the end of the body: with it the connection can be used again


TOO_LONG: Final = ("过了 {seconds} 秒还没答复完", "the answer was not finished after {seconds} s")
NOT_BEGUN: Final = (
    "等了 {seconds} 秒还没开始答复：模型可能还在加载",
    "no answer began within {seconds} s: the model may still be loading",
)
STOPPED: Final = ("答复停了 {seconds} 秒", "the answer stopped for {seconds} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Deadlines of one attempt in seconds (vendors.md section 9).

    `first_token` runs from the request to the first piece of the answer, thoughts included; 0 is no
    such deadline. From then on `idle` runs between bytes, `silence` between pieces of the answer,
    however much a server keeps the connection alive; `total` over everything. `closing` is how long
    a finished answer waits, in all, for its usage and the end of the stream.
    """

    connect: float = 10.0
    first_token: float = 60.0
    idle: float = 90.0
    silence: float = 180.0
    total: float = 600.0
    closing: float = 3.0


class Deadline:
    """The deadlines of one attempt, from now on. `timer` is entered around all of it."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeouts = timeouts
        self._start = self._loop.time()
        self._end = self._start + timeouts.total
        self._first_by = self._start + (timeouts.first_token or math.inf)
        self._closed_by = self._gone_by = math.inf
        self._pieces = 0
        self._latest = self._start
        self.first_token: float | None = None  # seconds from the start, of a streamed answer
        self.timer = asyncio.timeout_at(min(self._first_by, self._end))

    def hear(self, reader: AnswerReader) -> None:
        """Bytes came and were read."""
        if reader.pieces != self._pieces:
            self._pieces, self._latest = reader.pieces, self._loop.time()
            if self.first_token is None and reader.is_stream:
                self.first_token = self._latest - self._start

    def go_on(self, reader: AnswerReader) -> None:
        """Wait for more than was heard, but not long once the answer is there."""
        now = self._loop.time()
        if reader.is_complete:
            self._closed_by = min(self._closed_by, now + self._timeouts.closing)
        if reader.is_done:
            self._gone_by = min(self._gone_by, now + FAREWELL)
        if self._pieces:
            silent = min(now + self._timeouts.idle, self._latest + self._timeouts.silence)
        else:
            silent = self._first_by
        self.timer.reschedule(min(silent, self._closed_by, self._gone_by, self._end))

    @property
    def has_no_answer(self) -> bool:
        """Whether it is over because no answer began; one that is over by the time for everything
        is so as well.
        """
        return self.timer.expired() and not self._pieces

    def explain(self) -> Bilingual:
        """Which deadline it was that passed."""
        now, timeouts = self._loop.time(), self._timeouts
        if now >= self._end:
            return fill_pair(TOO_LONG, seconds=f"{timeouts.total:g}")
        if not self._pieces:
            return fill_pair(NOT_BEGUN, seconds=f"{timeouts.first_token:g}")
        return fill_pair(STOPPED, seconds=f"{now - self._latest:.3g}")
