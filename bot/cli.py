"""The commands a person types: `python -m bot [command]`, installed as `frostagent`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NoReturn

import typer

from bot.domain.errors import ConfigError
from config.settings import Settings, is_configured, load_settings

ENV_FILE = Path(".env")
BAD_CONFIGURATION = 2
LOUD = ("websockets", "httpx", "httpcore")  # log every connection, and urls with their queries

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=False)


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
def version() -> None:
    """The version."""
    from bot.app import version as installed

    print(installed())


async def serve(settings: Settings) -> None:
    """The service, until it is asked to stop."""
    from bot.app import open_service

    logger = logging.getLogger("bot")
    async with open_service(settings) as service:
        where = (
            f"listening on {settings.onebot_host}:{service.port}" if service.port else f"dialling {settings.onebot_url}"
        )
        logger.info("ready: %s, model %s", where, settings.llm_model)
        await asyncio.get_running_loop().create_future()


def configure(*, service: bool) -> Settings:
    """The settings; every problem is told at once and ends the process."""
    try:
        settings, warnings = load_settings(environ=os.environ, env_file=ENV_FILE, service=service)
    except ConfigError as error:
        end_with(error)
    for library in LOUD:
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.basicConfig(
        level=settings.log_level,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        datefmt="%H:%M:%S",
    )
    for warning in warnings:
        tell(f"warning: {warning}")
    return settings


def end_with(*errors: ConfigError) -> NoReturn:
    """Tell the operator everything that is wrong, and end."""
    tell("The configuration cannot be used:")
    for error in errors:
        for problem in error.problems:
            tell(f"  - {problem}")
    raise SystemExit(BAD_CONFIGURATION)


def go(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end, or until SIGINT or SIGTERM, which end it properly."""

    async def until_stopped() -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work())
            for name in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(name, task.cancel)

    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            runner.run(until_stopped())
    except* ConfigError as group:
        end_with(*(error for error in leaves(group) if isinstance(error, ConfigError)))


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The exceptions inside a group, however deep."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def tell(text: str) -> None:
    """A line about the bot itself: standard error."""
    print(text, file=sys.stderr, flush=True)
