"""Backups of an SQLite journal: one file, made while the bot runs, and restored by a command.
Blocks.

The file is a tar.gz: `manifest.json` first, with what can read it; the journal as SQLite copies it;
the lines of `-ahead` that it does not have yet; the files beside it; and `SHA256SUMS` last, so that
a truncated file is detected.

Invariants: a backup is one state of the journal, whatever is written meanwhile, with everything
confirmed before the command began. A file under its name is complete. A restore happens completely
or not at all: its moves are in a plan, and the next start or the next `restore` completes an
unfinished one.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Final

import msgspec
from msgspec import Struct

from adapters.storage.baseline import (
    COMMIT,
    OlderJournal,
    file_revision,
    refuse_older_file,
    refuse_older_revision,
)
from adapters.storage.claim import FileClaim, JournalTaken, holder_of
from adapters.storage.files import (
    BESIDE,
    FILE_MODE,
    FOLDER_MODE,
    LINES,
    make_file,
    make_folder,
    read_whole_lines,
)
from adapters.storage.notices import (
    BACKUP_BUSY,
    BACKUP_DAMAGED,
    BACKUP_EXISTS,
    BACKUP_FAILED,
    BACKUP_NEWER,
    BACKUP_NOT_ONE,
    BACKUP_NOT_OURS,
    BACKUP_OLDER,
    BACKUP_OWN,
    BACKUP_SPOILT,
    BACKUP_TOO_NEW,
    BACKUP_UNFINISHED,
    BACKUP_UNKNOWN_FORMAT,
    NO_JOURNAL,
    RESTORE_FIRST,
    STANDARD_OUTPUT,
)
from adapters.storage.tables import REVISIONS
from bot.core.language import Bilingual
from frostagent.types.errors import BotError

FORMAT: Final = 1
MANIFEST, JOURNAL, FILES, SUMS = "manifest.json", "journal.db", "files/", "SHA256SUMS"
AHEAD: Final = JOURNAL + LINES
LARGEST: Final = 16 * 1024 * 1024  # bytes of the manifest and of the sums
CHUNK: Final = 1024 * 1024
PAGES: Final = 1024  # pages of the journal between two checks of the disk
RESERVE: Final = 64 * 1024 * 1024  # bytes of the disk left to the bot
LEVEL: Final = 6

ASIDE: Final = ".before-restore-"  # followed by the time of the restore
PLACE: Final = "-restore"  # the folder that prepares a restore
NEW, PLAN = "new", "plan.json"

Progress = Callable[[], None]


class BackupError(BotError):
    """A backup cannot be made or restored; `line` says why and what to do, to the operator."""

    def __init__(self, line: Bilingual) -> None:
        super().__init__(line)
        self.line = line


class Manifest(Struct, frozen=True, kw_only=True):
    """A backup's description of itself. `made` is ISO 8601, `schema` a revision of the journal."""

    format: int
    version: str
    schema: str
    made: str
    accounts: tuple[int, ...] = ()


class _Step(Struct, frozen=True):
    """A move: `name` goes aside; `new`, if not empty, takes its place."""

    name: str
    new: str = ""


class _Plan(Struct, frozen=True):
    aside: str
    steps: tuple[_Step, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A new backup: the number of files beside the journal, total bytes unpacked, and the files
    left out because other systems cannot have their names.
    """

    manifest: Manifest
    files: int
    size: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored backup; `aside` holds what was there before."""

    manifest: Manifest
    aside: Path


# --- making one -----------------------------------------------------------------------------------


def back_up(
    journal: Path, target: Path, *, files: Iterable[Path], version: str, force: bool
) -> Made:
    """Back up this journal and the `files` in its folder as `target`. Raises BackupError, with
    `target` unchanged.
    """
    journal, target = journal.resolve(), target.absolute()
    if _belongs_to(journal, target.resolve()):
        raise BackupError(BACKUP_OWN.fill(file=target))
    if target.is_dir() or (target.exists() and not force):
        raise BackupError(BACKUP_EXISTS.fill(file=target))
    _check_there(journal)
    with _told(target), _work_in(target.parent, f".{target.name}.") as work:
        unfinished = work / "unfinished"
        make_file(unfinished)
        with unfinished.open("wb") as stream:
            made = _pack(journal, stream, work, files, version)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists() and not force:  # made meanwhile
            raise BackupError(BACKUP_EXISTS.fill(file=target))
        unfinished.replace(target)
        _sync(target.parent)
    return made


def back_up_to(journal: Path, stream: IO[bytes], *, files: Iterable[Path], version: str) -> Made:
    """Like `back_up`, into a buffered stream; its last file shows that it is complete."""
    journal = journal.resolve()
    _check_there(journal)
    with _told(STANDARD_OUTPUT.fill()), _work_in(journal.parent, f".{journal.name}.") as work:
        made = _pack(journal, stream, work, files, version)
        stream.flush()
    return made


def _check_there(journal: Path) -> None:
    refuse_unfinished(journal)
    if not journal.is_file():
        raise BackupError(NO_JOURNAL.fill(file=journal))


def _pack(
    journal: Path, stream: IO[bytes], work: Path, files: Iterable[Path], version: str
) -> Made:
    look = _room_on(work, journal)
    # Before the journal, so that lines written ahead are in at least one of the two.
    written = read_whole_lines(journal.with_name(journal.name + LINES))
    copy = work / JOURNAL
    schema, accounts = _copy(journal, copy, look)
    made = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime())
    manifest = Manifest(format=FORMAT, version=version, schema=schema, made=made, accounts=accounts)
    left_out = []
    with _Archive.into(stream, look) as archive:
        archive.add_bytes(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        archive.add_file(JOURNAL, copy)
        copy.unlink()
        if written.strip():
            archive.add_bytes(AHEAD, written)
        for file in sorted(set(files)):
            name = file.relative_to(journal.parent).as_posix()
            if not _is_portable(name):
                left_out.append(name.encode(errors="backslashreplace").decode())
                continue
            with suppress(FileNotFoundError):  # the bot has deleted it meanwhile
                archive.add_file(FILES + name, file)
        count, size = archive.finish()
    return Made(manifest, count, size, tuple(left_out))


def _copy(journal: Path, copy: Path, look: Progress) -> tuple[str, tuple[int, ...]]:
    """Copy one state of the journal to a file, without blocking writers. Returns its schema and
    accounts. Raises BackupError for a journal that could not be restored.
    """
    make_file(copy)
    try:
        with closing(_read_only(journal)) as source:
            source.execute("BEGIN").close()
            schema = _schema_of(source, journal)  # from here on it sees one state
            with closing(sqlite3.connect(copy)) as target:
                source.backup(target, pages=PAGES, progress=lambda *_: look())
                target.execute("PRAGMA journal_mode=DELETE").close()
        with closing(sqlite3.connect(copy)) as target:
            _check(target, journal)
            accounts = _accounts_in(target)
    except sqlite3.Error as error:
        raise BackupError(BACKUP_FAILED.fill(file=journal, why=error)) from error
    return schema, accounts


def _read_only(file: Path) -> sqlite3.Connection:
    uri = f"{file.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def _schema_of(connection: sqlite3.Connection, file: Path) -> str:
    """Return a journal's revision. Raises BackupError for one that this version cannot read."""
    revision = file_revision(connection)
    if revision is None:
        raise BackupError(BACKUP_NOT_OURS.fill(file=file))
    with _no_older(str(file)):
        refuse_older_revision(revision)
    if revision not in REVISIONS:
        raise BackupError(BACKUP_NEWER.fill(file=file, schema=revision, ours=REVISIONS[-1]))
    return revision


def _check(connection: sqlite3.Connection, file: Path) -> None:
    said = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if said != "ok":
        raise BackupError(BACKUP_DAMAGED.fill(file=file, what=str(said).splitlines()[-1]))


def _accounts_in(connection: sqlite3.Connection) -> tuple[int, ...]:
    found = connection.execute("SELECT DISTINCT self_id FROM messages ORDER BY 1").fetchall()
    return tuple(int(one) for (one,) in found)


class _Archive:
    """A tar being written, with the checksums of its files."""

    def __init__(self, tar: tarfile.TarFile, look: Progress) -> None:
        self._tar = tar
        self._look = look
        self._sums: dict[str, str] = {}
        self._size = 0

    @classmethod
    @contextmanager
    def into(cls, stream: IO[bytes], look: Progress) -> Iterator[_Archive]:
        """A tar.gz into this stream, complete after the block."""
        with (
            gzip.GzipFile("", "wb", LEVEL, stream) as zipped,
            tarfile.open(fileobj=zipped, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            yield cls(tar, look)

    def add_bytes(self, name: str, content: bytes) -> None:
        self._add(name, BytesIO(content), len(content), time.time())

    def add_file(self, name: str, file: Path) -> None:
        """Raises FileNotFoundError before anything is added."""
        with file.open("rb") as content:
            status = os.fstat(content.fileno())
            self._add(name, content, status.st_size, status.st_mtime)

    def finish(self) -> tuple[int, int]:
        """Add the sums. Returns the number of files beside the journal, and bytes in all."""
        count = sum(name.startswith(FILES) for name in self._sums)
        lines = "".join(f"{digest}  {name}\n" for name, digest in self._sums.items())
        self.add_bytes(SUMS, lines.encode())
        return count, self._size

    def _add(self, name: str, content: IO[bytes], size: int, changed: float) -> None:
        self._look()
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, FILE_MODE, int(changed)
        reading = _Hashing(content, self._look)
        self._tar.addfile(info, reading)
        self._sums[name] = reading.digest
        self._size += size


class _Hashing:
    def __init__(self, stream: IO[bytes], look: Progress) -> None:
        self._stream, self._look, self._hash = stream, look, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        self._look()
        data = self._stream.read(size)
        self._hash.update(data)
        return data

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def _belongs_to(journal: Path, file: Path) -> bool:
    """Whether this is the journal, or a file that SQLite or the bot keeps beside it."""
    name, ours = file.name.casefold(), journal.name.casefold()  # the disk may ignore case
    return file.parent == journal.parent and (name == ours or name.startswith(f"{ours}-"))


# --- restoring ------------------------------------------------------------------------------------


def restore(
    journal: Path, stream: IO[bytes], *, version: str, stamp: str, shown: str = ""
) -> Restored:
    """Restore a backup as the journal of this name. Existing files move to a folder with this
    `stamp` in its name. `shown` is the backup's name for people.

    Raises BackupError, without a change, for a backup that is damaged or that this version cannot
    read, and while a bot runs.
    """
    journal = journal.absolute() if not journal.exists() else journal.resolve()
    folder, place = journal.parent, _place_of(journal)
    with _told(folder):
        make_folder(folder)
        with _claimed(journal):
            _finish(journal)
            place.mkdir(mode=FOLDER_MODE)
            try:
                with _unpacking(shown):
                    manifest, names = _unpack(stream, place / NEW, version, shown)
                _check_unpacked(place / NEW, manifest, shown)
                plan = _plan(journal, names, stamp)
                _hand_over(folder, place)
                _write_plan(place, plan)
            except BaseException:
                (place / PLAN).unlink(missing_ok=True)  # a partial plan must not be followed
                shutil.rmtree(place, ignore_errors=True)
                raise
            _finish(journal)
    return Restored(manifest, folder / plan.aside)


def complete(journal: Path) -> None:
    """Complete an interrupted restore, if there is one. Only for the process that has the journal.
    Raises OSError.
    """
    place, folder = _place_of(journal), journal.parent
    if not _is_pending(journal):
        shutil.rmtree(place, ignore_errors=True)  # prepared, but interrupted before the first move
        return
    plan = msgspec.json.decode((place / PLAN).read_bytes(), type=_Plan)
    aside = folder / plan.aside
    aside.mkdir(mode=FOLDER_MODE, exist_ok=True)
    for step in plan.steps:
        _do(step, folder, place / NEW, aside)
    os.utime(aside)  # the time of the restore, even if it moved nothing aside
    _hand_over(folder, aside)
    for changed in (aside, folder):
        _sync(changed)
    (place / PLAN).unlink()
    _sync(place)
    shutil.rmtree(place, ignore_errors=True)


def refuse_unfinished(journal: Path) -> None:
    """Raise BackupError if a restore was interrupted: only the journal's owner may complete it."""
    if _is_pending(journal):
        raise BackupError(_unfinished(journal))


def _finish(journal: Path) -> None:
    try:
        complete(journal)
    except (OSError, KeyboardInterrupt) as error:
        if not _is_pending(journal):
            raise
        raise BackupError(_unfinished(journal, error)) from error


def _unfinished(journal: Path, error: BaseException | None = None) -> Bilingual:
    why = f" ({error})" if isinstance(error, OSError) else ""
    return BACKUP_UNFINISHED.fill(file=journal, why=why)


def _place_of(journal: Path) -> Path:
    return journal.with_name(journal.name + PLACE)


def _is_pending(journal: Path) -> bool:
    return (_place_of(journal) / PLAN).exists()


@contextmanager
def _claimed(journal: Path) -> Iterator[None]:
    """Hold the journal within the block. Raises BackupError while a bot has it."""
    claim = FileClaim(journal)
    try:
        claim.take()
    except JournalTaken:
        who = holder_of(journal) or ""
        raise BackupError(BACKUP_BUSY.fill(file=journal, who=who)) from None
    try:
        yield
    finally:
        claim.release(whole=not _is_pending(journal))


@contextmanager
def _unpacking(shown: str) -> Iterator[None]:
    """Convert the errors of a damaged archive to BackupError."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise BackupError(BACKUP_NOT_ONE.fill(file=shown)) from error


def _unpack(
    stream: IO[bytes], folder: Path, version: str, shown: str
) -> tuple[Manifest, list[str]]:
    """Unpack everything into this folder and nowhere else, and check it against the sums. Returns
    the names. Raises the errors that `_unpacking` expects, BackupError, and OSError.
    """
    folder.mkdir(mode=FOLDER_MODE)
    with (
        gzip.GzipFile(fileobj=stream, mode="rb") as unzipped,
        tarfile.open(fileobj=unzipped, mode="r|") as archive,
    ):
        members = iter(archive)
        manifest = _read_manifest(archive, next(members, None), version, shown)
        found = {MANIFEST: manifest[1]}
        for member in members:
            _check_name(member, found)
            content = archive.extractfile(member)
            if content is None:
                raise ValueError("no file")
            if member.name == SUMS:
                _compare(content.read(LARGEST).decode(), found)
                return manifest[0], [name for name in found if name != MANIFEST]
            found[member.name] = _write(content, folder / member.name, member.size)
    raise EOFError("it has no end")


def _read_manifest(
    archive: tarfile.TarFile, member: tarfile.TarInfo | None, version: str, shown: str
) -> tuple[Manifest, str]:
    """Return the manifest and its sum. Raises BackupError if the rest is unreadable here."""
    if member is None or member.name != MANIFEST or member.size > LARGEST:
        raise ValueError("it has no manifest")
    content = archive.extractfile(member)
    raw = b"" if content is None else content.read()
    manifest = msgspec.json.decode(raw, type=Manifest)
    if manifest.format != FORMAT:
        raise BackupError(BACKUP_UNKNOWN_FORMAT.fill(theirs=manifest.version, ours=version))
    with _no_older(shown, RESTORE_FIRST.fill(commit=COMMIT)):
        refuse_older_revision(manifest.schema)
    if manifest.schema not in REVISIONS:
        raise BackupError(
            BACKUP_TOO_NEW.fill(
                theirs=manifest.version,
                schema=manifest.schema,
                ours=version,
                own=REVISIONS[-1],
            )
        )
    return manifest, hashlib.sha256(raw).hexdigest()


def _check_name(member: tarfile.TarInfo, found: Mapping[str, str]) -> None:
    """Raise ValueError for anything but a regular file, and for a path outside the folder."""
    name = member.name
    is_known = name in {JOURNAL, AHEAD, SUMS} or (name.startswith(FILES) and name != FILES)
    if not member.isreg() or not _is_portable(name) or not is_known or name in found:
        raise ValueError(f"{name!r} does not belong into a backup")


def _is_portable(name: str) -> bool:
    """Whether this is a relative path, the same on every system, that fits a line of the sums."""
    parts = PurePosixPath(name).parts
    is_plain = name == "/".join(parts) and not {"", ".", "..", "/"} & set(parts)
    return is_plain and name.isprintable() and not {"\\", ":"} & set(name)


def _write(content: IO[bytes], file: Path, size: int) -> str:
    file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    summed, left = hashlib.sha256(), size
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as target:
        while left and (data := content.read(min(CHUNK, left))):
            summed.update(data)
            target.write(data)
            left -= len(data)
        target.flush()
        os.fsync(target.fileno())
    if left:
        raise EOFError(file.name)
    return summed.hexdigest()


def _compare(sums: str, found: Mapping[str, str]) -> None:
    told = {}
    for line in sums.splitlines():
        digest, _, name = line.partition("  ")
        told[name] = digest
    if told != dict(found) or JOURNAL not in told:
        raise ValueError("its sums are not those of its files")


def _check_unpacked(folder: Path, manifest: Manifest, shown: str) -> None:
    try:
        with closing(sqlite3.connect(folder / JOURNAL)) as connection:
            _check(connection, Path(shown))
            schema = file_revision(connection)
    except sqlite3.Error as error:
        raise BackupError(BACKUP_SPOILT.fill(file=shown, what=error)) from error
    if schema != manifest.schema:
        raise BackupError(BACKUP_NOT_ONE.fill(file=shown))
    with _no_older(shown, RESTORE_FIRST.fill(commit=COMMIT)):
        refuse_older_file(folder / JOURNAL)


def _plan(journal: Path, names: Iterable[str], stamp: str) -> _Plan:
    # The log first: it must not be taken for the new journal's.
    folder = journal.parent
    names = list(names)
    steps = [
        _Step(journal.name + suffix)
        for suffix in (*BESIDE, "-journal")
        if JOURNAL + suffix not in names
    ]
    for name in names:
        if name in {JOURNAL, AHEAD}:
            steps.append(_Step(journal.name + name.removeprefix(JOURNAL), name))
        elif not _belongs_to(
            journal, folder / (kept := name.removeprefix(FILES)).partition("/")[0]
        ):
            steps.append(_Step(kept, name))
    aside = f"{journal.name}{ASIDE}{stamp}"
    while (folder / aside).exists():
        aside += "+"
    return _Plan(aside, tuple(steps))


def _write_plan(place: Path, plan: _Plan) -> None:
    """Once this returns, the restore will be completed, however often it is interrupted."""
    for folder, _, _ in os.walk(place):
        _sync(Path(folder))
    draft = place / f"{PLAN}.unfinished"
    with draft.open("wb") as file:
        file.write(msgspec.json.encode(plan))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place / PLAN)
    _sync(place)
    _sync(place.parent)


def _do(step: _Step, folder: Path, fresh: Path, aside: Path) -> None:
    """Do one step, which may have been begun or done before a kill."""
    target, new = folder / step.name, fresh / step.new
    if step.new and not new.exists():
        return  # done before
    above = [place for place in reversed(target.parents) if place.is_relative_to(folder)]
    for place in (*above, target):  # a file may be in the place of a folder
        if os.path.lexists(place) and (place == target or not place.is_dir()):
            _move(place, _free(aside / place.relative_to(folder)))
    if not step.new:
        return
    for place in above:
        if not place.exists():
            place.mkdir(mode=FOLDER_MODE)
            _hand_over(folder, place)
    _sync(aside)
    _move(new, target)


def _free(name: Path) -> Path:
    """This name, or a similar one that is free."""
    while os.path.lexists(name):
        name = name.with_name(f"{name.name}+")
    name.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    return name


def _move(file: Path, target: Path) -> None:
    """Move a file, folder or link to a free name, also onto another disk."""
    try:
        file.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        draft = _free(target.with_name(f".{target.name}.unfinished"))
        shutil.copy2(file, draft, follow_symlinks=False)
        _hand_over(file, draft)
        _sync(draft)
        draft.replace(target)
        _sync(target.parent)
        file.unlink()


def _hand_over(folder: Path, made: Path) -> None:
    """Give what root has made to the folder's owner, which is the bot's account in a container."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return
    owner = folder.stat()
    for file in (made, *made.rglob("*")):
        os.chown(file, owner.st_uid, owner.st_gid, follow_symlinks=False)


# --- both -----------------------------------------------------------------------------------------


@contextmanager
def _no_older(shown: str, fix: Bilingual | None = None) -> Iterator[None]:
    """Convert the refusal of an older journal to BackupError, with this remedy if given."""
    try:
        yield
    except OlderJournal as error:
        told = BACKUP_OLDER.fill(file=shown, what=error.what, fix=fix or error.fix)
        raise BackupError(told) from error


@contextmanager
def _told(place: Path | Bilingual) -> Iterator[None]:
    """Convert the system's errors to BackupError."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise BackupError(BACKUP_FAILED.fill(file=error.filename or place, why=why)) from error


@contextmanager
def _work_in(parent: Path, beginning: str) -> Iterator[Path]:
    """A temporary folder, deleted after the block."""
    work = Path(tempfile.mkdtemp(".unfinished", beginning, parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _room_on(work: Path, journal: Path) -> Progress:
    """Return a check that raises OSError, as a full disk would, before the bot's disk is full."""
    if work.stat().st_dev != journal.stat().st_dev:
        return lambda: None

    def look() -> None:
        if shutil.disk_usage(work).free < RESERVE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(work.parent))

    return look


def _sync(place: Path) -> None:
    """Make a file, or a rename in a folder, survive a power failure, if the system can."""
    if os.name != "posix" or place.is_symlink():
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network disks cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
