"""Writing ahead: durable at once, applied once, by whoever finds it; and all that makes it step aside."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import select, text

from adapters.storage import ahead as module
from adapters.storage.ahead import FEW, LARGE, MINUTE, Ahead, AheadBatches
from adapters.storage.batches import Put, Written
from adapters.storage.tables import messages
from bot.core.journal import Entry
from frostagent.types.speech import Text
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import NOW, heard, opening, sending, step
from tests.adapters.storage.entries import closing as closing_turn
from tests.adapters.storage.place import Place, lines_of
from tests.data import journal


@pytest.fixture
def place(sqlite: str) -> Iterator[Place]:
    with closing(Place(sqlite)) as it:
        yield it


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass; before and after, time stands still."""
    now = time.monotonic()

    def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now)
    return passes


def put(*entries: Entry) -> list[Put]:
    return [Put(entry, NOW + number) for number, entry in enumerate(entries)]


def test_what_is_written_ahead_is_durable_and_not_yet_in_its_table(place: Place) -> None:
    assert place.ahead.write(put(heard(message_id="1"), heard(message_id="2")))
    assert (place.waiting(), place.messages()) == (2, [])


def test_lines_of_before_are_read() -> None:
    lines = (journal.HERE / "ahead.txt").read_bytes().split(b"\n")
    assert tuple(module._read(line).entry for line in lines if line) == journal.ENTRIES


def test_the_next_batch_applies_it_once(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    assert place.batches.write([*puts, *put(heard(message_id="2"))]) == Written(2)
    assert (place.messages(), place.waiting()) == (["1", "2"], 0)


def test_after_a_kill_the_next_process_applies_it_in_order_with_its_times(place: Place) -> None:
    opened_ = opening("t1")
    entries: list[Entry] = [opened_, step("t1"), sending("s1", "t1"), closing_turn(opened_)]
    assert place.ahead.write(put(heard(message_id="1"), *entries))
    place.die()
    place.another_process()
    assert (place.messages(), place.lines.exists()) == (["1"], False)
    with place.database.reading() as connection:
        assert connection.scalar(select(messages.c.taken)) == NOW


def test_what_another_process_has_applied_is_not_applied_again(place: Place) -> None:
    """As when `forget` is called beside a running bot."""
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.another_process()
    assert place.batches.write([*puts, *put(heard(message_id="2"))]) == Written(2)
    assert place.messages() == ["1", "2"]


def test_after_a_lost_connection_nothing_is_applied_twice(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.batches.close()
    assert place.batches.write(puts) == Written(1)
    assert place.messages() == ["1"]


def test_a_file_that_was_put_aside_took_it_along(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.batches.condemn("it is damaged")
    assert place.batches.write(puts).failure
    (aside,) = place.file.parent.glob("*.corrupt-*-ahead")
    assert len(lines_of(aside.read_bytes())) == 1
    assert place.batches.write(puts) == Written(1)
    assert place.messages() == ["1"]
    assert place.ahead.write(put(heard(message_id="2")))


def test_a_locked_database_is_not_waited_for(place: Place) -> None:
    with closing(sqlite3.connect(place.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert place.ahead.write(put(heard(message_id="1")))
        other.execute("COMMIT")


def test_only_one_process_writes_and_the_next_one_as_soon_as_it_has_ended(place: Place) -> None:
    other = Ahead(place.file)
    with closing(other):
        other.open()
        assert not other.write(put(heard(message_id="1")))
        place.ahead.close()
        other.open()
        assert not other.write(put(heard(message_id="1")))  # before it knows what is left
        assert other.left(0) == []
        assert other.write(put(heard(message_id="1")))


def test_a_process_that_ends_leaves_a_file_only_where_something_is_left(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.ahead.close()
    assert place.waiting() == 1
    place.ahead.open()
    assert place.batches.write(puts) == Written(1)
    place.ahead.close()
    assert not place.lines.exists()


def test_who_could_not_write_tries_again_after_a_while(place: Place, later: Callable[[float], None]) -> None:
    """As where `forget` had the file for a moment when the bot was started."""
    batches = AheadBatches(place.database, place.file, stamp=str)
    second = batches.ahead
    with closing(second), closing(batches):
        assert batches.write(put(heard(message_id="1"))) == Written(1)
        place.ahead.close()
        assert batches.write(put(heard(message_id="2"))) == Written(1)
        assert not second.write(put(heard(message_id="3")))
        later(MINUTE + 1)
        assert batches.write([]) == Written(0)
        assert second.write(put(heard(message_id="3")))


def test_a_file_that_somebody_removed_is_not_written_any_more(place: Place, later: Callable[[float], None]) -> None:
    first, second = put(heard(message_id="1"), heard(message_id="2"))
    assert place.ahead.write([first])
    place.lines.unlink()
    assert place.batches.write([first]) == Written(1)
    assert not place.ahead.write([second])
    later(MINUTE + 1)
    assert place.batches.write([second]) == Written(1)
    assert place.ahead.write(put(heard(message_id="3")))
    assert (place.messages(), place.waiting()) == (["1", "2"], 1)


def test_a_file_that_is_another_processes_now_is_left_alone(place: Place) -> None:
    place.lines.unlink()
    other = Ahead(place.file)
    with closing(other):
        other.open()
        assert other.left(0) == []
        assert other.write(put(heard(message_id="1")))
        place.ahead.close()
        assert place.waiting() == 1


def test_who_has_opened_a_file_that_was_removed_meanwhile_does_without(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking it, its owner may have ended, and removed it."""
    other, lock = Ahead(place.file), fcntl.flock

    def late(descriptor: int, how: int) -> None:
        place.ahead.close()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with closing(other):
        other.open()
        other.left(0)
        assert not other.write(put(heard(message_id="1")))


def test_what_is_written_beside_a_batch_stays(place: Place) -> None:
    """As where the connection is made anew by somebody else's job."""
    first, second = put(heard(message_id="1"), heard(message_id="2"))
    assert place.ahead.write([first])
    assert place.ahead.write([second])
    assert place.batches.write([first]) == Written(1)
    place.die()
    place.another_process()
    assert place.messages() == ["1", "2"]


def test_what_a_killed_process_had_applied_does_not_stay_in_the_file(place: Place) -> None:
    """Killed before it could empty it: else somebody's words would be there after `forget`."""
    puts = put(heard("secret", message_id="1"))
    assert place.ahead.write(puts)
    text = place.lines.read_bytes()
    assert place.batches.write(puts) == Written(1)
    place.die()
    place.lines.write_bytes(text)
    place.another_process()
    assert (place.messages(), place.lines.exists()) == (["1"], False)


def test_the_mark_never_moves_back(place: Place) -> None:
    first, second = put(heard(message_id="1"), heard(message_id="2"))
    assert place.ahead.write([first, second])
    place.another_process()
    assert place.batches.write([first]) == Written(1)
    assert place.batches.write([second]) == Written(1)
    assert place.messages() == ["1", "2"]


def test_a_database_behind_a_link_has_its_lines_beside_itself(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "data").symlink_to(real)
    place = Place(f"sqlite:///{tmp_path}/data/frost.db")
    with closing(place):
        assert place.ahead.write(put(heard(message_id="1")))
        assert (real / "frost.db-ahead").stat().st_size


def test_an_entry_that_can_never_be_stored_is_not_tried_again(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    unfit = heard(message_id="1")
    unfit = replace(unfit, message=replace(unfit.message, self_id=2**70))  # no column holds it
    puts = put(unfit)
    assert place.ahead.write(puts)
    assert place.batches.write(puts) == Written(1, (0,))
    place.die()
    place.another_process()
    assert len(caplog.records) == 1


def test_half_a_line_at_the_end_is_nothing_and_spoils_nothing(place: Place) -> None:
    assert place.ahead.write(put(heard(message_id="1"), heard(message_id="2")))
    place.die()
    os.truncate(place.lines, place.lines.stat().st_size - 9)
    assert place.batches.open() == ""
    assert (place.messages(), place.waiting()) == (["1"], 0)
    assert place.ahead.write(put(heard(message_id="3")))
    place.die()
    place.another_process()
    assert place.messages() == ["1", "3"]


def failing(_descriptor: int, _size: int) -> None:
    raise OSError(errno.EIO, "a broken disk")


@pytest.mark.parametrize("cuts", [True, False])
def test_a_disk_that_is_full_in_the_middle_of_a_line_spoils_no_other(
    place: Place, monkeypatch: pytest.MonkeyPatch, cuts: bool
) -> None:
    assert place.ahead.write(put(heard(message_id="1")))
    write, cut = os.write, os.ftruncate if cuts else failing
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, lines: write(descriptor, lines[:-20]))
        full.setattr(os, "ftruncate", cut)
        puts = put(heard(message_id="2"))
        assert not place.ahead.write(puts)
    assert [one.number for one in puts] == [0]
    assert place.ahead.write(put(heard(message_id="3")))
    place.die()
    place.another_process()
    assert place.messages() == ["1", "3"]


def test_a_new_database_has_nothing_to_do_with_lines_that_are_older(place: Place) -> None:
    """As where somebody removed it, to begin anew, after a crash."""
    assert place.ahead.write(put(heard(message_id="1")))
    place.die()
    place.close()
    for part in place.file.parent.glob("*.db*"):
        if part != place.lines:
            part.unlink()
    place.another_process()
    assert place.messages() == []


def test_what_waits_is_written_where_the_database_was_removed_in_between(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.batches.close()
    for part in place.file.parent.iterdir():
        part.unlink()
    assert place.batches.write(puts) == Written(1)
    assert place.messages() == ["1"]
    assert place.ahead.write(put(heard(message_id="2")))
    assert place.waiting() == 1  # in a file that others find


def test_a_new_database_that_two_processes_begin_has_one_mark(place: Place) -> None:
    with place.database.connect() as connection:
        cursor = connection.connection.cursor()
        mark = module.read_mark(cursor)
        assert mark
        assert module.begin_mark(cursor) == mark


def test_a_clock_that_was_set_back_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place.ahead.write(put(heard(message_id="1")))
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    place.die()
    assert place.batches.open() == ""
    assert place.ahead.write(put(heard(message_id="2")))
    place.die()
    place.another_process()
    assert place.messages() == ["1", "2"]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([heard(message_id=str(number)) for number in range(FEW + 1)], id="many"),
        pytest.param([heard("long " * (LARGE // 5), message_id="1")], id="large"),
        pytest.param([heard("\ud800", message_id="1")], id="no Unicode"),
    ],
)
def test_what_a_batch_does_better_is_left_to_it(place: Place, entries: list[Entry]) -> None:
    puts = put(*entries)
    assert not place.ahead.write(puts)
    assert [one.number for one in puts] == [0] * len(entries)
    assert place.waiting() == 0


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert not Ahead(tmp_path / "none.db").write(put(heard()))
    assert list(tmp_path.iterdir()) == []


def test_a_slow_disk_is_left_to_the_thread_for_a_while(
    place: Place, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For longer each time: one slow write may be anybody's fault."""
    rests = []
    monkeypatch.setattr(module, "SLOW", -1.0)
    for pause in (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, MINUTE):
        later(pause)
        assert place.ahead.write(put(heard(message_id="1")))
        assert not place.ahead.write(put(heard(message_id="2")))
        rests.append(rest := place.ahead._rests_until - time.monotonic())
        later(rest)
    assert rests == pytest.approx([0.5, 1, 2, 4, 8, 16, 30, 0.5])


def test_what_can_never_be_applied_is_told_and_harms_nothing_else(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    good, unfit = heard(message_id="1"), heard(message_id="2")
    unfit = replace(unfit, message=replace(unfit.message, self_id=2**70))  # no column holds it
    assert place.ahead.write(put(good, unfit))
    place.die()
    place.lines.write_bytes(b"9999999999999999 0 no entry at all\n" + place.lines.read_bytes())
    with caplog.at_level(logging.WARNING):
        place.another_process()
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "an entry of the journal cannot be read",
        "a message_observed cannot be stored",
    ]
    assert (place.messages(), place.waiting()) == (["1"], 0)
    place.another_process()
    assert len(caplog.records) == 2


def test_every_kind_of_segment_comes_back_as_it_was(place: Place) -> None:
    entry = heard("霜\0降 😀", message_id="1")
    assert isinstance(entry.message.segments[-1], Text)
    assert place.ahead.write(put(entry))
    (found,) = place.ahead.left(0)
    assert found.entry == entry


async def test_who_waits_for_little_does_not_wait_for_the_thread(sqlite: str) -> None:
    async with opened(sqlite) as at:
        await at.store.commit()
        waiting = Path(f"{at.database.file}-ahead").read_bytes
        with at.database.reading() as connection:
            assert await at.store.commit(heard(message_id="1"))
            assert len(lines_of(waiting())) == 1
            assert connection.scalar(text("SELECT count(*) FROM messages")) == 0
        await at.store.commit()  # all of it, in its tables
        with at.database.reading() as connection:
            assert connection.scalar(text("SELECT count(*) FROM messages")) == 1
        assert waiting() == b""
