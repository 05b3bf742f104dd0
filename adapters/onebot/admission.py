"""Who may come in: the token that a OneBot server offers, and the account it belongs to."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import parse_qs

from websockets.http11 import Request


class TokenRefused(Enum):
    """Why somebody does not come in."""

    NO_TOKEN = auto()
    WRONG_TOKEN = auto()


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who comes in; `account` is the one whose token it was, 0 where the token is
    everybody's.
    """

    account: int = 0


class Admission:
    """The tokens: one for everybody who has none of their own, and one for each of these accounts.

    Without any token everybody comes in. An account that has a token is let in by that one only.
    """

    def __init__(self, token: str, accounts: Mapping[int, str] | None = None) -> None:
        common = [(0, token.encode())] if token else []
        self._tokens = [
            *common,
            *((account, own.encode()) for account, own in (accounts or {}).items()),
        ]
        self.reserved: Collection[int] = frozenset(accounts or ())

    @property
    def is_open(self) -> bool:
        """Whether everybody comes in."""
        return not self._tokens

    def judge(self, request: Request) -> Admitted | TokenRefused:
        """Compare everything that is offered with every token, so that the time it takes tells
        nothing.
        """
        if self.is_open:
            return Admitted()
        offered = list(_tokens(request))
        found = [
            account
            for account, token in self._tokens
            for one in offered
            if hmac.compare_digest(one, token)
        ]
        if found:
            return Admitted(max(found))
        return TokenRefused.WRONG_TOKEN if offered else TokenRefused.NO_TOKEN


def header(request: Request | None, name: str) -> str:
    """The first header of that name; empty where there is none."""
    values = request.headers.get_all(name) if request is not None else []
    return values[0] if values else ""


def _tokens(request: Request) -> Iterator[bytes]:
    """The tokens offered: `Bearer x`, `Token x`, a bare `x`, `?access_token=x`. `Bearer ` with
    nothing is nothing.
    """
    value = header(request, "Authorization").strip()
    scheme, _, rest = value.partition(" ")
    bare = rest.strip() if scheme.lower() in ("bearer", "token") else value
    # Nobody encodes a + in a token as %2B who writes the url by hand.
    query = request.path.partition("?")[2].partition("#")[0].replace("+", "%2B")
    if bare:
        # As the library decodes headers: the bytes that came.
        yield bare.encode("latin-1", "replace")
    for token in parse_qs(query).get("access_token", ()):
        yield token.encode()
