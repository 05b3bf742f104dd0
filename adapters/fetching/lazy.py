"""A web client created at its first request: httpx is large, and an idle bot does without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from adapters.fetching.limits import FetchLimits
from bot.core.ports import WebResponse
from frostagent.types.ports import Clock

if TYPE_CHECKING:
    from adapters.fetching.client import HttpxWeb


class LazyWeb:
    """Fits `Web`: an `HttpxWeb` with these arguments (see there), made by the first request."""

    def __init__(
        self,
        *,
        clock: Clock,
        user_agent: str,
        base_urls: Mapping[str, str],
        limits: FetchLimits | None = None,
        foreign: bool = False,
    ) -> None:
        def make() -> HttpxWeb:
            from adapters.fetching.client import HttpxWeb

            return HttpxWeb(
                clock=clock,
                user_agent=user_agent,
                base_urls=base_urls,
                limits=limits,
                foreign=foreign,
            )

        self._make = make
        self._web: HttpxWeb | None = None

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        fresh: float = 0,
        keep: Callable[[WebResponse], bool] | None = None,
    ) -> WebResponse:
        """See `Web.get`. Raises ToolFailed."""
        return await self._made().get(url, params=params, headers=headers, fresh=fresh, keep=keep)

    async def post(
        self, url: str, *, json: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> WebResponse:
        """See `Web.post`. Raises ToolFailed."""
        return await self._made().post(url, json=json, headers=headers)

    def _made(self) -> HttpxWeb:
        if self._web is None:
            self._web = self._make()
        return self._web

    async def aclose(self) -> None:
        """Close the connections, if any were made."""
        if self._web is not None:
            await self._web.aclose()
