"""Runs a command as a process: configuration, signals, exit and output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeAlias, TypeVar

from bot.core.language import CATALOGUE, Bilingual, Language, Phrase, text_in
from bot.runtime.loop import BAD_CONFIGURATION, exit_process, fast_loop, leaf_exceptions, on_signal
from bot.runtime.process_hardening import forget_secrets, hide_process
from config.loading import load_settings, read_store_url, terminal_language
from config.secrets import all_secrets, secret_names
from config.settings import Settings
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError, Problem

if TYPE_CHECKING:
    from bot.app import Service
    from bot.core.console_views import Finding
    from bot.gateway import RunningGateway
    from frostagent.types.messages import Usage

    Commands: TypeAlias = Mapping[str, Callable[..., Awaitable[Mapping[str, Any]]]]
    Bots: TypeAlias = Callable[[], Sequence[Service]]

ENV_FILE = Path(".env")
OWNER_ONLY = 0o077  # a umask
INTERRUPTED = 130  # a shell's exit code for Ctrl-C
GRACE = 10.0
"""Seconds that runs have to finish when the service stops; stop_grace_period in docker-compose.yml
is longer.
"""
LINGER = 3.0
"""Seconds that the exit waits for threads; one that hangs, for example in a DNS look-up, cannot be
stopped.
"""
LOG_ASIDE = Phrase(
    "聊天结束前的日志在 {path}，这里只显示警告。",
    "The log is in {path} until the chat ends. Only warnings are shown here.",
)
WARNING = Phrase("警告：{it}", "warning: {it}")
PROBLEM = Phrase("{name} {what}。{fix}", "{name}: {what}. {fix}")
UNUSABLE = Phrase("配置不能用：", "The configuration cannot be used:")
CATALOGUE.register(__name__, globals())
LIBRARY_LEVELS = {
    "websockets": logging.WARNING,
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "alembic": logging.WARNING,
    "aiormq": logging.CRITICAL,
    "aio_pika": logging.CRITICAL,
}
"""Below these levels they log every connection, URLs with queries, every step, or every error
twice.
"""


def configure(*, service: bool) -> Settings:
    """The settings. If there are problems, all of them are reported and the process ends. Secrets
    are then removed from the environment.
    """
    keep_private()
    try:
        settings, warnings = load_settings(environ=os.environ, env_file=ENV_FILE, service=service)
    except ConfigError as error:
        exit_with(error)
    if settings.tz and hasattr(time, "tzset"):  # it may be set in .env only
        os.environ["TZ"] = settings.tz
        time.tzset()
    for library, level in LIBRARY_LEVELS.items():
        logging.getLogger(library).setLevel(level)
    log_to(sys.stderr, settings)
    for warning in warnings:
        say(WARNING, it=_shown(warning))
    forget_secrets(os.environ, secret_names(settings))
    return settings


def log_to(stream: TextIO, settings: Settings, *, warnings: TextIO | None = None) -> None:
    """Log as the settings say; `warnings` also gets warnings and errors."""
    from adapters.logs.output import set_up_logs

    set_up_logs(
        level=settings.log_level,
        style=settings.log_format,
        mask=mask_of(settings),
        stream=stream,
        colors=stream.isatty() and not os.environ.get("NO_COLOR"),
        warnings=warnings,
    )


@contextlib.contextmanager
def log_to_file(settings: Settings) -> Iterator[None]:
    """Send the log to a file while the block runs, if this is a terminal; only warnings are also
    shown.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield
        return
    with TemporaryDirectory(prefix="frostagent-log-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "chat.log")
        say(LOG_ASIDE, path=path)
        with path.open("w", encoding="utf-8", buffering=1) as file:
            log_to(file, settings, warnings=sys.stderr)
            try:
                yield
            finally:
                log_to(sys.stderr, settings)


def find_store_url() -> str:
    """STORE_URL, which leads to a running bot, even if other settings have become invalid since its
    start.
    """
    keep_private()
    try:
        return read_store_url(environ=os.environ, env_file=ENV_FILE)
    except ConfigError as error:
        exit_with(error)


def language() -> Language:
    """The language of this terminal."""
    return terminal_language(environ=os.environ, env_file=ENV_FILE)


Command = TypeVar("Command", bound=Callable[..., None])


def described(en: str, zh: str) -> Callable[[Command], Command]:
    """Give a command its description in both languages as its docstring, for `--help` and
    docs/cli.md.
    """

    def describe(command: Command) -> Command:
        command.__doc__ = Bilingual(en, zh)
        return command

    return describe


def keep_private() -> None:
    """Hide this process and the files it creates from other users."""
    os.umask(OWNER_ONLY)
    hide_process()


def mask_of(settings: Settings) -> Mask:
    """The mask that keeps all known secrets out of the log and of messages to owners."""
    return Mask(all_secrets(settings, os.environ))


async def serve(settings: Settings, *, grace: float = GRACE) -> None:
    """Run the service until it is asked to stop; SIGHUP makes it read its files and its journal
    again.
    """
    if settings.has_broker and settings.bot_role == "gateway":
        await serve_gateway(settings)
        return
    reload = asyncio.Event()
    if sys.platform != "win32":
        on_signal(signal.SIGHUP, reload.set)
    from adapters.control.server import ControlServer
    from bot.cli.control import BotCommands, socket_of
    from bot.runtime.garbage_collection import relax_collector
    from bot.runtime.version import version
    from bot.web import STANDING_BY, build_attendance
    from frostagent.clock import SystemClock

    logger, clock = logging.getLogger("bot"), SystemClock()
    control, since = ControlServer(socket_of(settings.store_url.get_secret_value())), clock.now()
    async with (
        exporting_spans(),
        control.open(),  # until the very end: the client that sent `stop` waits for that
        gateway_beside(settings) as held,
        bots_of(settings, grace) as bots,
    ):
        desk = BotCommands(
            bots=bots,
            ready=build_attendance(
                lambda: [bot.app for bot in bots()], lambda: "" if bots() else STANDING_BY
            ),
            settings=settings,
            clock=clock,
            version=version(),
            since=since,
            stop=end_as_asked,
        )
        async with reached_by_all(settings, desk.commands, held) as commands:
            await control.listen(commands)
            relax_collector()
            logger.info("%s, model %s", state_of(settings, bots()), settings.llm_model)
            while await reload.wait():
                reload.clear()
                for bot in bots():
                    await bot.reload()


@contextlib.asynccontextmanager
async def reached_by_all(
    settings: Settings, own: Commands, held: RunningGateway | None = None
) -> AsyncIterator[Commands]:
    """The commands of this process while the block runs. In a cluster other parts can call them as
    well, and those called here reach the other parts.
    """
    if not settings.has_broker:
        yield own
        return
    from adapters.broker.link import BrokerLink
    from adapters.broker.status import CommandResponder
    from bot.cli.control import ClusterCommands, name_of_part, with_events
    from frostagent.cancellation import background
    from frostagent.clock import SystemClock

    clock, name = SystemClock(), name_of_part()
    own = {**own, "status": with_events(own["status"], held)} if held else own
    asked = {word: own[word] for word in ("status", "reload", "console") if word in own}
    link = BrokerLink(settings.broker_url.get_secret_value(), clock=clock, trouble=lambda _: None)
    async with background(CommandResponder(name, link=link, commands=asked).run()):
        yield ClusterCommands(own=own, name=name, settings=settings, clock=clock).commands


@contextlib.asynccontextmanager
async def bots_of(settings: Settings, grace: float) -> AsyncIterator[Bots]:
    """The bots of this process while the block runs: one, or one for each partition of a worker."""
    mask, doctor = mask_of(settings), partial(check_running_bot, settings)
    if settings.has_broker:
        from bot.worker import open_worker

        async with open_worker(settings, grace=grace, mask=mask, doctor=doctor) as worker:
            yield lambda: worker.services
    else:
        from bot.app import open_service

        async with open_service(settings, grace=grace, mask=mask, doctor=doctor) as service:
            yield lambda: (service,)


async def check_running_bot(
    settings: Settings, charge: Callable[[str, Usage], None]
) -> Sequence[Finding]:
    """The doctor's findings about the bot of this process. Imports the doctor on demand."""
    from bot.cli.doctor import run
    from frostagent.clock import RandomIds, SystemClock

    return await run.check_running_bot(
        settings, env_file=ENV_FILE, clock=SystemClock(), ids=RandomIds(), charge=charge
    )


def state_of(settings: Settings, bots: Sequence[Service]) -> str:
    """The state for the log. A worker logs its own when it is ready."""
    from bot.cli.control import where_of

    if settings.has_broker:
        return "worker"
    return "ready: " + ", ".join(where_of(settings, bot.port) for bot in bots)


async def serve_gateway(settings: Settings) -> None:
    """Run a gateway until it is asked to stop."""
    from adapters.control.server import ControlServer
    from bot.cli.control import GatewayCommands, socket_of
    from bot.runtime.version import version
    from frostagent.clock import SystemClock

    clock = SystemClock()
    control, since = ControlServer(socket_of(settings.store_url.get_secret_value())), clock.now()
    async with control.open(), open_held(settings) as held:
        desk = GatewayCommands(
            held=held,
            settings=settings,
            clock=clock,
            version=version(),
            since=since,
            stop=end_as_asked,
        )
        async with reached_by_all(settings, desk.commands) as commands:
            await control.listen(commands)
            await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def gateway_beside(settings: Settings) -> AsyncIterator[RunningGateway | None]:
    """A gateway while the block runs, if this process should be one."""
    if not settings.has_broker or settings.bot_role == "worker":
        yield None
        return
    async with open_held(settings) as held:
        yield held


@contextlib.asynccontextmanager
async def open_held(settings: Settings) -> AsyncIterator[RunningGateway]:
    """A gateway while the block runs."""
    from bot.cli.control import where_of
    from bot.gateway import open_gateway

    async with open_gateway(settings) as held:
        logging.getLogger("bot").info("gateway: %s", where_of(settings, held.port))
        yield held


def end_as_asked() -> None:
    """End this process as SIGTERM does."""
    signal.raise_signal(signal.SIGTERM)


def exporting_spans() -> contextlib.AbstractAsyncContextManager[None]:
    """Export spans while the block runs, if OTEL_ variables are set and the extra `otel` is
    installed.
    """
    if not any(name.startswith("OTEL_") for name in os.environ):
        return contextlib.nullcontext()
    try:
        from adapters.traces.exporting import exporting
    except ImportError:
        logging.getLogger("bot").warning(
            "OTEL_ is set, but no spans are sent: pip install opentelemetry-sdk"
            " opentelemetry-exporter-otlp-proto-http"
        )
        return contextlib.nullcontext()
    return exporting(os.environ)


def run_until_stopped(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end, or until SIGINT or SIGTERM, which cancel the work once.

    During that, SIGINT exits at once, as a kill does, and SIGTERM has no effect. On Windows,
    Ctrl-Break and closing the window act as SIGTERM.
    """
    ending = [signal.SIGTERM]
    if sys.platform == "win32":
        ending.append(signal.SIGBREAK)

    async def until_stopped() -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work())

            def stop(name: signal.Signals) -> None:
                is_typed = name == signal.SIGINT and sys.stderr.isatty()
                hint = ": Ctrl-C ends it at once" if is_typed else ""
                logging.getLogger("bot").info("stopping%s", hint)
                on_signal(signal.SIGINT, lambda: exit_process(INTERRUPTED))
                for other in ending:
                    on_signal(other, lambda: None)
                task.cancel()

            for name in (signal.SIGINT, *ending):
                on_signal(name, partial(stop, name))

    impatience = threading.Timer(LINGER, exit_process)
    impatience.daemon = True
    problems: list[ConfigError] = []
    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            with contextlib.suppress(KeyboardInterrupt):
                runner.run(until_stopped())
            impatience.start()  # closing the runner waits for its threads
    except* ConfigError as group:
        problems += (error for error in leaf_exceptions(group) if isinstance(error, ConfigError))
    finally:
        impatience.cancel()
    if problems:  # reported out here: raising inside except* would make it part of a group
        exit_with(*problems)


def exit_with(*errors: ConfigError) -> NoReturn:
    """Report every problem and exit the process."""
    say(UNUSABLE)
    for error in errors:
        for problem in error.problems:
            tell(_shown(problem).each("  - {}".format))
    raise SystemExit(BAD_CONFIGURATION)


def _shown(problem: Problem) -> Bilingual:
    return PROBLEM.fill(name=problem.name, what=problem.what, fix=problem.fix)


def say(line: Phrase | Bilingual, **values: object) -> None:
    """The same as `tell`, with a bilingual line."""
    tell(line.fill(**values) if isinstance(line, Phrase) else line)


def fail(line: Phrase | Bilingual, **values: object) -> NoReturn:
    """Report why the command failed, and exit the process with code 1."""
    say(line, **values)
    raise SystemExit(1)


def show(text: str) -> None:
    """Print a command's result to standard output, in the language of the terminal."""
    print(text_in(language(), text), flush=True)


def ask_line(question: str) -> str:
    """The line that is typed as the answer. Raises EOFError at the end of the input."""
    return input(text_in(language(), question))


def tell(text: str) -> None:
    """Print a message about the bot itself to standard error, in the language of the terminal."""
    print(text_in(language(), text), file=sys.stderr, flush=True)
