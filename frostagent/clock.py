"""The system's time and randomness, for `Clock` and `Ids`. No other module uses them."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Coroutine
from typing import Any

# Without 0/o and 1/i/l: people read trace ids aloud. In ascending order, like the ids.
TRACE_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
TRACE_LENGTH = 8
PAIRS = [first + second for first in TRACE_ALPHABET for second in TRACE_ALPHABET]
TRACES = len(TRACE_ALPHABET) ** TRACE_LENGTH
# bits of the largest step between two ids: it changes the last three or four letters
STEP = 16


class SystemClock:
    """The operating system's time and sleep.

    SystemClock().now()  # seconds since 1970
    """

    # Direct references for speed: each message reads the time about thirty times.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(seconds)


class RandomIds:
    """Trace ids of eight letters, and jitter.

    Ids rise by random steps from a random start. Neighbouring ids share pages of the journal's
    indexes (random ids made writing an eighth slower, measured), and two processes hardly ever
    produce the same. An id is a name, not a secret: knowing one grants nothing.
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
        return random.random()  # noqa: S311  # spreads retries, not a secret
