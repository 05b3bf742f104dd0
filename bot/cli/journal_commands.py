"""The commands on the journal: export, forget, backup, restore and runs."""

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
from bot.cli.process import configure, described, exit_with, fail, find_store_url, say, show
from bot.core.language import CATALOGUE, Bilingual, Phrase
from config.settings import Settings
from frostagent.types.errors import ConfigError

if TYPE_CHECKING:
    from adapters.storage.database import Database

NOTHING_STORED: Final = Phrase("没有关于 {which} 的任何记录。", "Nothing is stored about {which}.")
FORGOTTEN: Final = Phrase("已忘掉：{them}", "Forgotten: {them}")
NOTHING: Final = Phrase("本来就没有", "nothing was there")
BY_THE_BOT: Final = Phrase(
    "{rows} 行，由正在运行的机器人删除", "{rows} rows, by the bot that is running here"
)
STILL_IN: Final = Phrase(
    "警告：{file} 是以前另存的，里面还有这些内容；不需要的话请删掉这个文件",
    "warning: {file} was set aside earlier and still contains it; delete the file if you do"
    " not need it",
)
ONE_OF_TWO: Final = Phrase("--user 和 --group 要写其中一个", "give either --user or --group")
NO_CONVERSATION: Final = Phrase(
    "--conversation 要写成 10001:group:4242 这样", "--conversation must be like 10001:group:4242"
)
NO_RUN: Final = Phrase("没有这次运行：{run}。", "There is no run {run}.")
UNUSABLE: Final = Phrase("数据库不能用：{why}", "The journal cannot be used: {why}")
CATALOGUE.register(__name__, globals())


@described(
    "Print everything stored about a conversation, one JSON object per line, with its type.",
    "输出一个会话保存的全部内容，每行一个 JSON 对象，带类型。",
)
def export(
    conversation: Annotated[
        str,
        Option(
            help=Bilingual(
                "The conversation, e.g. 10001:group:4242.", "哪个会话，如 10001:group:4242。"
            )
        ),
    ],
) -> None:
    from adapters.storage.queries.export import export as lines_of
    from bot.core.conversation import Conversation, NotAConversation

    try:
        which = Conversation.parse(conversation)
    except NotAConversation:
        raise typer.BadParameter(NO_CONVERSATION.fill()) from None
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as `export ... | head` expects
    with journal() as database, database.reading() as connection:
        found = False
        for line in lines_of(connection, which):
            print(line)
            found = True
    if not found:
        fail(NOTHING_STORED, which=which)


@described(
    "Erase a person or a group from every table, and the bytes from the file. If a bot is"
    " running, it does this itself, as /forget does.",
    "从每张表里删除一个人或一个群，文件里也不留。有机器人在运行时由它来删，和聊天里的 /忘记 一样。",
)
def forget(
    user: Annotated[
        int,
        Option(
            help=Bilingual(
                "A person: everything they said, in every chat.", "一个人：在任何地方说过的话。"
            ),
            min=0,
        ),
    ] = 0,
    group: Annotated[
        int,
        Option(
            help=Bilingual("A group: everything that was said there.", "一个群：群里的全部内容。"),
            min=0,
        ),
    ] = 0,
) -> None:
    from adapters.media.folder import delete_lost
    from adapters.storage.erasure import forget_group, forget_user, has_turn

    if bool(user) == bool(group):
        raise typer.BadParameter(ONE_OF_TWO.fill())
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


@described(
    "Save the journal and the files beside it to one file; the bot may keep running. .env and"
    " the OneBot server's folder are not included.",
    "把数据库和旁边的文件保存成一个文件，机器人可以照常运行；不含 .env 和 OneBot 端的目录。",
)
def backup(
    file: Annotated[
        str,
        Argument(
            help=Bilingual(
                "The file to write; - is standard output.", "要写入的文件；- 为标准输出。"
            )
        ),
    ],
    *,
    force: Annotated[
        bool, Option("--force", help=Bilingual("Overwrite an existing file.", "覆盖已有的文件。"))
    ] = False,
) -> None:
    from bot.cli.backup import make_backup

    make_backup(configure(service=False), file, force=force)


@described(
    "Restore a backup; the bot must be stopped. Present data is moved aside, not deleted.",
    "恢复备份，要先停下机器人。现有的数据会移到一旁，不会删除。",
)
def restore(
    file: Annotated[
        str,
        Argument(
            help=Bilingual(
                "A file made by `backup`; - is standard input.",
                "`backup` 生成的文件；- 为标准输入。",
            )
        ),
    ],
) -> None:
    from bot.cli.backup import put_back

    try:
        put_back(find_store_url(), file)
    except ConfigError as error:
        exit_with(error)


@described(
    "List the latest runs, newest first, from the file LOG_RUNS, or from the journal if that"
    " is not set.",
    "列出最近的运行，新的在前：取自 LOG_RUNS 的文件，没设则取自数据库。",
)
def runs_list(
    context: typer.Context,
    limit: Annotated[int, Option(help=Bilingual("How many runs.", "列出几次。"), min=1)] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    if context.invoked_subcommand is None:
        from bot.cli.past_runs import latest_runs, runs_to_text, to_json

        settings = configure(service=False)
        found = latest_runs(settings, lambda: journal(settings), limit=limit)
        show(to_json(found) if as_json else runs_to_text(found))


@described(
    "Show one run: each answer of the model, its tool calls and their results. Texts only with "
    "LOG_CONTENT=1.",
    "查看一次运行：模型的每次回答、工具调用和结果；文字只在 LOG_CONTENT=1 时才有。",
)
def runs_show(
    run: Annotated[str, Argument(help=Bilingual("Number of the run.", "运行的编号。"))],
    *,
    as_json: AsJson = False,
) -> None:
    from bot.cli.past_runs import chain_to_text, lines_of, to_json

    settings = configure(service=False)
    lines = lines_of(settings, lambda: journal(settings), run)
    if not lines:
        fail(NO_RUN, run=run)
    show(to_json(lines) if as_json else chain_to_text(lines))


def copies_of(store_url: str) -> list[Path]:
    """Older journals that were set aside next to this one."""
    from adapters.storage.database import Database

    database = Database(store_url, migrate=lambda _: None)
    database.close()
    return database.copies()


@contextlib.contextmanager
def journal(settings: Settings | None = None) -> Iterator[Database]:
    """The journal's database for a command. If it is unusable, the process exits with a one-line
    error.
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
