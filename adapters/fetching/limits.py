"""How much fetching may cost; apart from the client, which is loaded late."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much one `get` may cost: seconds for each request and for all of its hops, bytes of
    decoded body.

    `silent_seconds` are those in which a server need not send anything; no more than a request has.
    """

    request_seconds: float = 6.0
    total_seconds: float = 12.0
    silent_seconds: float = 6.0
    body_bytes: int = 8 * 2**20
    redirects: int = 5
