"""Answers kept for a while: an equal request is served from memory, and equal requests in flight
are one.

Invariant: whoever waits for somebody else's request gets its answer or its failure; only when that
request was cancelled does the next in line ask again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from cachetools import TTLCache

from bot.domain.errors import ToolFailed
from bot.domain.ports import Clock, WebResponse

MAX_BYTES = 32 * 2**20
MAX_SECONDS = 24 * 3600.0
ENTRY_BYTES = 1024  # what an entry costs beside its body: url, headers, key


@dataclass(frozen=True, slots=True)
class _KeptAnswer:
    response: WebResponse
    at: float


class Answers:
    """Keeps answers, bounded by bytes and by a day; nothing here survives the process."""

    def __init__(self, *, clock: Clock, max_bytes: int = MAX_BYTES) -> None:
        self._clock = clock
        self._kept: TTLCache[Hashable, _KeptAnswer] = TTLCache(
            max_bytes,
            MAX_SECONDS,
            timer=clock.monotonic,
            getsizeof=lambda kept: ENTRY_BYTES + len(kept.response.body),
        )
        self._flights: dict[Hashable, asyncio.Future[WebResponse | ToolFailed]] = {}

    async def get(
        self,
        key: Hashable,
        fetch: Callable[[], Awaitable[WebResponse]],
        *,
        fresh: float,
        keep: Callable[[WebResponse], bool] | None,
    ) -> WebResponse:
        """The kept answer if it is younger than `fresh` seconds, else what `fetch` brings. Raises
        what it raises.
        """
        while True:
            kept = self._kept.get(key)
            if kept is not None and self._clock.monotonic() - kept.at < fresh:
                return kept.response
            flight = self._flights.get(key)
            if flight is None:
                return await self._fly(key, fetch, keep)
            await asyncio.wait(
                {flight}
            )  # unlike `await flight`, being cancelled here leaves the flight alone
            if not flight.cancelled():
                return _landed(flight.result())

    async def _fly(
        self,
        key: Hashable,
        fetch: Callable[[], Awaitable[WebResponse]],
        keep: Callable[[WebResponse], bool] | None,
    ) -> WebResponse:
        flight = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            response = await fetch()
            if response.status == 200 and response.body and (keep is None or keep(response)):
                self._keep(key, response)
            flight.set_result(response)
        except ToolFailed as error:
            flight.set_result(
                error
            )  # a result, not an exception: nobody may be there to collect it
            raise
        finally:
            del self._flights[key]
            flight.cancel()  # does nothing to a flight that landed
        return response

    def _keep(self, key: Hashable, response: WebResponse) -> None:
        kept = _KeptAnswer(response, self._clock.monotonic())
        if self._kept.getsizeof(kept) <= self._kept.maxsize:
            self._kept[key] = kept


def _landed(outcome: WebResponse | ToolFailed) -> WebResponse:
    if isinstance(outcome, ToolFailed):
        raise ToolFailed(str(outcome)) from outcome
    return outcome
