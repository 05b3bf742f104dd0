"""The real time and the real chance behind the `Clock` and `Ids` ports; nothing else in `bot/` asks for either."""

from __future__ import annotations

import asyncio
import random
import secrets
import time

# No 0/o, 1/i/l: people read trace ids aloud from a phone.
TRACE_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


class SystemClock:
    """Wall time, monotonic time and waiting, from the operating system."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    """Unguessable trace ids of eight letters, and jitter."""

    def trace(self) -> str:
        return "".join(TRACE_ALPHABET[byte % len(TRACE_ALPHABET)] for byte in secrets.token_bytes(8))

    def jitter(self) -> float:
        return random.random()  # noqa: S311  # spreads retries; nothing secret hangs on it
