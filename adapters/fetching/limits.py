"""The limits of fetching, separate from the client, which is loaded late."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The limits of one `get`: seconds per request and for all hops, bytes of decoded body.

    `silent_seconds` limits the time without data, and at most to that of a request.
    """

    request_seconds: float = 6.0
    total_seconds: float = 12.0
    silent_seconds: float = 6.0
    body_bytes: int = 8 * 2**20
    redirects: int = 5
