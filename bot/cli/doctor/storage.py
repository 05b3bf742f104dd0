"""Where data is kept: the folders can be written and have room, the journal opens and its schema is
ours, and no one else on this machine reads the secrets or writes into the folders.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters.storage.database import Database, checked_revision, describe_error
from adapters.storage.queries.conversations import settings as place_settings
from adapters.storage.tables import REVISIONS
from adapters.storage.url import file_of, read_url
from bot.cli.doctor.checks import Check, warn, well, wrong, wrong_settings
from bot.cli.doctor.chinese import sentence
from bot.conversation.approval.join_request_store import SETTING as PETITION
from bot.domain.errors import ConfigError
from bot.memory.modes import SETTING
from bot.policy.new_groups import Mode
from config.checks import writers_of
from config.settings import Settings
from config.sources import MADE

MIB = 2**20
LITTLE = 500 * MIB  # bytes
TOO_LITTLE = 50 * MIB


def check_folders(settings: Settings) -> list[Check]:
    """The folders of the journal and of the media, each once. Blocks."""
    return [check_folder(folder) for folder in dict.fromkeys(folders_of(settings))]


def check_folder(folder: Path, *, little: int = LITTLE, too_little: int = TOO_LITTLE) -> Check:
    """Whether a file can be made there, or the folder itself where it is missing; and whether there
    is room (bytes).
    """
    there = folder.absolute()
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except OSError as error:
        mend = sentence(
            "Let the account that runs the bot write there (chown, chmod, or a volume that is not "
            "read-only): {}",
            there,
        )
        return wrong(
            "data folder", sentence("{} cannot be written ({})", folder, error.strerror), mend
        )
    is_there = there == folder.absolute()
    said = sentence(
        "{} can be written, {} MiB free" if is_there else "{} can be made, {} MiB free",
        folder,
        free // MIB,
    )
    if free < too_little:
        return wrong("data folder", said, "Make room on the disk")
    return (
        warn("data folder", said, "Make room on the disk soon")
        if free < little
        else well("data folder", said)
    )


def check_store(settings: Settings) -> list[Check]:
    """Whether the journal opens; nothing is made and nothing migrated. Blocks."""
    database = None
    try:
        database = Database(settings.store_url.get_secret_value(), migrate=_leave)
        if database.file is not None and not database.file.exists():
            return [
                well("store", sentence("no journal yet at {}: the bot makes it", database.place))
            ]
        with database.reading() as connection:
            revision = checked_revision(connection, database.file)
            told = [_judge(revision, database.place)]
            if revision != REVISIONS[-1]:
                return told
            return [*told, *_unheard(connection), *_unread(connection, settings)]
    except ConfigError as error:
        return wrong_settings("store", error.problems)
    except (OSError, SQLAlchemyError) as error:
        mend = (
            "See that the database runs and STORE_URL names it; a damaged file is put aside when "
            "the bot starts"
        )
        return [
            wrong("store", sentence("the journal does not open ({})", describe_error(error)), mend)
        ]
    finally:
        if database is not None:
            database.close()


def folders_of(settings: Settings) -> Iterator[Path]:
    """Where the bot keeps what it has: the folder of an SQLite journal, and that of the media."""
    try:
        file = file_of(read_url(settings.store_url.get_secret_value()))
    except ConfigError:
        file = None  # `check_store` tells
    if file is not None:
        yield file.parent
    yield settings.media_dir


def _leave(_connection: Connection) -> None:
    """Looking at a journal does not migrate it."""


def _unheard(connection: Connection) -> list[Check]:
    """The mend for new groups of which no owner has heard; nothing where there are none."""
    modes = place_settings(connection, SETTING)
    groups = sorted(where.session_id for where, mode in modes.items() if mode == Mode.ASKING)
    if not groups:
        return []
    said = sentence("no line about {} new groups reached an owner: {}", len(groups), groups[:10])
    mend = "Say /live GROUP or /off GROUP to the bot in private; make its account your friend"
    return [warn("new groups", said, mend)]


def _unread(connection: Connection, settings: Settings) -> list[Check]:
    """The mend where drafts and requests have nobody to read them; nothing where they have, or
    are none.
    """
    if settings.bot_owners:
        return []
    modes = place_settings(connection, SETTING)
    groups = sorted(where.session_id for where, mode in modes.items() if mode == Mode.SHADOW)
    waiting = sum(map(bool, place_settings(connection, PETITION).values()))
    mend = "Set BOT_OWNERS to your own QQ number"
    told = []
    if groups:
        said = sentence("no owner can read the drafts of the groups in a shadow: {}", groups[:10])
        told.append(warn("drafts", said, mend))
    if waiting:
        said = sentence(
            "no owner can answer the friend requests and invites that wait: {}", waiting
        )
        told.append(warn("requests", said, mend))
    return told


def _judge(revision: str | None, place: str) -> Check:
    match revision:
        case None:
            return well("store", sentence("{} is empty: the bot makes its tables", place))
        case current if current == REVISIONS[-1]:
            return well("store", sentence("{} opens, its schema is current ({})", place, current))
        case older if older in REVISIONS:
            return warn(
                "store",
                sentence("{} has schema {}, not yet {}", place, older, REVISIONS[-1]),
                "Start the bot: it migrates it",
            )
        case newer:
            mend = "Start that version, or name another database in STORE_URL"
            return wrong(
                "store",
                sentence("{} is of a newer version of the bot (schema {})", place, newer),
                mend,
            )


# --- who else can read and write ------------------------------------------------------------------


OTHERS_READ = 0o044


def check_privacy(settings: Settings, *, env_file: Path | None) -> list[Check]:
    """Files with secrets that others can read, and folders that others can write. Blocks."""
    if os.name != "posix":
        return []
    return [*_readable(env_file), *_writable(settings)] or [
        well("privacy", "nothing is open to others")
    ]


def _readable(env_file: Path | None) -> Iterator[Check]:
    for file in filter(None, (env_file, env_file and env_file.parent / MADE)):
        if file.exists() and file.stat().st_mode & OTHERS_READ:
            yield warn(
                "privacy",
                sentence("{} holds secrets, and others on this machine can read it", file),
                sentence("chmod 600 {}", file),
            )


def _writable(settings: Settings) -> Iterator[Check]:
    for folder in dict.fromkeys(folders_of(settings)):
        if writers := writers_of(folder):
            yield warn(
                "privacy",
                sentence("{} can be written by {}", folder, writers),
                sentence("See whose it is, and chmod go-w {}", folder),
            )
