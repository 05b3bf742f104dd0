"""A PostgreSQL server that goes, comes back, or loses a connection at the wrong moment: nothing lost, nothing twice."""

from __future__ import annotations

from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import heard
from tests.adapters.storage.proxy import proxied
from tests.adapters.storage.test_store import fill, written
from tests.fakes import GROUP


async def test_a_server_that_goes_and_comes_back_costs_nothing(postgres: str) -> None:
    async with proxied(postgres) as (proxy, url), opened(url) as at:
        assert await at.store.commit(heard(message_id="0"))
        assert await at.store.find(GROUP, "0") is not None
        await proxy.cut()
        assert not await at.store.commit(heard(message_id="1"))
        await fill(at, 100, begin=2)
        assert not await at.store.commit(heard(message_id="102"))
        assert await at.store.remember(GROUP) is None
        assert len(at.told) == 1
        assert "PostgreSQL, postgres at 127.0.0.1" in at.told[0]
        await proxy.mend()
        await at.wait_told(2)
        assert at.told[1].endswith("102 entries caught up, 0 lost.")
        assert await written(at) == [str(number) for number in range(103)]


async def test_a_server_that_is_not_there_at_the_start_is_trouble_not_the_end(postgres: str) -> None:
    async with proxied(postgres) as (proxy, url):
        await proxy.cut()
        async with opened(url) as at:
            assert len(at.told) == 1
            assert not await at.store.commit(heard(message_id="0"))
            await proxy.mend()
            await at.wait_told(2)
            assert await at.store.commit(heard(message_id="1"))
            assert await written(at) == ["0", "1"]


async def test_a_connection_lost_during_a_commit_doubles_nothing(postgres: str) -> None:
    async with proxied(postgres) as (proxy, url), opened(url) as at:
        assert await at.store.commit(heard(message_id="0"))
        at.batches.close()  # the next connection goes through a proxy that cuts
        lost: list[bytes] = []

        def passes(data: bytes) -> bool:
            if b"COMMIT" in data and not lost:
                lost.append(data)
                return False
            return True

        proxy.on_data = passes
        await fill(at, 10, begin=1)
        await at.store.commit(heard(message_id="11"))
        if len(at.told) == 1:
            await at.wait_told(2)
        assert lost
        assert await written(at) == [str(number) for number in range(12)]
