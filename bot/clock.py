"""The real time and the real chance behind the `Clock` and `Ids` ports; nothing else in `bot/` asks for either."""

from __future__ import annotations

import asyncio
import random
import secrets
import time

# No 0/o, 1/i/l: people read trace ids aloud from a phone.
TRACE_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
TRACE_LENGTH = 8
AT_ONCE = 100  # ids that are drawn together: asking the system for chance costs more than all else about them

_LETTERS = bytes(ord(TRACE_ALPHABET[byte % len(TRACE_ALPHABET)]) for byte in range(256))


class SystemClock:
    """Wall time, monotonic time and waiting, from the operating system."""

    # The system's own functions: a message asks thirty times what time it is.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    """Unguessable trace ids of eight letters, and jitter."""

    def __init__(self) -> None:
        self._chance = b""

    def trace(self) -> str:
        if not self._chance:
            self._chance = secrets.token_bytes(AT_ONCE * TRACE_LENGTH)
        taken, self._chance = self._chance[:TRACE_LENGTH], self._chance[TRACE_LENGTH:]
        return taken.translate(_LETTERS).decode()

    def jitter(self) -> float:
        return random.random()  # noqa: S311  # spreads retries; nothing secret hangs on it
