"""The commands on the journal: exporting, forgetting, backing up, looking at runs."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Argument, Option

from bot.cli.control_commands import AsJson, forget_running
from bot.cli.process import configure, exit_with, fail, find_store_url, say
from bot.core.language import CATALOGUE, Phrase
from config.settings import Settings
from frostagent.types.errors import ConfigError

if TYPE_CHECKING:
    from adapters.storage.database import Database

NOTHING_STORED: Final = Phrase("没有关于 {which} 的任何记录。", "Nothing is stored about {which}.")
FORGOTTEN: Final = Phrase("已忘掉：{them}", "Forgotten: {them}")
NOTHING: Final = Phrase("本来就没有", "nothing was there")
BY_THE_BOT: Final = Phrase(
    "{rows} 行，由正在运行的机器人删除", "{rows} rows, by the bot that runs here"
)
STILL_IN: Final = Phrase(
    "警告：{file} 是以前另存的，里面还有这些内容；不需要的话请删掉这个文件",
    "warning: {file} was put aside earlier and still has it; delete the file if you do not need it",
)
NO_RUN: Final = Phrase("没有这次运行：{run}。", "There is no run {run}.")
UNUSABLE: Final = Phrase("数据库不能用：{why}", "The journal cannot be used: {why}")
CATALOGUE.register(__name__, globals())


def export(conversation: Annotated[str, Option(help="Which one, as 10001:group:4242.")]) -> None:
    """Everything stored about a conversation, on standard output: one JSON object a line, with its
    type.
    """
    from adapters.storage.queries.export import export as lines_of
    from bot.core.conversation import Conversation, NotAConversation

    try:
        which = Conversation.parse(conversation)
    except NotAConversation as error:
        raise typer.BadParameter(str(error)) from None
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as `export ... | head` expects
    with journal() as database, database.reading() as connection:
        found = False
        for line in lines_of(connection, which):
            print(line)
            found = True
    if not found:
        fail(NOTHING_STORED, which=which)


def forget(
    user: Annotated[int, Option(help="A person: what they said, wherever it was.", min=0)] = 0,
    group: Annotated[int, Option(help="A group: all that was said there.", min=0)] = 0,
) -> None:
    """Erase a person or a group, in every table; the bytes leave the file. The bot that runs here
    does it, as /forget in the chat.
    """
    from adapters.media.folder import delete_lost
    from adapters.storage.erasure import forget_group, forget_user, has_turn

    if bool(user) == bool(group):
        raise typer.BadParameter("name either --user or --group")
    settings = configure(service=False)
    store_url = settings.store_url.get_secret_value()
    rows, remains = forget_running(store_url, **({"user": user} if user else {"group": group}))
    if rows is None:
        with journal(settings) as database:
            gone = forget_user(database, user) if user else forget_group(database, group)
            delete_lost(settings.media_dir, partial(has_turn, database))
        them: str = ", ".join(f"{rows} {table}" for table, rows in gone.items() if rows)
    else:
        them = BY_THE_BOT.fill(rows=rows) if rows else ""
    say(FORGOTTEN, them=them or NOTHING)
    for copy in copies_of(store_url):
        say(STILL_IN, file=copy)
    if remains:
        say(remains)


def backup(
    file: Annotated[str, Argument(help="The file to write; - is standard output.")],
    *,
    force: Annotated[bool, Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Save the journal and the files beside it to one file; the bot may run meanwhile. It lacks
    .env and the OneBot server's folder.
    """
    from bot.cli.backup import make_backup

    make_backup(configure(service=False), file, force=force)


def restore(
    file: Annotated[str, Argument(help="A file that `backup` made; - is standard input.")],
) -> None:
    """Put a backup back; the bot must be stopped. What was there is moved aside, not deleted."""
    from bot.cli.backup import put_back

    try:
        put_back(find_store_url(), file)
    except ConfigError as error:
        exit_with(error)


def runs_list(
    context: typer.Context,
    limit: Annotated[int, Option(help="How many.", min=1)] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """The latest runs, newest first, of the file LOG_RUNS; of the journal where that is not set."""
    if context.invoked_subcommand is None:
        from bot.cli.past_runs import latest_runs, runs_to_text, to_json

        settings = configure(service=False)
        found = latest_runs(settings, lambda: journal(settings), limit=limit)
        print(to_json(found) if as_json else runs_to_text(found))


def runs_show(run: str, *, as_json: AsJson = False) -> None:
    """One run: each answer of the model, the calls it made, their results. Texts with LOG_CONTENT=1
    only.
    """
    from bot.cli.past_runs import chain_to_text, lines_of, to_json

    settings = configure(service=False)
    lines = lines_of(settings, lambda: journal(settings), run)
    if not lines:
        fail(NO_RUN, run=run)
    print(to_json(lines) if as_json else chain_to_text(lines))


def copies_of(store_url: str) -> list[Path]:
    """Journals that were put aside beside this one."""
    from adapters.storage.database import Database

    database = Database(store_url, migrate=lambda _: None)
    database.close()
    return database.copies()


@contextlib.contextmanager
def journal(settings: Settings | None = None) -> Iterator[Database]:
    """The journal's database, for a command; what is wrong with it is told in one line and ends the
    process.
    """
    from adapters.storage.ahead import batches_for
    from adapters.storage.database import Database, describe_error
    from adapters.storage.migrations import migrate
    from adapters.storage.notices import NO_JOURNAL

    settings = settings or configure(service=False)
    try:
        database = Database(settings.store_url.get_secret_value(), migrate=migrate)
        if database.file is not None and not database.file.exists():
            fail(NO_JOURNAL, file=database.place)
        with contextlib.closing(database):
            batches_for(database, stamp=str).settle()
            yield database
    except ConfigError as error:
        exit_with(error)
    except Exception as error:
        logging.getLogger("bot").debug("the journal cannot be used", exc_info=True)
        say(UNUSABLE, why=describe_error(error))
        raise SystemExit(1) from None
