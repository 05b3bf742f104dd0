from __future__ import annotations

import asyncio

from frostagent.cancellation import background


async def test_work_lasts_as_long_as_the_block_and_is_waited_for() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async with asyncio.timeout(30), background(work()):
        await begun.wait()
        assert not ended.is_set()
    assert ended.is_set()
