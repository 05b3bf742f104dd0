"""The fetcher of urls for the service, loaded at the first of them: httpx is large, and an idle bot
has none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from adapters.fetching.limits import FetchLimits
from bot.domain.ports import Clock, WebResponse
from bot.runtime.version import version
from config.settings import Settings

if TYPE_CHECKING:
    from adapters.fetching.client import HttpxWeb


def user_agent(settings: Settings) -> str:
    """Who asks, and how to reach whoever runs it."""
    return f"FrostAgent/{version()}" + (
        f" (+{settings.tools_contact})" if settings.tools_contact else ""
    )


class LateWeb:
    """Fits `Web`: an `HttpxWeb` (see there), made by the first `get`."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        user_agent: str,
        limits: FetchLimits | None = None,
        foreign: bool = False,
    ) -> None:
        def make() -> HttpxWeb:
            from adapters.fetching.client import HttpxWeb

            return HttpxWeb(
                clock=clock,
                user_agent=user_agent,
                base_urls=settings.tools_mirrors,
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
        if self._web is None:
            self._web = self._make()
        return await self._web.get(url, params=params, headers=headers, fresh=fresh, keep=keep)

    async def aclose(self) -> None:
        """Close the connections, if any were made."""
        if self._web is not None:
            await self._web.aclose()
