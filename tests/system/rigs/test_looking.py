from __future__ import annotations

from typing import Any

from tests.adapters.console.visiting import visiting
from tests.bench.looking import OPEN, looked_at
from tests.fakes import until


async def test_whoever_looks_has_a_stream_open_until_it_is_measured() -> None:
    async with visiting() as place:
        await place.log_in()
        live: Any = next(route for route in place.routes() if route.path == "/live").handler
        streams = live.__self__.open
        async with looked_at(OPEN, int(place.host.rpartition(":")[2])):
            await until(lambda: streams.total() == 1)
        await until(lambda: streams.total() == 0)
