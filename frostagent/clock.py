"""The real time and the real chance behind the `Clock` and `Ids` ports: no other module asks for
either.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Coroutine
from typing import Any

# No 0/o, 1/i/l: people read trace ids aloud from a phone. In order, as the ids are.
TRACE_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
TRACE_LENGTH = 8
PAIRS = [first + second for first in TRACE_ALPHABET for second in TRACE_ALPHABET]
TRACES = len(TRACE_ALPHABET) ** TRACE_LENGTH
# bits of the longest step from one id to the next: it changes the last three or four letters
STEP = 16


class SystemClock:
    """Wall time, monotonic time and waiting, from the operating system."""

    # The system's own functions: a message asks thirty times what time it is.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(seconds)


class RandomIds:
    """Trace ids of eight letters, and jitter.

    The ids rise by random steps from a random beginning: new ones stand side by side in the
    journal's indexes, each of which would else touch a page of its own (an eighth of the time of
    writing, measured), and two processes hardly ever give the same. They name, they open nothing:
    nothing is granted to who knows one.
    """

    def __init__(self) -> None:
        self._last = secrets.randbelow(TRACES)

    def trace(self) -> str:
        self._last = rest = (self._last + 1 + random.getrandbits(STEP)) % TRACES
        letters = ""
        for _ in range(TRACE_LENGTH // 2):
            rest, pair = divmod(rest, len(PAIRS))
            letters = PAIRS[pair] + letters
        return letters

    def jitter(self) -> float:
        return random.random()  # noqa: S311  # spreads retries; nothing secret hangs on it
