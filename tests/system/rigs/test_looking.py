from __future__ import annotations

from tests.adapters.console.visiting import visiting
from tests.bench.looking import OPEN, looked_at
from tests.fakes import until


async def test_whoever_looks_has_a_stream_open_until_it_is_measured() -> None:
    async with visiting() as place:
        await place.log_in()
        async with looked_at(OPEN, int(place.host.rpartition(":")[2])):
            await until(lambda: place.streams() == 1)
        await until(lambda: place.streams() == 0)
