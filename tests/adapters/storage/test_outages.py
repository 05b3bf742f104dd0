"""A database that goes, comes back, or loses a connection at the wrong moment: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters.storage.queries import unfinished
from bot.core.journal import MessageErased, Recovery
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import asked, heard, opening
from tests.adapters.storage.proxy import proxied
from tests.adapters.storage.test_store import fill, written
from tests.fakes import GROUP

left = unfinished.recover


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
        await proxy.fix()
        await at.wait_told(2)
        assert at.told[1].endswith("102 entries caught up, 0 lost.")
        assert await written(at) == [str(number) for number in range(103)]


async def test_a_server_that_is_not_there_at_the_start_is_trouble_not_the_end(postgres: str) -> None:
    async with proxied(postgres) as (proxy, url):
        await proxy.cut()
        async with opened(url) as at:
            assert len(at.told) == 1
            assert not await at.store.commit(heard(message_id="0"))
            await proxy.fix()
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


async def test_what_was_left_is_not_settled_while_it_can_be_read_but_nothing_written(tmp_path: Path) -> None:
    """Whoever settled it could not write that down, and would settle it again at the next start."""
    file = tmp_path / "frost.db"
    async with opened(f"sqlite:///{file}") as first:
        assert await first.store.commit(opening("t1"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # as a disk that is mounted read-only: who reads is served
        async with opened(f"sqlite:///{file}") as second:
            assert await second.store.recover() is None
            other.execute("ROLLBACK")
            await second.wait_told(2)
            recovery = await second.store.recover()
            assert recovery is not None
            assert [turn.turn_id for turn in recovery.turns] == ["t1"]


async def test_what_was_read_in_trouble_is_not_settled_though_that_ended_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lacks what was kept in memory, as a recall, and what an earlier process wrote ahead."""
    file, question, is_back = tmp_path / "frost.db", asked("hello", message_id="7"), threading.Event()
    async with opened(f"sqlite:///{file}") as first:
        assert await first.store.commit(question, opening("t1", question.message))
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with opened(f"sqlite:///{file}") as second:
            second.store.put(MessageErased(GROUP, "7"))

            async def notice() -> None:
                await second.wait_told(2)
                is_back.set()

            def recover(*arguments: Any) -> Recovery:
                recovery = left(*arguments)
                if other.in_transaction:
                    other.execute("ROLLBACK")
                    assert is_back.wait(10)  # a thread of the store: the loop goes on
                return recovery

            monkeypatch.setattr(unfinished, "recover", recover)
            async with asyncio.TaskGroup() as group:
                noticing = group.create_task(notice())
                assert await second.store.recover() is None
                noticing.cancel()
            if other.in_transaction:
                other.execute("ROLLBACK")
            await second.wait_told(2)
            recovery = await second.store.recover()
            assert recovery is not None
            assert [turn.recalled for turn in recovery.turns] == [True]


async def test_a_recall_while_what_was_left_is_read_is_known_when_it_is_settled(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, loop = asked("hello", message_id="7"), asyncio.get_running_loop()
    readings: list[Recovery] = []
    async with opened(sqlite) as first:
        assert await first.store.commit(question, opening("t1", question.message))
    async with opened(sqlite) as second:

        def recover(*arguments: Any) -> Recovery:
            readings.append(left(*arguments))
            if len(readings) == 1:
                loop.call_soon_threadsafe(second.store.put, MessageErased(GROUP, "7"))
            return readings[-1]

        monkeypatch.setattr(unfinished, "recover", recover)
        recovery = await second.store.recover()
        assert [[turn.recalled for turn in each.turns] for each in readings] == [[False], [True]]
        assert recovery is not None
        assert [turn.recalled for turn in recovery.turns] == [True]


async def test_a_folder_that_nobody_may_look_into_is_trouble_not_the_end(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("adapters.storage.files.make_folder", closed)
        patched.setattr(Path, "exists", closed)
        async with opened(sqlite) as at:
            patched.undo()
            assert "Permission denied" in at.told[0]
            await at.wait_told(2)
            assert await at.store.commit(heard())
