"""The commands a person types: `python -m bot [command]`, installed as `frostagent`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import Argument, Option

from bot.domain.errors import ConfigError
from bot.domain.masking import Mask
from bot.loop import fast_loop, leave, leaves, on_signal
from config.secrets import all_secrets
from config.settings import Settings, is_configured, load_settings

if TYPE_CHECKING:
    from adapters.storage.database import Database

ENV_FILE = Path(".env")
BAD_CONFIGURATION = 2
INTERRUPTED = 130  # as a shell says of Ctrl-C
GRACE = 10.0  # seconds that runs have to end when the service stops; stop_grace_period in docker-compose.yml is longer
TOKEN_BYTES = 16
LINGER = 3.0  # seconds the end waits for threads; one that hangs, as in a look-up of a name, cannot be stopped
LOUD = ("websockets", "httpx", "httpcore")  # log every connection, and urls with their queries

AsJson = Annotated[bool, Option("--json", help="Print JSON.")]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=False)
tools, runs = typer.Typer(), typer.Typer()
app.add_typer(tools, name="tools")
app.add_typer(runs, name="runs")


def main() -> None:
    """The entry point of `frostagent`."""
    app()


@app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    """FrostAgent: a QQ group bot on OneBot v11 and any OpenAI-compatible model. Without a command: run."""
    if context.invoked_subcommand is None:
        run()


@app.command()
def run() -> None:
    """The service; or the chat, where neither a model nor a OneBot server is configured."""
    if not is_configured(os.environ, ENV_FILE):
        chat()
        return
    settings = configure(service=True)
    go(lambda: serve(settings))


@app.command()
def chat() -> None:
    """A chat on standard input: the simulator instead of QQ, and a demo model where none is configured."""
    settings = configure(service=False)
    from bot.console import converse, print_line

    go(lambda: converse(settings, sys.stdin, print_line, tell))


@app.command()
def setup(
    base_url: Annotated[str, Option(help="The model service: its base url, or a name as deepseek, ollama.")] = "",
    api_key: Annotated[str, Option(help="Its key; safer in the environment, as LLM_API_KEY.")] = "",
    model: Annotated[str, Option(help="The model, as the service spells it.")] = "",
    owner: Annotated[str, Option(help="QQ numbers with an owner's rights, separated by commas.")] = "",
    groups: Annotated[str, Option(help="The groups it listens to; without, all.")] = "",
    account: Annotated[str, Option(help="The bot's own QQ number, for NapCat's quick login.")] = "",
    napcat_url: Annotated[str, Option(help="Where NapCat finds the bot.")] = "ws://bot:6199/",
    test: Annotated[bool, Option(help="Try the model before anything is written.")] = True,
    force: Annotated[bool, Option("--force", help="Overwrite files without asking.")] = False,
    non_interactive: Annotated[bool, Option("--non-interactive", help="Ask nothing, as without a terminal.")] = False,
) -> None:
    """Ask for what the service needs, and write .env and NapCat's settings; a second time, offers what is there."""
    from bot.clock import SystemClock
    from bot.setup.terminal import TyperTerminal
    from bot.setup.trial import try_endpoint
    from bot.setup.wizard import Wishes, Wizard

    typed = {"LLM_BASE_URL": base_url, "LLM_API_KEY": api_key, "LLM_MODEL": model}
    typed |= {"BOT_OWNERS": owner, "BOT_GROUPS": groups, "NAPCAT_ACCOUNT": account}
    wishes = Wishes(
        typed=typed,
        napcat_url=napcat_url,
        force=force,
        test=test,
        interactive=sys.stdin.isatty() and not non_interactive,
    )
    wizard = Wizard(
        folder=Path.cwd(),
        environ=os.environ,
        terminal=TyperTerminal(),
        try_endpoint=lambda endpoint: asyncio.run(try_endpoint(endpoint, clock=SystemClock())),
        make_token=lambda: secrets.token_hex(TOKEN_BYTES),
    )
    try:
        written = wizard.run(wishes)
    except ConfigError as error:
        end_with(error)
    except (typer.Abort, KeyboardInterrupt):
        tell("\n没有写入任何文件 Nothing was written.")
        raise SystemExit(INTERRUPTED) from None
    raise SystemExit(not written)


@app.command()
def doctor(
    as_json: Annotated[bool, Option("--json", help="Print a list of objects.")] = False,
    send_image: Annotated[
        bool, Option("--send-image", help="Send a small picture on QQ too: to an owner, else to the account itself.")
    ] = False,
) -> None:
    """Look at everything the bot needs, and say what is wrong and how to mend it; exit code 1 with a problem."""
    from bot.clock import RandomIds, SystemClock
    from bot.doctor.report import exit_code, to_json, to_text
    from bot.doctor.run import diagnose

    async def examine() -> int:
        checks = await diagnose(
            environ=os.environ, env_file=ENV_FILE, clock=SystemClock(), ids=RandomIds(), send_image=send_image
        )
        print(to_json(checks) if as_json else to_text(checks), flush=True)
        code = exit_code(checks)
        impatience = threading.Timer(LINGER, leave, [code])  # a disk or a look-up may hang a thread for ever
        impatience.daemon = True
        impatience.start()
        return code

    logging.disable()  # the report says it all
    raise SystemExit(asyncio.run(examine()))


@app.command(hidden=True)
def init(
    server: Annotated[str, Option(help="napcat or llbot.")] = "napcat",
    owner: Annotated[str, Option(help="Whose the data shall be, as 1000:1000.")] = "",
) -> None:
    """What docker compose runs once, before the OneBot server and the bot: tokens and the server's files."""
    from bot.setup.container import prepare, read_owner, read_server

    try:
        prepare(
            folder=Path.cwd(),
            environ=os.environ,
            server=read_server(server),
            make_token=lambda: secrets.token_hex(TOKEN_BYTES),
            tell=tell,
            owner=read_owner(owner),
        )
    except ConfigError as error:
        end_with(error)


@app.command()
def export(conversation: Annotated[str, Option(help="Which one, as 10001:group:4242.")]) -> None:
    """Everything stored about a conversation, on standard output: one JSON object a line, with its type."""
    from adapters.storage.export import export as lines_of
    from bot.domain.events import Conversation, NotAConversation

    try:
        which = Conversation.parse(conversation)
    except NotAConversation as error:
        raise typer.BadParameter(str(error)) from None
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as `export ... | head` expects
    with journal() as database, database.reading() as connection:
        for line in lines_of(connection, which):
            print(line)


@app.command()
def forget(
    user: Annotated[int, Option(help="A person: what they said, wherever it was.", min=0)] = 0,
    group: Annotated[int, Option(help="A group: all that was said there.", min=0)] = 0,
) -> None:
    """Erase a person or a group from the journal, in every table; the bytes leave the file."""
    from adapters.storage.erasure import forget_group, forget_user

    if bool(user) == bool(group):
        raise typer.BadParameter("name either --user or --group")
    with journal() as database:
        gone = forget_user(database, user) if user else forget_group(database, group)
    tell("Forgotten: " + (", ".join(f"{rows} {table}" for table, rows in gone.items() if rows) or "nothing was there"))
    for copy in database.copies():
        tell(f"warning: {copy} was put aside earlier and still has it; delete the file if you do not need it")
    tell("A running bot remembers some of it until it gets SIGHUP (docker compose kill -s HUP bot) or is restarted.")


@tools.callback(invoke_without_command=True)
def tools_list(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Every tool: what it is, who may call it, whether it can be used now, and why not."""
    if context.invoked_subcommand is None:
        from bot.discovery import report
        from bot.inspection import list_tools, to_json, tools_to_text

        rows, problems = list_tools(configure(service=False))
        report(problems)
        print(to_json(rows) if as_json else tools_to_text(rows))


@tools.command("call")
def tools_call(
    name: str,
    arguments: Annotated[str, Argument(help='As the model would write them: \'{"city": "北京"}\'.')] = "{}",
    as_json: AsJson = False,
) -> None:
    """Run one tool as the engine would, on an owner's authority; exit code 1 where its result is an error."""
    from bot.inspection import call_tool, result_to_json, result_to_text

    settings, ask = configure(service=False), input if sys.stdin.isatty() else None
    try:
        result = asyncio.run(call_tool(settings, name, arguments, ask=ask, tell=tell))
    except KeyboardInterrupt:
        leave(INTERRUPTED)  # a question that nobody answers holds its thread
    print(result_to_json(result) if as_json else result_to_text(result))
    raise SystemExit(result.is_error)


@runs.callback(invoke_without_command=True)
def runs_list(
    context: typer.Context, limit: Annotated[int, Option(help="How many.", min=1)] = 20, *, as_json: AsJson = False
) -> None:
    """The latest runs, newest first, of the file LOG_RUNS; of the journal where that is not set."""
    if context.invoked_subcommand is None:
        from bot.inspection import latest_runs, runs_to_text, to_json

        settings = configure(service=False)
        found = latest_runs(settings, lambda: journal(settings), limit=limit)
        print(to_json(found) if as_json else runs_to_text(found))


@runs.command("show")
def runs_show(run: str, *, as_json: AsJson = False) -> None:
    """One run: each answer of the model, the calls it made, their results. Texts with LOG_CONTENT=1 only."""
    from bot.inspection import chain_to_text, lines_of, to_json

    settings = configure(service=False)
    lines = lines_of(settings, lambda: journal(settings), run)
    if not lines:
        tell(f"There is no run {run}.")
        raise SystemExit(1)
    print(to_json(lines) if as_json else chain_to_text(lines))


@app.command()
def version() -> None:
    """The version."""
    from bot.app import version as installed

    print(installed())


async def serve(settings: Settings, *, grace: float = GRACE) -> None:
    """The service, until it is asked to stop; SIGHUP lets it read its files and its journal once more."""
    reload = asyncio.Event()
    if hasattr(signal, "SIGHUP"):
        on_signal(signal.SIGHUP, reload.set)
    from bot.app import open_service
    from bot.collector import relax_collector

    logger = logging.getLogger("bot")
    async with exporting_spans(), open_service(settings, grace=grace, mask=mask_of(settings)) as service:
        where = (
            f"listening on {settings.onebot_host}:{service.port}" if service.port else f"dialling {settings.onebot_url}"
        )
        relax_collector()
        logger.info("ready: %s, model %s", where, settings.llm_model)
        while await reload.wait():
            reload.clear()
            await service.reload()


def exporting_spans() -> contextlib.AbstractAsyncContextManager[None]:
    """Send spans where OTEL_ variables are set, and the extra `otel` is installed."""
    if not any(name.startswith("OTEL_") for name in os.environ):
        return contextlib.nullcontext()
    try:
        from adapters.traces.exporting import exporting
    except ImportError:
        logging.getLogger("bot").warning('OTEL_ is set, but no spans are sent: pip install "frostagent[otel]"')
        return contextlib.nullcontext()
    return exporting(os.environ)


def configure(*, service: bool) -> Settings:
    """The settings; every problem is told at once and ends the process."""
    try:
        settings, warnings = load_settings(environ=os.environ, env_file=ENV_FILE, service=service)
    except ConfigError as error:
        end_with(error)
    for library in LOUD:
        logging.getLogger(library).setLevel(logging.WARNING)
    from adapters.logs.output import set_up_logs

    set_up_logs(
        level=settings.log_level,
        style=settings.log_format,
        mask=mask_of(settings),
        stream=sys.stderr,
        colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
    )
    for warning in warnings:
        tell(f"warning: {warning}")
    return settings


def mask_of(settings: Settings) -> Mask:
    """What keeps every secret we know of out of what the log and the owner are told."""
    return Mask(all_secrets(settings, os.environ))


@contextlib.contextmanager
def journal(settings: Settings | None = None) -> Iterator[Database]:
    """The journal's database, for a command; what is wrong with it is told in one line and ends the process."""
    from adapters.storage.ahead import ahead_of
    from adapters.storage.batches import Batches
    from adapters.storage.database import Database
    from adapters.storage.failures import words
    from adapters.storage.migrate import migrate

    settings = settings or configure(service=False)
    try:
        database = Database(settings.store_url.get_secret_value(), migrate=migrate)
        if database.file is not None and not database.file.exists():
            tell(f"There is no journal at {database.place}.")
            raise SystemExit(1)
        with contextlib.closing(database):
            Batches(database, stamp=str, ahead=ahead_of(database.file)).settle()
            yield database
    except ConfigError as error:
        end_with(error)
    except Exception as error:
        logging.getLogger("bot").debug("the journal cannot be used", exc_info=True)
        tell(f"The journal cannot be used: {words(error)}")
        raise SystemExit(1) from None


def end_with(*errors: ConfigError) -> NoReturn:
    """Tell the operator everything that is wrong, and end."""
    tell("The configuration cannot be used:")
    for error in errors:
        for problem in error.problems:
            tell(f"  - {problem}")
    raise SystemExit(BAD_CONFIGURATION)


def go(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end, or until SIGINT or SIGTERM, which end it properly: the work is cancelled, once.

    While it ends, SIGINT leaves at once, as a kill does, and SIGTERM changes nothing. Where the loop takes no signal
    handlers, as on Windows, Ctrl-C still ends it properly, by way of the runner.
    """

    async def until_stopped() -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work())

            def stop() -> None:
                logging.getLogger("bot").info("stopping: Ctrl-C ends it at once")
                on_signal(signal.SIGINT, lambda: leave(INTERRUPTED))
                on_signal(signal.SIGTERM, lambda: None)
                task.cancel()

            for name in (signal.SIGINT, signal.SIGTERM):
                on_signal(name, stop)

    impatience = threading.Timer(LINGER, leave)
    impatience.daemon = True
    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            with contextlib.suppress(KeyboardInterrupt):
                runner.run(until_stopped())
            impatience.start()  # closing the runner waits for its threads
    except* ConfigError as group:
        end_with(*(error for error in leaves(group) if isinstance(error, ConfigError)))
    finally:
        impatience.cancel()


def tell(text: str) -> None:
    """A line about the bot itself: standard error."""
    print(text, file=sys.stderr, flush=True)
