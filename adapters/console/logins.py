"""Logins: the token, single-use links, authenticator codes (RFC 6238), and open logins.

Nothing stored can be used to log in: links are kept as hashes, in memory; logins as hashes sealed
with the token, which survive a restart and end with that token. The token is only in the settings,
never in a cookie or a log.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b32decode
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from frostagent.types.ports import Clock

CODE_SECONDS = 30  # how long an authenticator shows a code
CODE_DIGITS = 6
CLOCK_STEPS = 1  # codes by which a phone's clock may be off
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
LINK_SECONDS = 5 * MINUTE  # validity of a link
LOGIN_IDLE, LOGIN_LONGEST = 12 * HOUR, 7 * DAY  # validity of an unused login, and of any login
BURST, EVERY = 5, 10.0  # attempts at once, and seconds for each further one
TOKEN_BYTES = 32
MAX_LOGINS = 100  # logins and links each; the oldest is dropped
K = TypeVar("K")
T = TypeVar("T")


class Totp:
    """Checks the codes of an authenticator app, each valid once; off without a secret."""

    def __init__(self, secret: str, *, clock: Clock) -> None:
        """`secret` is base32, as apps take it."""
        self._key = b32decode(secret + "=" * (-len(secret) % 8))
        self._clock = clock
        self._used = -1

    @property
    def is_on(self) -> bool:
        return bool(self._key)

    def use(self, given: str) -> bool:
        """Accept a code that is valid now; this invalidates all earlier codes."""
        now = int(self._clock.now() // CODE_SECONDS)
        said = given.strip().encode("ascii", "replace")
        for step in range(max(now - CLOCK_STEPS, self._used + 1), now + CLOCK_STEPS + 1):
            if hmac.compare_digest(code_of(self._key, step).encode(), said):
                self._used = step
                return True
        return False


def code_of(key: bytes, step: int) -> str:
    digest = hmac.digest(key, step.to_bytes(8, "big"), "sha1")  # supported by every app
    at = digest[-1] & 15
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFF_FFFF
    return str(number % 10**CODE_DIGITS).zfill(CODE_DIGITS)


class Login(Struct):
    """An open login. `name` is the beginning of its hash; times in seconds since 1970."""

    name: str
    address: str
    way: str
    opened: float
    used: float

    def is_over(self, now: float) -> bool:
        return now - self.used > LOGIN_IDLE or now - self.opened > LOGIN_LONGEST


class Tries:
    """Limits login attempts over all addresses, so that forged ones gain nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(BURST)
        self._at = clock.monotonic()

    def admit(self) -> bool:
        now = self._clock.monotonic()
        self._left = min(BURST, self._left + (now - self._at) / EVERY)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Logins:
    """The open logins, and the links that open one."""

    def __init__(
        self,
        token: str,
        *,
        totp: str = "",
        clock: Clock,
        kept: str = "",
        keep: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`totp` is the secret of an authenticator app; without it, no codes are needed. `keep` is
        called with all logins as JSON whenever they change; `kept` is that JSON from before the
        start.
        """
        self._token = _hash(token)
        self._seal = _hash(f"{token} {totp}")
        self._keep = keep
        self._clock = clock
        self._links: dict[bytes, float] = {}
        self._open = _read(kept)
        self.tries = Tries(clock)
        self.totp = Totp(totp, clock=clock)

    @property
    def open(self) -> tuple[Login, ...]:
        """The open logins, latest first."""
        now = self._clock.now()
        return tuple(login for login in reversed(self._open.values()) if not login.is_over(now))

    def invite(self) -> str:
        """The code of a new link, which can be used once within five minutes."""
        code, now = secrets.token_urlsafe(TOKEN_BYTES), self._clock.now()
        self._links = {link: end for link, end in self._links.items() if end > now}
        _keep(self._links, _hash(code), now + LINK_SECONDS)
        return code

    def by_token(self, token: str, address: str) -> str | None:
        """The cookie of a new login; None for another token."""
        if not hmac.compare_digest(_hash(token), self._token):
            return None
        return self._enter(address, "token")

    def by_code(self, code: str, address: str) -> str | None:
        """The cookie of a new login; None for an unknown, used or expired code."""
        end = self._links.pop(_hash(code), 0.0)
        return self._enter(address, "link") if self._clock.now() < end else None

    def find(self, cookie: str) -> Login | None:
        """The login of this cookie, which counts as used now; None if it is unknown or expired."""
        key, now = self._key(cookie), self._clock.now()
        login = self._open.get(key)
        if login is None or login.is_over(now):
            self._open.pop(key, None)
            return None
        used, login.used = login.used, now
        if now // HOUR != used // HOUR:
            self._write()
        return login

    def doubt(self, code: str) -> str:
        """Why a logged-in visitor may not make a serious change: `wait` (too many attempts), `code`
        (invalid), or empty.
        """
        if not self.totp.is_on:
            return ""
        if not self.tries.admit():
            return "wait"
        return "" if self.totp.use(code) else "code"

    def end(self, cookie: str) -> None:
        self._open.pop(self._key(cookie), None)
        self._write()

    def end_all(self) -> int:
        """End all logins and links. Returns the number of logins."""
        count = len(self.open)
        self._open.clear()
        self._links.clear()
        self._write()
        return count

    def _enter(self, address: str, way: str) -> str:
        cookie, now = secrets.token_urlsafe(TOKEN_BYTES), self._clock.now()
        key = self._key(cookie)
        _keep(self._open, key, Login(key[:8], address, way, now, now))
        self._write()
        return cookie

    def _key(self, cookie: str) -> str:
        return hmac.digest(self._seal, cookie.encode("utf-8", "surrogateescape"), "sha256").hex()

    def _write(self) -> None:
        now = self._clock.now()
        going = {key: login for key, login in self._open.items() if not login.is_over(now)}
        self._keep(msgspec.json.encode(going).decode())


LOGINS: Final = web.AppKey("logins", Logins)
LOGIN: Final = web.RequestKey("login", Login)  # absent unless the visitor is logged in
COOKIE: Final = web.RequestKey("cookie", str)  # of the login; empty without one


def form_token(cookie: str) -> str:
    """The token in every form of a login, unknown to other sites."""
    return hmac.digest(cookie.encode(), b"form", "sha256").hex()


def is_form_token(cookie: str, given: str) -> bool:
    return hmac.compare_digest(form_token(cookie), given.encode("ascii", "replace").decode())


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _read(kept: str) -> dict[str, Login]:
    """The stored logins; none if they are unreadable."""
    try:
        return msgspec.json.decode(kept, type=dict[str, Login]) if kept else {}
    except msgspec.DecodeError:
        return {}


def _keep(kept: dict[K, T], key: K, value: T) -> None:
    kept[key] = value
    while len(kept) > MAX_LOGINS:
        del kept[next(iter(kept))]
