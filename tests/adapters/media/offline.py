"""A web nobody is to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bot.core.ports import WebResponse


class NoWeb:
    """Fits `Web`."""

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        fresh: float = 0,
        keep: Callable[[WebResponse], bool] | None = None,
    ) -> WebResponse:
        raise AssertionError(url)

    async def post(self, url: str, *, json: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> WebResponse:
        raise AssertionError(url)
