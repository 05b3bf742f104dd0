from __future__ import annotations

import asyncio

import pytest

from adapters.storage.erasing import NotErased
from bot.domain.journal import MessageObserved
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import fact
from tests.adapters.storage.test_erasure import contains
from tests.fakes import GROUP, said

SECRET = "planted-霜降-word"


async def test_a_running_bot_forgets_a_person_and_no_byte_is_left(url: str) -> None:
    async with opened(url) as place:
        store = place.store
        store.put(MessageObserved(said(SECRET, user=12345), overheard=True))
        store.put(fact("m1", SECRET, subject=12345), fact("m2", "harmless", subject=777))
        await store.commit()
        assert await asyncio.to_thread(contains, place.database, SECRET)
        assert await store.erasing.forget_user(12345) > 0
        await store.erasing.sweep()
        assert not await asyncio.to_thread(contains, place.database, SECRET)
        assert await asyncio.to_thread(contains, place.database, "harmless")
        assert await store.erasing.forget_user(12345) == 0


async def test_a_running_bot_forgets_a_group(url: str) -> None:
    async with opened(url) as place:
        place.store.put(MessageObserved(said(SECRET), overheard=True))
        assert await place.store.erasing.forget_group(GROUP.session_id) > 0
        await place.store.erasing.sweep()
        assert not await asyncio.to_thread(contains, place.database, SECRET)


async def test_in_trouble_nothing_is_promised(sqlite: str) -> None:
    async with opened(sqlite) as place:
        place.store._writer.fail("the disk is full")
        with pytest.raises(NotErased, match="cannot be written"):
            await place.store.erasing.forget_user(1)
