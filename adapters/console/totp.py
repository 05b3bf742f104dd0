"""Codes of an authenticator app (RFC 6238): six digits, a new one each half minute, each good for
one use.
"""

from __future__ import annotations

import hmac
from base64 import b32decode

from bot.domain.ports import Clock

STEP = 30  # seconds of a code
DIGITS = 6
AROUND = 1  # steps that a phone's clock may be wrong


class Totp:
    """Checks codes. Without a secret none is asked for."""

    def __init__(self, secret: str, *, clock: Clock) -> None:
        """`secret` is base32, as apps take it."""
        self._key = b32decode(secret + "=" * (-len(secret) % 8))
        self._clock = clock
        self._used = -1

    @property
    def is_on(self) -> bool:
        """Whether codes are asked for."""
        return bool(self._key)

    def use(self, given: str) -> bool:
        """Whether this code is good now; it is used up then, with all before it."""
        now = int(self._clock.now() // STEP)
        said = given.strip().encode("ascii", "replace")
        for step in range(max(now - AROUND, self._used + 1), now + AROUND + 1):
            if hmac.compare_digest(code_of(self._key, step).encode(), said):
                self._used = step
                return True
        return False


def code_of(key: bytes, step: int) -> str:
    """The code of a step."""
    digest = hmac.digest(key, step.to_bytes(8, "big"), "sha1")  # what every app has
    at = digest[-1] & 15
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFF_FFFF
    return str(number % 10**DIGITS).zfill(DIGITS)
