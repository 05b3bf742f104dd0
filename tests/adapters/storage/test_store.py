"""The store as the bot uses it: both databases, restarts, every kind of trouble, and what it costs to start."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select

from adapters.storage import store as module
from adapters.storage.retention import DAY
from adapters.storage.tables import messages, versions
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import MessageErased, MessageOverheard, Recovery, Remembered, SendChanged, SendState
from bot.memory.history import MAX_OVERHEARD, History
from frostagent.types.errors import ConfigError
from tests.adapters.storage.conftest import Opened, ParkedClock, locked, opened
from tests.adapters.storage.entries import NOW, asked, closing, heard, opening, sending
from tests.fakes import BOT, GROUP, said, until

ROOT = Path(__file__).parents[3]


async def fill(store: Opened, count: int, *, begin: int = 0) -> list[MessageReceived]:
    """Chatter that nobody waits for."""
    entries = [heard(message_id=str(begin + number)) for number in range(count)]
    for entry in entries:
        store.store.put(entry)
    return [entry.message for entry in entries]


async def remember(store: Opened, where: Conversation = GROUP) -> Remembered:
    """What is remembered; it can be read."""
    remembered = await store.store.remember(where)
    assert remembered is not None
    return remembered


async def written(store: Opened) -> list[str]:
    """The ids of all messages in the database."""

    await store.store.commit()

    def read() -> list[str]:
        with store.database.reading() as connection:
            return list(connection.scalars(select(messages.c.message_id).order_by(messages.c.id)))

    return await asyncio.get_running_loop().run_in_executor(None, read)


# --- in good days ---------------------------------------------------------------------------------


async def test_a_conversation_survives_a_restart(url: str) -> None:
    turn = opening("t1", asked().message)
    async with opened(url) as first:
        first.store.put(heard("before"))
        assert await first.store.commit(turn)
        first.store.put(closing(turn), heard("after", message_id="7"))
        before = await first.store.remember(GROUP)
    async with opened(url) as second:
        after = await remember(second)
        assert after == before
        assert [round_.messages for round_ in after.rounds] == [closing(turn).round]
        assert [message.message_id for message in after.overheard] == ["7"]
        assert await second.store.find(GROUP, "7") == after.overheard[0]
    assert first.told == second.told == []


async def test_what_was_put_a_moment_ago_is_read(url: str) -> None:
    async with opened(url) as at:
        (message,) = await fill(at, 1)
        assert await at.store.find(GROUP, message.message_id) == message
        assert (await remember(at)).overheard == (message,)


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_that_was_said_before_a_turn_is_left_for_the_next_one(url: str, seed: int) -> None:
    """Whatever was recalled, pushed out or read anew meanwhile."""
    chance, number = random.Random(seed), 0
    async with opened(url) as at:
        history = History(store=at.store)
        for _ in range(60):
            match chance.choice(["turn", "turn", "turn", "chatter", "recall", "reread"]):
                case "chatter":
                    for message in await fill(at, chance.choice([1, 5, MAX_OVERHEARD + 1]), begin=number):
                        history.overhear(message)
                        number += 1
                case "recall":
                    for message_id in map(str, range(max(0, number - MAX_OVERHEARD), number)):
                        at.store.put(MessageErased(GROUP, message_id))
                        history.forget_message(GROUP, message_id)
                case "reread":
                    assert await history.reread()
                case _:
                    question, number = asked(message_id=str(number)), number + 1
                    await history.load(GROUP)
                    history.take_overheard(GROUP)
                    at.store.put(question, opening(f"t{number}", question.message))
                    assert (await remember(at)).overheard == ()
        recovery = await at.store.recover()
    assert recovery is not None
    assert recovery.waking == ()


async def test_what_was_left_unfinished_is_recovered(url: str) -> None:
    async with opened(url) as first:
        turn = opening("t1")
        first.store.put(asked("and I?"), turn, sending("s1", "t1"))
        await first.store.commit(SendChanged(send_id="s1", state=SendState.SENDING, at=NOW))
    async with opened(url) as second:
        recovery = await second.store.recover()
    assert recovery is not None
    assert [found.turn_id for found in recovery.turns] == ["t1"]
    assert [send.state for send in recovery.sends] == [SendState.SENDING]
    assert len(recovery.waking) == len(recovery.seen) == 1


async def test_what_is_put_last_is_written_at_the_end(url: str) -> None:
    async with opened(url) as first:
        await fill(first, 500)
    async with opened(url) as second:
        assert await written(second) == [str(number) for number in range(500)]


async def test_even_where_the_bot_ends_by_an_error(sqlite: str) -> None:
    async def end() -> None:
        async with opened(sqlite) as first:
            await fill(first, 5)
            raise ArithmeticError("a bug")

    with pytest.raises(ExceptionGroup) as caught:
        await end()
    assert caught.group_contains(ArithmeticError)
    async with opened(sqlite) as second:
        assert len(await written(second)) == 5


async def test_a_conversation_nobody_has_heard_of_costs_no_read(sqlite: str) -> None:
    queries: list[object] = []

    def count(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        queries.append(statement)

    old, new, later = GROUP, Conversation(BOT, "group", 1), Conversation(BOT, "group", 2)
    async with opened(sqlite) as first:
        await first.store.commit(heard())
    async with opened(sqlite) as second:
        await second.store.recover()
        listening: Any = second.database._reading
        event.listen(listening, "before_cursor_execute", count)
        assert await second.store.remember(new) == Remembered()
        assert queries == []
        second.store.put(heard(where=new), MessageOverheard(said("?", where=later)))
        for where in (old, new, later):
            queries.clear()
            assert len((await remember(second, where)).overheard) == 1
            assert queries


async def test_many_at_once_wait_for_each_other(url: str) -> None:
    async with opened(url) as at:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(at.store.commit(heard(message_id=str(number)))) for number in range(200)]
        assert all(task.result() for task in tasks)
        assert await written(at) == [str(number) for number in range(200)]


async def test_old_rows_are_deleted_while_the_bot_runs(url: str) -> None:
    clock = ParkedClock()
    async with opened(url, clock=clock, keep_days=7, keep_messages=0) as at:
        await fill(at, 3)
        await at.store.commit()
        assert at.batches.run(_age) == 3
        await fill(at, 2, begin=3)
        await at.store.commit()
        seconds, wait = clock.parked.pop()
        assert seconds == module.FIRST_SWEEP
        wait.set()
        await until(lambda: clock.parked)
        assert clock.parked[0][0] == module.SWEEPS
        assert await written(at) == ["3", "4"]


def _age(connection: Any) -> int:
    return int(connection.execute(messages.update().values(taken=NOW - 8 * DAY)).rowcount)


async def test_a_sweep_that_fails_is_tried_again_later(sqlite: str) -> None:
    clock = ParkedClock()
    async with opened(sqlite, clock=clock) as at:
        await until(lambda: clock.parked)
        with locked(at.database):
            clock.parked.pop()[1].set()
            await until(lambda: clock.parked)
        assert at.told == []
        assert await at.store.commit(heard())


# --- trouble: the place ---------------------------------------------------------------------------


async def test_a_folder_that_cannot_be_made_is_trouble_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    async with opened(f"sqlite:///{tmp_path}/data/frost.db") as at:
        assert "The journal cannot be written" in at.told[0]
        assert f"{tmp_path}/data" in at.told[0]
        assert await at.store.recover() is None
        assert await at.store.remember(GROUP) is None
        assert await at.store.heard(GROUP, ["1"]) is None
        assert await at.store.find(GROUP, "1") is None
        await fill(at, 3)
        assert not await at.store.commit(heard(message_id="3"))
        (tmp_path / "data").unlink()
        await at.wait_told(2)
        assert "is written again" in at.told[1]
        assert "4 entries caught up, 0 lost" in at.told[1]
        assert await at.store.commit(heard(message_id="4"))
        assert await written(at) == ["0", "1", "2", "3", "4"]
        assert len((await remember(at)).overheard) == 5


async def test_what_an_earlier_life_left_can_still_be_recovered_when_the_place_works_again(tmp_path: Path) -> None:
    """And of this life nothing is: it goes on by itself."""
    data, away = tmp_path / "data", tmp_path / "away"
    async with opened(f"sqlite:///{data}/frost.db") as first:
        assert await first.store.commit(opening("t1"), asked("old", message_id="1"))
    data.rename(away)
    data.write_text("a file where the folder should be")
    async with opened(f"sqlite:///{data}/frost.db") as second:
        assert await second.store.recover() is None
        question = asked("new", message_id="2")
        second.store.put(question, opening("t2", question.message, at=time.time()))
        data.unlink()
        away.rename(data)
        await second.wait_told(2)
        recovery = await second.store.recover()
        assert recovery is not None
        assert [turn.turn_id for turn in recovery.turns] == ["t1"]
        assert [message.message_id for message in recovery.waking] == ["1"]
        assert await second.store.heard(GROUP, ["1", "2", "3"]) == {"1", "2"}


async def test_a_full_disk_is_told_once_and_nothing_is_lost(sqlite: str) -> None:
    async with opened(sqlite) as at:
        full = {"now": True}

        def limit(connection: Any, *_: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 2 if full['now'] else 2**30}").close()

        assert await at.store.commit(heard(message_id="0"))
        listening: Any = at.database._writing
        event.listen(listening, "connect", limit)
        at.batches.close()  # the next connection has the limit
        begun = asyncio.get_running_loop().time()
        assert not await at.store.commit(*[heard("x" * 1000, message_id=str(number)) for number in range(1, 50)])
        assert not await at.store.commit(heard(message_id="50"))
        assert asyncio.get_running_loop().time() - begun < 1
        assert "full" in at.told[0]
        assert len((await remember(at)).overheard) == 1  # what is written can still be read
        full["now"] = False
        await at.wait_told(2)
        assert await written(at) == [str(number) for number in range(51)]


async def test_a_file_that_was_taken_away_is_made_again(sqlite: str, tmp_path: Path) -> None:
    async with opened(sqlite) as at:
        assert await at.store.commit(heard(message_id="0"))
        assert await at.store.commit()  # in its table, too
        with locked(at.database):
            at.store.put(heard(message_id="1"))
            await at.wait_told(1)
            for file in (tmp_path / "data").iterdir():
                file.unlink()
        await at.wait_told(2)
        at.database.close()
        assert await written(at) == ["1"]


async def test_a_locked_database_is_trouble_within_a_second(sqlite: str) -> None:
    async with opened(sqlite) as at:
        with locked(at.database):
            assert await at.store.commit(heard(message_id="0"))  # written ahead
            async with asyncio.timeout(30):
                await at.wait_told(1)
            async with asyncio.timeout(0.2):
                assert not await at.store.commit(heard(message_id="1"))
            assert "locked" in at.told[0]
        await at.wait_told(2)
        assert await written(at) == ["0", "1"]


async def test_a_file_that_is_no_database_is_put_aside_at_the_start(sqlite: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/frost.db").write_bytes(b"not a database at all " * 1000)
    async with opened(sqlite) as at:
        assert await at.store.commit(heard())  # from the first entry on: no call begins unwritten
        await at.wait_told(2)
        assert "file is not a database; it was moved to" in at.told[0]
        assert await at.store.recover() == Recovery(whole=False)
    (aside,) = (tmp_path / "data").glob("frost.db.corrupt-*")
    assert aside.name[len("frost.db.corrupt-") :].replace("-", "").isdigit()


async def test_a_file_that_breaks_while_the_bot_runs_is_put_aside(sqlite: str, tmp_path: Path) -> None:
    file = tmp_path / "data/frost.db"
    async with opened(sqlite) as at:
        await fill(at, 500)
        assert await at.store.commit()
        at.batches.run(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
        driver: Any = at.batches._connected().connection.driver_connection
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        size = file.stat().st_size
        with file.open("r+b") as damaged:
            damaged.seek(4096)
            damaged.write(b"\xff" * (size - 4096))
        at.database.close()
        at.batches.close()
        assert await at.store.remember(GROUP) is None
        await at.wait_told(2)
        assert await at.store.remember(GROUP) == Remembered()
        assert "malformed" in at.told[0]
        assert await at.store.commit(heard("new", message_id="new"))
        assert await written(at) == ["new"]
    assert list((tmp_path / "data").glob("frost.db.corrupt-*"))


# --- trouble: the configuration -------------------------------------------------------------------


async def refused(url: str, **more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        async with opened(url, **more):
            pass
    (problem,) = caught.value.problems
    assert problem.name == "STORE_URL"
    return problem.what


async def test_a_bad_url_ends_the_start(tmp_path: Path) -> None:
    assert "not supported" in await refused("mysql://db/frost")


async def test_a_newer_schema_ends_the_start(url: str) -> None:
    async with opened(url) as at:
        at.batches.run(lambda connection: connection.execute(versions.update().values(version_num="7")).rowcount)
    assert "newer version of the bot" in await refused(url)


# --- what it costs --------------------------------------------------------------------------------

START = """
import asyncio, sys
from adapters.storage.store import open_store
from frostagent.clock import SystemClock

def migrate(_):
    raise AssertionError("there is nothing to migrate")

async def main():
    store = open_store(
        sys.argv[1], keep_days=90, keep_messages=10, clock=SystemClock(), trouble=print, migrate=migrate
    )
    async with store as opened:
        await opened.recover()

asyncio.run(main())
print(sorted(name for name in ("alembic", "mako", "greenlet", "sqlalchemy.orm") if name in sys.modules))
"""


@pytest.mark.system
def test_a_start_imports_nothing_it_does_not_need(sqlite: str) -> None:
    for _ in ("with a new file", "with one that is there"):
        done = subprocess.run(
            [sys.executable, "-c", START, sqlite], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.stdout, done.stderr) == ("[]\n", "")


async def test_nothing_is_left_behind(sqlite: str) -> None:
    before = threading.active_count()
    async with opened(sqlite) as at:
        assert await at.store.commit(heard())
        assert len((await remember(at)).overheard) == 1
    assert threading.active_count() == before
    with contextlib.closing(sqlite3.connect(str(at.database.file), isolation_level="EXCLUSIVE")) as alone:
        assert alone.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    assert [file.name for file in Path(str(at.database.file)).parent.iterdir()] == ["frost.db"]
