"""Access tokens: which connections are accepted, and how the bot presents its own."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from websockets.http11 import Request


class TokenRefused(Enum):
    """Why a client is rejected."""

    NO_TOKEN = auto()
    WRONG_TOKEN = auto()


@dataclass(frozen=True, slots=True)
class Admitted:
    """`account` is the owner of the client's token, 0 if the token is shared."""

    account: int = 0


class Admission:
    """A shared token, and the tokens of accounts that have their own.

    Without any token, every client is accepted. An account with its own token is accepted by no
    other.
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
        return not self._tokens

    def judge(self, request: Request) -> Admitted | TokenRefused:
        """Compare every offered token with every token, so that the time taken reveals nothing."""
        if self.is_open:
            return Admitted()
        offered = list(_offered_tokens(request))
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
    """The first header of that name, or an empty string."""
    values = request.headers.get_all(name) if request is not None else []
    return values[0] if values else ""


def _offered_tokens(request: Request) -> Iterator[bytes]:
    """The offered tokens: `Bearer x`, `Token x`, a bare `x`, `?access_token=x`; not `Bearer `."""
    value = header(request, "Authorization").strip()
    scheme, _, rest = value.partition(" ")
    bare = rest.strip() if scheme.lower() in ("bearer", "token") else value
    # People who write the URL by hand do not encode a + in the token as %2B.
    query = request.path.partition("?")[2].partition("#")[0].replace("+", "%2B")
    if bare:
        # the original bytes: the library decodes headers as latin-1
        yield bare.encode("latin-1", "replace")
    for token in parse_qs(query).get("access_token", ()):
        yield token.encode()


def present_token(token: str) -> dict[str, str]:
    # a header is bytes here and latin-1 in the library
    bearer = f"Bearer {token}".encode().decode("latin-1")
    return {"Authorization": bearer} if token else {}


def with_token(url: str, token: str) -> str:
    """Add the token to the URL's query, unless it has one."""
    parts = urlsplit(url)
    if not token or "access_token" in parse_qs(parts.query):
        return url
    query = "&".join(filter(None, (parts.query, urlencode({"access_token": token}))))
    return urlunsplit(parts._replace(query=query))


def without_secrets(url: str) -> str:
    """The URL for logs: without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
