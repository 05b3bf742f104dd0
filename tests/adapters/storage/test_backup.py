"""A backup of a real journal, made while it is written, cut off, spoilt and put back, killed at every step."""

from __future__ import annotations

import asyncio
import errno
import gzip
import hashlib
import io
import os
import sqlite3
import stat
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec
import pytest

from adapters.storage import backup
from adapters.storage.ahead import batches_for
from adapters.storage.backup import BackupError, Manifest, back_up, back_up_to, complete, restore
from adapters.storage.batches import EntryBatches, Put
from adapters.storage.claim import FileClaim
from adapters.storage.database import Database
from adapters.storage.files import read_whole_lines
from adapters.storage.migrations import migrate
from adapters.storage.store import open_store
from adapters.storage.tables import REVISIONS
from frostagent.clock import SystemClock
from tests.adapters.storage.entries import heard
from tests.adapters.storage.killed import killed_in
from tests.cases import each_case

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="there is no lock, and nothing written ahead")


def journal_in(folder: Path, *ids: str, ahead: str = "") -> Path:
    """A journal of these messages, and of one that is only written ahead."""
    file = folder / "frost.db"
    database = Database(f"sqlite:///{file}", migrate=migrate)
    batches = batches_for(database, stamp=str) if ahead else EntryBatches(database, stamp=str)
    assert not batches.write([Put(heard(message_id=one), 1.0) for one in ids]).failure
    if ahead:
        assert batches.write_at_once([Put(heard(message_id=ahead), 1.0)])
    batches.close()
    database.close()
    return file


def ids_in(file: Path) -> list[str]:
    """What the next bot there knows, in order: as it starts, so that a restore is completed first."""
    database = Database(f"sqlite:///{file}", migrate=migrate, owner=True)
    batches = batches_for(database, stamp=str)
    batches.settle()
    with database.reading() as connection:
        found = connection.exec_driver_sql("SELECT message_id FROM messages ORDER BY id").scalars().all()
    database.close()
    database.release()
    return list(found)


def made(journal: Path, target: Path, *files: Path) -> Path:
    back_up(journal, target, files=files, version="1.0", force=False)
    return target


def put_back(journal: Path, file: Path, *, stamp: str = "then") -> backup.Restored:
    with file.open("rb") as stream:
        return restore(journal, stream, version="1.0", stamp=stamp, shown=file.name)


def tree(folder: Path) -> dict[str, bytes]:
    """All files of a folder but those by which SQLite's readers know each other."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(("-shm", "-wal")))
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


@needs_posix
def test_a_backup_has_what_is_in_the_log_and_what_is_written_ahead_and_is_put_back_in_an_empty_folder(
    tmp_path: Path,
) -> None:
    journal = killed_in(tmp_path / "old")  # its rows are in the log alone
    journal = journal_in(journal.parent, "5", ahead="6")
    persona = journal.parent / "personas" / "frost.md"
    persona.parent.mkdir()
    persona.write_text("冷")
    before = tree(journal.parent)
    target = made(journal, tmp_path / "b.tgz", persona)
    assert tree(journal.parent) == before
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    new = tmp_path / "new" / "data" / "frost.db"
    done = put_back(new, target)
    assert (done.manifest.schema, done.manifest.accounts) == (REVISIONS[-1], (10001,))
    assert ids_in(new) == ["0", "1", "2", "3", "4", "5", "6"]
    assert (new.parent / "personas" / "frost.md").read_text() == "冷"
    assert {path.stat().st_mode & 0o077 for path in new.parent.rglob("*")} == {0}


def test_what_was_there_is_moved_aside_with_what_belongs_to_it(tmp_path: Path) -> None:
    target = made(journal_in(tmp_path / "old", "old"), tmp_path / "b.tgz")
    here = tmp_path / "here"
    journal = journal_in(here, "new")
    for name in ("-wal", "-ahead"):
        (here / f"frost.db{name}").write_bytes(b"of the new one")
    (here / "words.txt").write_text("of the new one")
    aside = put_back(journal, target).aside
    assert sorted(file.name for file in aside.iterdir()) == ["frost.db", "frost.db-ahead", "frost.db-wal"]
    assert sorted(file.name for file in here.iterdir()) == ["frost.db", aside.name, "words.txt"]
    assert ids_in(journal) == ["old"]
    assert [file.name for file in Database(f"sqlite:///{journal}", migrate=migrate).copies()] == [aside.name]


@needs_posix
async def test_each_backup_of_a_busy_journal_is_a_state_that_it_had(tmp_path: Path) -> None:
    journal = tmp_path / "data" / "frost.db"
    promised = 0
    store = open_store(
        f"sqlite:///{journal}",
        keep_days=0,
        keep_messages=0,
        clock=SystemClock(),
        trouble=lambda _: None,
        migrate=migrate,
    )
    counts: list[tuple[int, int]] = []
    async with store as journal_open:
        over = asyncio.Event()

        async def write() -> None:
            nonlocal promised
            while not over.is_set():
                burst = 1 + promised % 23  # some are written ahead, some are a batch
                entries = [heard(message_id=str(promised + number)) for number in range(burst)]
                assert await journal_open.commit(*entries)
                promised += burst

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            for number in range(8):
                least = promised
                await asyncio.to_thread(made, journal, tmp_path / f"{number}.tgz")
                counts.append((least, promised))
            over.set()
    for number, (least, _) in enumerate(counts):
        new = tmp_path / f"new{number}" / "frost.db"
        put_back(new, tmp_path / f"{number}.tgz")
        ids = ids_in(new)
        assert ids == [str(one) for one in range(len(ids))]
        assert len(ids) >= least
    assert ids_in(journal) == [str(one) for one in range(promised)]


@needs_posix
def test_lines_written_ahead_are_those_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [b"\n1 a\n\n2 b\n", b"\n9 z\n", b"\n9 z\n", b"\n9 z\n\n10 hal"]
    monkeypatch.setattr(Path, "read_bytes", lambda _: contents.pop(0))
    assert read_whole_lines(tmp_path / "frost.db-ahead") == b"\n9 z\n"
    monkeypatch.setattr(Path, "read_bytes", lambda _: os.urandom(8))
    assert read_whole_lines(tmp_path / "frost.db-ahead") == b""


def test_files_of_names_that_no_restore_would_take_are_left_out_and_named(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "old", "1")
    names = [b"a:b.md", b"a\\b.md", b"a\nb.md", "冷.md".encode(), "冷.md".encode("gbk")]
    for name in names:
        with suppress(OSError):  # not every system can have them
            Path(os.fsdecode(os.fsencode(journal.parent) + b"/" + name)).write_text("x")
    files = [file for file in journal.parent.iterdir() if file.suffix == ".md"]
    done = back_up(journal, tmp_path / "b.tgz", files=files, version="1.0", force=False)
    assert (done.files, len(done.left_out)) == (1, len(files) - 1)
    assert all(name.isascii() for name in done.left_out)
    put_back(tmp_path / "new" / "frost.db", tmp_path / "b.tgz")
    assert (tmp_path / "new" / "冷.md").read_text() == "x"


@needs_posix
def test_a_folder_may_be_a_link_to_another_disk_and_a_file_may_be_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(tmp_path / "old", "1")
    files = [journal.parent / name for name in ("media/cat.png", "personas/deep/frost.md")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("old")
    target = made(journal, tmp_path / "b.tgz", *files)
    here, disk = tmp_path / "here", tmp_path / "disk"
    journal_in(here, "2")
    disk.mkdir()
    (disk / "cat.png").write_text("new")
    (here / "media").symlink_to(disk)
    (here / "personas").write_text("a file now")
    replace = Path.replace

    def within_a_disk(file: Path, target: Path) -> Path:
        if (disk in file.resolve().parents) != (disk in target.resolve().parents):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return replace(file, target)

    monkeypatch.setattr(Path, "replace", within_a_disk)
    aside = put_back(here / "frost.db", target).aside
    assert ids_in(here / "frost.db") == ["1"]
    assert {file.name: file.read_text() for file in disk.iterdir()} == {"cat.png": "old"}
    assert (here / "personas" / "deep" / "frost.md").read_text() == "old"
    assert (aside / "media" / "cat.png").read_text() == "new"
    assert (aside / "personas").read_text() == "a file now"


# --- refused --------------------------------------------------------------------------------------


@contextmanager
def refused(folder: Path, says: str) -> Iterator[None]:
    """The block is refused in words that say that, and changes nothing in the folder."""
    before = tree(folder)
    with pytest.raises(BackupError, match=says):
        yield
    assert tree(folder) == before
    assert not [file for file in folder.rglob("*") if "unfinished" in file.name or file.name.endswith("-restore")]


def test_a_file_that_is_there_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    journal = journal_in(tmp_path, "1")
    (tmp_path / "b.tgz").write_text("precious")
    for target, says in (("b.tgz", "--force"), ("frost.db", "own"), ("frost.db-wal", "own"), (".", "exists")):
        with refused(tmp_path, says):
            made(journal, tmp_path / target)
    with refused(tmp_path, "own"):
        back_up(journal, journal, files=(), version="1.0", force=True)
    back_up(journal, tmp_path / "b.tgz", files=(), version="1.0", force=True)
    assert ids_in(journal) == ["1"]
    put_back(tmp_path / "new" / "frost.db", tmp_path / "b.tgz")


def test_a_backup_that_could_not_be_put_back_is_not_made(tmp_path: Path) -> None:
    journal, target = journal_in(tmp_path / "data", "1"), tmp_path / "b.tgz"
    with refused(tmp_path, "no journal"):
        made(tmp_path / "data" / "other.db", target)
    (tmp_path / "notes.db").write_bytes(b"")
    with refused(tmp_path, "not a database of FrostAgent"):
        made(tmp_path / "notes.db", target)
    with closing(sqlite3.connect(journal)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with refused(tmp_path, "newer version of the bot .*9999.*make the backup with that version"):
        made(journal, target)
    journal.write_bytes(journal.read_bytes()[:8192])
    with refused(tmp_path, "damaged|malformed"):
        made(journal, target)


@contextmanager
def full_disk(buffer: int) -> Iterator[IO[bytes]]:
    stream = Path("/dev/full").open("wb", buffering=buffer)  # noqa: SIM115  # closing it fails
    try:
        yield stream
    finally:
        with suppress(OSError):
            stream.close()


def test_a_full_disk_leaves_no_half_backup_and_room_for_the_bot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(tmp_path, "1")
    (tmp_path / "b.tgz").write_text("precious")
    if os.path.exists("/dev/full"):  # noqa: PTH110  # a device
        for buffer in (2**10, 2**20):  # with a large one, it is only noticed in the end
            with refused(tmp_path, "standard output: No space left"), full_disk(buffer) as full:
                back_up_to(journal, full, files=(), version="1.0")
    with refused(tmp_path, "no journal"):
        back_up_to(tmp_path / "nothing" / "frost.db", io.BytesIO(), files=(), version="1.0")
    monkeypatch.setattr(backup, "RESERVE", 2**62)
    with refused(tmp_path, "No space left"):
        back_up(journal, tmp_path / "b.tgz", files=(), version="1.0", force=True)


def test_a_full_disk_during_a_restore_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = made(journal_in(tmp_path / "old", "1"), tmp_path / "b.tgz")
    journal = journal_in(tmp_path / "data", "2")
    calls = fails_at = 0
    sync = os.fsync

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += stat.S_ISREG(os.fstat(descriptor).st_mode)
        if calls == fails_at:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    for number in (1, 2):  # the journal, the plan
        calls, fails_at = 0, number
        with refused(tmp_path, "No space left"):
            put_back(journal, target)
    assert ids_in(journal) == ["2"]


@needs_posix
def test_nothing_is_put_back_under_a_bot_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.storage.claim.PATIENCE", 0.0)
    target = made(journal_in(tmp_path / "old", "1"), tmp_path / "b.tgz")
    journal = journal_in(tmp_path / "data", "2")
    claim = FileClaim(journal)
    claim.take()
    with refused(tmp_path, "A bot is using .*stop it first"):
        put_back(journal, target)
    claim.release(whole=True)
    put_back(journal, target)
    assert ids_in(journal) == ["1"]


@needs_posix
def test_a_restore_that_is_stopped_in_its_last_part_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = made(journal_in(tmp_path / "old", "1"), tmp_path / "b.tgz")
    journal = journal_in(tmp_path / "data", "2")
    for error, says in (
        (KeyboardInterrupt(), "cut off before its end: "),
        (OSError(28, "full"), r"cut off before its end \(.*full\): "),
    ):

        def stop(*_: object, error: BaseException = error) -> None:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(backup, "_do", stop)
            with pytest.raises(BackupError, match=says):
                put_back(journal, target)
    assert ids_in(journal) == ["1"]


@needs_posix
def test_a_plan_that_is_given_up_is_gone_before_the_files_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = made(journal_in(tmp_path / "old", "1"), tmp_path / "b.tgz")
    journal = journal_in(tmp_path / "data", "2", ahead="3")

    def written_and_stopped(place: Path, plan: object) -> None:
        (place / backup.PLAN).write_bytes(msgspec.json.encode(plan))
        raise KeyboardInterrupt

    def killed(place: Path, **_: object) -> None:
        if place.name.endswith("-restore") and place.exists():
            (place / "new" / "journal.db").unlink()
            raise SystemExit(137)

    with monkeypatch.context() as patched:
        patched.setattr(backup, "_write_plan", written_and_stopped)
        patched.setattr("shutil.rmtree", killed)
        with pytest.raises(SystemExit):
            put_back(journal, target)
    assert ids_in(journal) == ["2", "3"]


@pytest.mark.skipif(not hasattr(os, "chown"), reason="no owners of files")
def test_what_root_restores_belongs_to_the_owner_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = journal_in(tmp_path / "old", "1")
    cat = journal.parent / "media" / "cats" / "cat.png"
    cat.parent.mkdir(parents=True)
    cat.write_text("x")
    target = made(journal, tmp_path / "b.tgz", cat)
    given: set[Path] = set()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda file, *_, **__: given.add(Path(file)))
    here = tmp_path / "here"
    put_back(here / "frost.db", target)
    assert {here / "media", here / "media" / "cats"} <= given


def test_what_belongs_to_the_journal_is_not_taken_from_the_files_beside_it(tmp_path: Path) -> None:
    old = journal_in(tmp_path / "old", "1").read_bytes()
    for name in ("frost.db-restore/plan.json", "frost.db-lock", "FROST.DB", "Frost.db-WAL"):
        here = tmp_path / name.replace("/", " ") / "frost.db"
        members = {"manifest.json": manifest(), "journal.db": old, f"files/{name}": b"evil"}
        put_back(here, packed(tmp_path / "b.tgz", members))
        assert ids_in(here) == ["1"]
        assert sorted(file.name for file in here.parent.iterdir()) == ["frost.db", "frost.db.before-restore-then"]


def packed(file: Path, members: Mapping[str, bytes | tarfile.TarInfo], *, end: bool = True) -> Path:
    """An archive of these, with sums that are right."""
    sums = {}
    with gzip.open(file, "wb") as zipped, tarfile.open(fileobj=zipped, mode="w|") as tar:
        for name, content in members.items():
            match content:
                case tarfile.TarInfo():
                    tar.addfile(content)
                case _:
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
                    sums[name] = hashlib.sha256(content).hexdigest()
        if end:
            lines = "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()
            info = tarfile.TarInfo(backup.SUMS)
            info.size = len(lines)
            tar.addfile(info, io.BytesIO(lines))
    return file


def manifest(**more: object) -> bytes:
    base = Manifest(format=1, version="2.5", schema=REVISIONS[-1], made="2026-11-29T01:00:00+0800")
    return msgspec.json.encode(msgspec.structs.asdict(base) | more)


def special(name: str, kind: bytes, to: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


BAD: Mapping[str, Callable[[bytes], Mapping[str, bytes | tarfile.TarInfo]]] = {
    "up": lambda db: {"journal.db": db, "files/../../evil": b"x"},
    "absolute": lambda db: {"journal.db": db, "/tmp/evil": b"x"},
    "absolute below": lambda db: {"journal.db": db, "files//etc/evil": b"x"},
    "of Windows": lambda db: {"journal.db": db, "files/..\\evil": b"x", "files/c:evil": b"x"},
    "symbolic link": lambda db: {"journal.db": db, "l": special("files/l", tarfile.SYMTYPE)},
    "hard link": lambda db: {"journal.db": db, "l": special("files/l", tarfile.LNKTYPE, "journal.db")},
    "folder": lambda db: {"journal.db": db, "l": special("files/l", tarfile.DIRTYPE)},
    "device": lambda db: {"journal.db": db, "l": special("files/l", tarfile.CHRTYPE)},
    "pipe": lambda db: {"journal.db": db, "l": special("files/l", tarfile.FIFOTYPE)},
    "stranger": lambda db: {"journal.db": db, "evil": b"x"},
    "no journal": lambda db: {"files/words.txt": b"x"},
    "no database": lambda db: {"journal.db": b"nothing of the kind" * 100},
    "other database": lambda db: {"journal.db": b""},
    "half of it": lambda db: {"journal.db": db[: len(db) // 2]},
}


@each_case("what", BAD)
def test_an_archive_that_is_none_of_ours_writes_nowhere(tmp_path_factory: pytest.TempPathFactory, what: str) -> None:
    folder = tmp_path_factory.mktemp("bad")
    old = journal_in(folder / "old", "1").read_bytes()
    journal = journal_in(folder / "data", "2")
    file = packed(folder / "b.tgz", {"manifest.json": manifest(), **BAD[what](old)})
    with refused(folder, "Nothing has changed|nothing was done"):  # each in words that say so
        put_back(journal, file)
    assert ids_in(journal) == ["2"]


def test_a_backup_that_was_cut_off_or_changed_is_refused(tmp_path: Path) -> None:
    target = made(journal_in(tmp_path / "old", "1"), tmp_path / "b.tgz")
    journal, whole = journal_in(tmp_path / "data", "2"), target.read_bytes()
    for size in (0, 1, 9, 100, len(whole) // 2, len(whole) - 400):
        target.write_bytes(whole[:size])
        with refused(tmp_path, "not a whole backup"):
            put_back(journal, target)
    for place in (0, 20, len(whole) // 3, len(whole) // 2):
        target.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with refused(tmp_path, "not a whole backup"):
            put_back(journal, target)
    target.write_text("SELECT 1;\n" * 1000)
    with refused(tmp_path, "not a whole backup"):
        put_back(journal, target)
    members = {"manifest.json": manifest(), "journal.db": (tmp_path / "old" / "frost.db").read_bytes()}
    packed(target, members, end=False)
    with refused(tmp_path, "not a whole backup"):
        put_back(journal, target)


def test_a_backup_of_another_version_is_refused_in_words_that_name_it(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "data", "2")
    newer = packed(tmp_path / "newer.tgz", {"manifest.json": manifest(schema="9999")})
    unknown = packed(tmp_path / "unknown.tgz", {"manifest.json": manifest(format=2, schema="9999")})
    with refused(tmp_path, r"FrostAgent 2\.5 \(schema 9999\), and this is 1\.0 .*restore it with 2\.5 or a later"):
        put_back(journal, newer)
    with refused(tmp_path, r"FrostAgent 2\.5, in a format that this version \(1\.0\) cannot read"):
        put_back(journal, unknown)


def at_revision(journal: Path, revision: str) -> Path:
    with closing(sqlite3.connect(journal)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    return journal


def test_a_journal_of_the_baseline_is_backed_up_as_it_is_and_put_back_so(tmp_path: Path) -> None:
    target = made(at_revision(journal_in(tmp_path / "data", "2"), "0015"), tmp_path / "b.tgz")
    assert put_back(tmp_path / "new" / "frost.db", target).manifest.schema == "0015"
    with closing(sqlite3.connect(tmp_path / "new" / "frost.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0015",)]


def test_a_journal_before_the_baseline_is_not_backed_up(tmp_path: Path) -> None:
    journal = at_revision(journal_in(tmp_path / "data", "2"), "0014")
    with refused(tmp_path, r"its schema is 0014, this version reads 0015 and later.*git checkout b14ad6af"):
        made(journal, tmp_path / "b.tgz")


def test_a_backup_from_before_the_baseline_is_refused(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "data", "2")
    older = packed(tmp_path / "older.tgz", {"manifest.json": manifest(schema="0014")})
    with refused(
        tmp_path,
        r"its schema is 0014, this version reads 0015 and later.*Restore it with the version that made it.*b14ad6af",
    ):
        put_back(journal, older)


@needs_posix
def test_a_backup_of_the_baseline_with_entries_written_ahead_is_refused(tmp_path: Path) -> None:
    target = made(at_revision(journal_in(tmp_path / "old", "1", ahead="2"), "0015"), tmp_path / "b.tgz")
    journal = journal_in(tmp_path / "data", "2")
    with refused(tmp_path, r"has 1 entries of an earlier version.*Restore it with the version that made it.*b14ad6af"):
        put_back(journal, target)


def test_completing_is_nothing_where_no_restore_was_begun(tmp_path: Path) -> None:
    journal = journal_in(tmp_path, "1")
    before = tree(tmp_path)
    complete(journal)
    assert tree(tmp_path) == before


def test_when_a_journal_was_restored_is_known(tmp_path: Path) -> None:
    target = made(journal_in(tmp_path / "old", "1"), tmp_path / "b.tgz")
    journal = tmp_path / "data" / "frost.db"
    database = Database(f"sqlite:///{journal}", migrate=migrate)
    journal.parent.mkdir()
    assert database.restored_at() == 0
    aside = put_back(journal, target).aside
    os.utime(aside, (1000, 1000))
    assert database.restored_at() == 1000
