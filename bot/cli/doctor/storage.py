"""Checks of storage: the folders can be written and have space, the journal opens with our schema,
and no other user of this machine can read the secrets or write into the folders.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters.storage.database import Database, checked_revision, describe_error
from adapters.storage.queries.conversations import settings as place_settings
from adapters.storage.tables import REVISIONS
from adapters.storage.url import file_of, read_url
from bot.approvals.join_requests import SETTING as PETITION
from bot.cli.checks import Check, failure, failures, ok, warning
from bot.core.language import CATALOGUE, Phrase
from bot.memory.modes import MODE, Mode
from config.checks import writers_of
from config.settings import Settings
from config.sources import MADE
from frostagent.types.errors import ConfigError

MIB = 2**20
LITTLE = 500 * MIB  # bytes
TOO_LITTLE = 50 * MIB


NOT_WRITABLE: Final = Phrase("{folder} 写不了（{why}）", "{folder} cannot be written ({why})")
LET_IT_WRITE: Final = Phrase(
    "让运行机器人的用户能写（chown、chmod，或者换成可写的挂载）：{there}",
    "Let the account that runs the bot write there (chown, chmod, or a volume that "
    "is not read-only): {there}",
)
WRITABLE: Final = Phrase(
    "{folder} 可以写，还剩 {free} MiB", "{folder} can be written, {free} MiB free"
)
CAN_BE_MADE: Final = Phrase(
    "{folder} 可以建，还剩 {free} MiB", "{folder} can be created, {free} MiB free"
)
MAKE_ROOM: Final = Phrase("磁盘快满了，清理一下", "Free some disk space")
MAKE_ROOM_SOON: Final = Phrase("磁盘空间不多了，尽快清理", "Free some disk space soon")
NO_JOURNAL_YET: Final = Phrase(
    "{place} 还没有数据库，机器人启动时会建", "no journal yet at {place}: the bot will create it"
)
SEE_THAT_IT_RUNS: Final = Phrase(
    "看看数据库开着没有、STORE_URL 对不对；文件坏了的话，机器人启动时会挪到一边",
    "Check that the database runs and STORE_URL names it; a damaged file is set aside when"
    " the bot starts",
)
DOES_NOT_OPEN: Final = Phrase("数据库打不开（{why}）", "the journal does not open ({why})")
ANSWER_FROM_PRIVATE: Final = Phrase(
    "私聊机器人发 /上线 群号 或 /忽略 群号；并加它的账号为好友",
    "Say /live GROUP or /off GROUP to the bot in private; make its account your friend",
)
NAME_OWNER: Final = Phrase(
    "把 BOT_OWNERS 设成你自己的 QQ 号", "Set BOT_OWNERS to your own QQ number"
)
UNREAD_DRAFTS: Final = Phrase(
    "影子模式的群有草稿，但没有主人能看：{groups}",
    "no owner can read the drafts of the groups in shadow mode: {groups}",
)
UNANSWERED_REQUESTS: Final = Phrase(
    "有好友申请或入群邀请在等，但没有主人能答复：{count}",
    "no owner can answer the friend requests and invites that wait: {count}",
)
EMPTY_DATABASE: Final = Phrase(
    "{place} 是空的，机器人启动时会建表", "{place} is empty: the bot will create its tables"
)
SCHEMA_CURRENT: Final = Phrase(
    "{place} 打得开，表结构是最新的（{revision}）",
    "{place} opens, its schema is current ({revision})",
)
SCHEMA_OLDER: Final = Phrase(
    "{place} 的表结构是 {revision}，还不是 {current}",
    "{place} has schema {revision}, not yet {current}",
)
START_BOT: Final = Phrase("启动机器人就会升级", "Start the bot: it will migrate it")
START_NEWER: Final = Phrase(
    "启动那个版本，或者在 STORE_URL 里换一个数据库",
    "Start that version, or name another database in STORE_URL",
)
SCHEMA_NEWER: Final = Phrase(
    "{place} 是更新版本的机器人用的（表结构 {revision}）",
    "{place} was written by a newer version of the bot (schema {revision})",
)
ALL_PRIVATE: Final = Phrase(
    "这台机器上的其他人读不到密钥，也改不了机器人的目录", "nothing is open to others"
)
READABLE_SECRETS: Final = Phrase(
    "{file} 里有密钥，这台机器上的其他人也能读",
    "{file} holds secrets, and others on this machine can read it",
)
HIDE_FILE: Final = Phrase("执行 chmod 600 {file}", "chmod 600 {file}")
WRITABLE_BY_OTHERS: Final = Phrase(
    "{folder} 可以被 {writers} 改写", "{folder} can be written by {writers}"
)
PROTECT_FOLDER: Final = Phrase(
    "先看看是谁的，再执行 chmod go-w {folder}", "Check who owns it, and chmod go-w {folder}"
)
UNHEARD_GROUPS: Final = Phrase(
    "有 {count} 个新群还没能告诉主人：{groups}",
    "no owner was told about {count} new groups: {groups}",
)
CATALOGUE.register(__name__, globals())


def check_folders(settings: Settings) -> list[Check]:
    """The folders of the journal and of the media, each once. Blocks."""
    return [check_folder(folder) for folder in dict.fromkeys(folders_of(settings))]


def check_folder(folder: Path, *, little: int = LITTLE, too_little: int = TOO_LITTLE) -> Check:
    """Whether a file can be created there, or the folder itself if it is missing, and whether there
    is space (bytes).
    """
    there = folder.absolute()
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except OSError as error:
        return failure(
            "data folder",
            NOT_WRITABLE,
            LET_IT_WRITE,
            folder=folder,
            why=error.strerror,
            there=there,
        )
    is_there = there == folder.absolute()
    said = (WRITABLE if is_there else CAN_BE_MADE).fill(
        folder=folder,
        free=free // MIB,
    )
    if free < too_little:
        return failure("data folder", said, MAKE_ROOM)
    return (
        warning("data folder", said, MAKE_ROOM_SOON) if free < little else ok("data folder", said)
    )


def check_store(settings: Settings) -> list[Check]:
    """Whether the journal opens; creates and migrates nothing. Blocks."""
    database = None
    try:
        database = Database(settings.store_url.get_secret_value(), migrate=_leave)
        if database.file is not None and not database.file.exists():
            return [
                ok(
                    "store",
                    NO_JOURNAL_YET,
                    place=database.place,
                )
            ]
        with database.reading() as connection:
            revision = checked_revision(connection, database.file)
            told = [_judge(revision, database.place)]
            if revision != REVISIONS[-1]:
                return told
            return [*told, *_unheard(connection), *_unread(connection, settings)]
    except ConfigError as error:
        return failures("store", error.problems)
    except (OSError, SQLAlchemyError) as error:
        fix = SEE_THAT_IT_RUNS
        return [
            failure(
                "store",
                DOES_NOT_OPEN,
                fix,
                why=describe_error(error),
            )
        ]
    finally:
        if database is not None:
            database.close()


def folders_of(settings: Settings) -> Iterator[Path]:
    """The bot's data folders: that of an SQLite journal, and that of the media."""
    try:
        file = file_of(read_url(settings.store_url.get_secret_value()))
    except ConfigError:
        file = None  # `check_store` reports it
    if file is not None:
        yield file.parent
    yield settings.media_dir


def _leave(_connection: Connection) -> None:
    """Does nothing: looking at a journal must not migrate it."""


def _unheard(connection: Connection) -> list[Check]:
    """The new groups that have not been reported to any owner."""
    modes = place_settings(connection, MODE.name)
    groups = sorted(where.session_id for where, mode in modes.items() if mode == Mode.ASKING)
    if not groups:
        return []
    said = UNHEARD_GROUPS.fill(count=len(groups), groups=groups[:10])
    return [warning("new groups", said, ANSWER_FROM_PRIVATE)]


def _unread(connection: Connection, settings: Settings) -> list[Check]:
    """Drafts and requests that no owner can see."""
    if settings.bot_owners:
        return []
    modes = place_settings(connection, MODE.name)
    groups = sorted(where.session_id for where, mode in modes.items() if mode == Mode.SHADOW)
    waiting = sum(map(bool, place_settings(connection, PETITION).values()))
    fix = NAME_OWNER
    told = []
    if groups:
        told.append(
            warning(
                "drafts",
                UNREAD_DRAFTS,
                fix,
                groups=groups[:10],
            )
        )
    if waiting:
        told.append(
            warning(
                "requests",
                UNANSWERED_REQUESTS,
                fix,
                count=waiting,
            )
        )
    return told


def _judge(revision: str | None, place: str) -> Check:
    match revision:
        case None:
            return ok(
                "store",
                EMPTY_DATABASE,
                place=place,
            )
        case current if current == REVISIONS[-1]:
            return ok(
                "store",
                SCHEMA_CURRENT,
                place=place,
                revision=current,
            )
        case older if older in REVISIONS:
            return warning(
                "store",
                SCHEMA_OLDER,
                START_BOT,
                place=place,
                revision=older,
                current=REVISIONS[-1],
            )
        case newer:
            fix = START_NEWER
            return failure(
                "store",
                SCHEMA_NEWER,
                fix,
                place=place,
                revision=newer,
            )


# --- who else can read and write ------------------------------------------------------------------


OTHERS_READ = 0o044


def check_privacy(settings: Settings, *, env_file: Path | None) -> list[Check]:
    """Files with secrets that others can read, and folders that others can write. Blocks."""
    if os.name != "posix":
        return []
    return [*_readable(env_file), *_writable(settings)] or [
        ok(
            "privacy",
            ALL_PRIVATE,
        )
    ]


def _readable(env_file: Path | None) -> Iterator[Check]:
    for file in filter(None, (env_file, env_file and env_file.parent / MADE)):
        if file.exists() and file.stat().st_mode & OTHERS_READ:
            yield warning(
                "privacy",
                READABLE_SECRETS,
                HIDE_FILE,
                file=file,
            )


def _writable(settings: Settings) -> Iterator[Check]:
    for folder in dict.fromkeys(folders_of(settings)):
        if writers := writers_of(folder):
            yield warning(
                "privacy",
                WRITABLE_BY_OTHERS,
                PROTECT_FOLDER,
                folder=folder,
                writers=writers,
            )
