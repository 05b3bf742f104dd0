"""The commands `backup` and `restore`."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from sqlalchemy import URL

from adapters.control.client import NoAnswer, NotRunning, ask_bot
from adapters.storage.backup import BackupError, Made, back_up, back_up_to, restore
from adapters.storage.notices import BACKUP_BUSY, STANDARD_OUTPUT
from adapters.storage.url import file_of, read_url
from bot.cli.control import socket_of
from bot.cli.process import fail, language, say, tell
from bot.core.language import CATALOGUE, Language, Phrase
from bot.runtime.version import version
from config import sources
from config.settings import Settings

STREAM: Final = "-"
NAMED: Final = (
    "bot_persona",
    "personas_dir",
    "groups_file",
    "words_file",
    "tools_dir",
    "games_file",
    "subagents_file",
    "mcp_file",
    "llm_prices",
    "media_dir",
)
"""Settings that name files which a backup must include."""
PROGRAM: Final = Path(__file__).resolve().parents[2] / "config"
"""Files that are part of the program."""
MADE_AGAIN: Final = {"__pycache__"}
TERMINATED: Final = 143  # a shell's exit code for SIGTERM

DONE: Final = Phrase(
    "已备份到 {file}：{size}（数据库结构 {schema}，账号 {accounts}，另有 {files} 个文件）。"
    "里面有聊天记录和密钥，要像密码一样保管。",
    "Backed up to {file}: {size} (schema {schema}, accounts {accounts}, {files} more files)."
    " It contains conversations and keys: protect it like a password.",
)
NONE: Final = Phrase("无", "none")
ALSO: Final = Phrase("不在其中，请另外保存：{them}", "Not included, save these yourself: {them}")
WAITING: Final = Phrase(
    "注意：数据库现在写不进去，还有 {count} 条记录只在机器人的内存里，不在这份备份中。",
    "warning: the journal cannot be written, and {count} entries are only in the bot's memory:"
    " they are not in this backup.",
)
TERMINAL: Final = Phrase(
    "备份不能输出到终端：请重定向，例如 `frostagent backup - > backup.tgz`。",
    "A backup cannot be written to a terminal: redirect it, e.g. `frostagent backup - >"
    " backup.tgz`.",
)
NO_INPUT: Final = Phrase(
    "备份不能从终端输入：请重定向，例如 `frostagent restore - < backup.tgz`。",
    "A backup cannot be read from a terminal: redirect it, e.g. `frostagent restore - <"
    " backup.tgz`.",
)
UNREADABLE: Final = Phrase("读不了 {file}：{why}。", "{file} cannot be read: {why}.")
STOPPED: Final = Phrase("已中止，什么都没有改动。", "Stopped. Nothing has changed.")
RESTORED: Final = Phrase(
    "已恢复 {made} 的备份（FrostAgent {version}，账号 {accounts}）。"
    "原来的数据移到了 {aside}：确认没问题后可以删掉。",
    "Restored the backup of {made} (FrostAgent {version}, accounts {accounts}). The previous"
    " data is in {aside}: delete it once you have checked that all is well.",
)
DUMP: Final = Phrase(
    "数据库在 PostgreSQL 里，用它自己的工具备份（机器人不必停）：\n"
    "  pg_dump --format=custom{file} --dbname={url}\n"
    "另外保存：{them}",
    "The journal is in PostgreSQL: use its own tool (the bot may keep running):\n"
    "  pg_dump --format=custom{file} --dbname={url}\n"
    "Save these as well: {them}",
)
UNDUMP: Final = Phrase(
    "数据库在 PostgreSQL 里，用它自己的工具恢复。"
    "先停下所有机器人，并确认备份已经做好两分钟以上：\n"
    "  pg_restore --clean --if-exists --no-owner --single-transaction --dbname={url}{file}",
    "The journal is in PostgreSQL: use its own tool. Stop every bot first, and make sure that"
    " the backup is at least two minutes old:\n"
    "  pg_restore --clean --if-exists --no-owner --single-transaction --dbname={url}{file}",
)
CATALOGUE.register(__name__, globals())


def make_backup(settings: Settings, name: str, *, force: bool) -> None:
    """Back up the journal to this file, or to standard output for `-`. Exits the process on
    failure.
    """
    users_language = language()
    url = read_url(settings.store_url.get_secret_value())
    journal = file_of(url)
    if journal is None:
        beside = [*_beside_folder(settings, None), "data/"]
        file = "" if name == STREAM else f" --file={shlex.quote(name)}"
        say(DUMP, file=file, url=shlex.quote(_for_tools(url)), them=", ".join(beside))
        raise SystemExit(1)
    journal = journal.absolute()
    files = list(files_beside(settings, journal))
    signal.signal(signal.SIGTERM, _end)  # removes an unfinished file
    waiting = _waiting_in_memory(settings.store_url.get_secret_value())
    try:
        if name == STREAM:
            if sys.stdout.isatty():
                fail(TERMINAL)
            # With PYTHONUNBUFFERED, as in our image, sys.stdout may write only a part silently.
            stream = os.fdopen(sys.stdout.fileno(), "wb", closefd=False)
            made = back_up_to(journal, stream, files=files, version=version())
        else:
            made = back_up(journal, Path(name), files=files, version=version(), force=force)
    except BackupError as error:
        if name == STREAM:  # Python would write the rest of its buffer again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(error.line)
    except KeyboardInterrupt:
        fail(STOPPED)
    tell(_done(made, name, users_language))
    if beside := [*_beside_folder(settings, journal.parent), *made.left_out]:
        say(ALSO, them=", ".join(beside))
    if waiting:
        say(WAITING, count=waiting)


def put_back(store_url: str, name: str) -> None:
    """Restore this file, or standard input for `-`. Exits the process on failure."""
    url = read_url(store_url)
    journal = file_of(url)
    if journal is None:
        file = "" if name == STREAM else f" {shlex.quote(name)}"
        say(UNDUMP, file=file, url=shlex.quote(_for_tools(url)))
        raise SystemExit(1)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    if (pid := _bot_that_answers(store_url)) is not None:  # not every system has file locks
        fail(BACKUP_BUSY, file=journal.absolute(), who=f" (pid {pid})")
    if name == STREAM and sys.stdin.isatty():
        fail(NO_INPUT)
    try:
        with sys.stdin.buffer if name == STREAM else Path(name).open("rb") as stream:
            done = restore(journal, stream, version=version(), stamp=stamp, shown=name)
    except BackupError as error:
        fail(error.line)
    except OSError as error:
        fail(UNREADABLE, file=name, why=error.strerror or error)
    except KeyboardInterrupt:
        fail(STOPPED)
    manifest = done.manifest
    say(
        RESTORED,
        made=manifest.made,
        version=manifest.version,
        accounts=_listed(manifest.accounts),
        aside=done.aside,
    )


def files_beside(settings: Settings, journal: Path) -> Iterator[Path]:
    """The files in the journal's folder that a setting names or `init` made, as resolved paths,
    without files of the program itself.
    """
    folder = journal.resolve().parent
    for path in (*_named(settings), sources.MADE.absolute()):
        inside = path.resolve()
        if not inside.is_relative_to(folder) or inside.is_relative_to(PROGRAM):
            continue
        for file in inside.rglob("*") if inside.is_dir() else (inside,):
            if file.is_file() and not MADE_AGAIN & set(file.parts):
                yield file


def _named(settings: Settings) -> Iterator[Path]:
    for name in NAMED:
        path: Path | None = getattr(settings, name)
        if path is not None and path.exists():
            yield path.absolute()


def _beside_folder(settings: Settings, folder: Path | None) -> list[str]:
    """What else a bot needs that a backup of this folder does not include."""
    outside = [
        str(path)
        for path in _named(settings)
        if (folder is None or not path.resolve().is_relative_to(folder.resolve()))
        and not path.resolve().is_relative_to(PROGRAM)
    ]
    return [".env", "napcat/ (llbot/)", *outside]


def _waiting_in_memory(store_url: str) -> int:
    """The number of entries that the running bot cannot write; 0 if none is running."""
    journal = _status(store_url).get("journal", {})
    return int(journal.get("waiting", 0)) if journal.get("in_trouble") else 0


def _bot_that_answers(store_url: str) -> int | None:
    """The process ID of the running bot, None if none answers."""
    return _status(store_url).get("pid")


def _status(store_url: str) -> Mapping[str, Any]:
    """The status of the running bot; empty if none answers."""
    try:
        with ask_bot(socket_of(store_url), "status") as answered:
            return answered.answer
    except (NotRunning, NoAnswer):
        return {}


def _done(made: Made, name: str, language: Language) -> str:
    return DONE.format(
        language,
        file=STANDARD_OUTPUT if name == STREAM else name,
        size=_size(made.size),
        schema=made.manifest.schema,
        accounts=_listed(made.manifest.accounts),
        files=made.files,
    )


def _listed(accounts: tuple[int, ...]) -> str:
    return ", ".join(map(str, accounts)) or NONE.fill()


def _size(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MB" if size >= 1024 * 1024 else f"{size // 1024 + 1} kB"


def _for_tools(url: URL) -> str:
    """The URL in the form that PostgreSQL's tools accept, without the password."""
    query = {name: text for name, text in url.query.items() if "password" not in name}
    bare = URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    return bare.render_as_string()


def _end(*_: object) -> NoReturn:
    raise SystemExit(TERMINATED)
