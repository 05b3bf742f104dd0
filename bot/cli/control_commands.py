"""The commands that reach the running bot over its control socket: reload, stop, status; and
forgetting, where one runs.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer import Option

from adapters.control.client import NoAnswer, NotRunning, asked
from bot.cli.process import GRACE, end_with, locate, tell
from bot.domain.errors import ConfigError

if TYPE_CHECKING:
    from adapters.control.client import Answered

ENDED_WITHIN = GRACE + 20.0  # seconds; a journal that hangs is waited for, too

FORGOTTEN_WITHIN = 120.0  # seconds; a large journal is looked through

MAIN_OF_A_CONTAINER = 1  # anywhere else the process of this number is the system's own

TOTP_BYTES = 20  # as authenticator apps expect it

AsJson = Annotated[bool, Option("--json", help="Print JSON.")]

NewTotp = Annotated[
    bool, Option("--totp", help="Print a new CONSOLE_TOTP for an authenticator app instead.")
]

app = typer.Typer()


@app.command()
def reload() -> None:
    """Let the running bot read its files (persona, games, subagents) and its journal once more, as
    SIGHUP does.
    """
    with answer_to("reload") as answered:
        for line in answered.answer["told"]:
            tell(line)
        raise SystemExit(not answered.answer["ok"])


@app.command()
def stop() -> None:
    """Let the running bot end what it is doing, and stop. What restarts it (Docker, systemd) may
    start it again.
    """
    with answer_to("stop") as answered:
        pid = answered.answer["pid"]
        tell(f"The bot (pid {pid}) ends what it is doing ...{warning_of_docker(pid)}")
        if not answered.wait_for_end(ENDED_WITHIN):
            tell(f"It has not ended after {ENDED_WITHIN:g} s; its log says what it waits for.")
            raise SystemExit(1)
        tell("It has stopped.")


@app.command()
def status(*, as_json: AsJson = False) -> None:
    """How the running bot is; exit code 1 where none runs."""
    from bot.cli.control import status_to_text

    with answer_to("status") as answered:
        print(
            json.dumps(answered.answer, ensure_ascii=False)
            if as_json
            else status_to_text(answered.answer)
        )


@app.command()
def console(*, totp: NewTotp = False) -> None:
    """Print an address that lets a browser into the console, once and within five minutes; if a
    chat goes on here instead of a bot, into its simulated group.
    """
    if totp:
        secret = b32encode(token_bytes(TOTP_BYTES)).decode()
        print(f"CONSOLE_TOTP={secret}")
        print(f"otpauth://totp/FrostAgent:console?secret={secret}&issuer=FrostAgent")
        return
    with answer_to("console", or_chat=True) as answered:
        print(answered.answer["link"])


@contextmanager
def answer_to(command: str, *, or_chat: bool = False) -> Iterator[Answered]:
    """Ask the bot of this folder, or the chat if there is one and the bot cannot do it; if neither
    answers, say so and end the process.
    """
    store_url = locate()
    path = _socket_of(store_url)
    answered: Answered | None = None
    with ExitStack() as stack:
        try:
            answered = stack.enter_context(asked(path, command))
            said = answered.answer.get("error", "")
            trouble = f"The bot says: {said}" if said else ""
        except NotRunning:
            trouble = f"No bot runs here{_holder(store_url)} (nobody listens at {path})."
        except NoAnswer as error:
            trouble = f"The bot does not answer{_holder(store_url)}: {error}."
        if trouble and or_chat:
            with suppress(NotRunning, NoAnswer):
                answered = stack.enter_context(asked(_chat_socket_of(store_url), command))
                trouble = answered.answer.get("error", "")
        if trouble or answered is None:
            fail(trouble)
        yield answered


def warning_of_docker(pid: int) -> str:
    """A line about a stop that lasts, if the bot is a container's main process."""
    if pid != MAIN_OF_A_CONTAINER:
        return ""
    return "\nDocker starts it again. A stop that lasts: docker compose stop bot"


def forget_running(store_url: str, **whom: int) -> tuple[int | None, str]:
    """Let the bot that runs here forget a `user` or a `group`: how many rows went, None where it
    did nothing; and what of it a bot may still have in memory, in a line. Ends the process where a
    bot says that it cannot.
    """
    remains = "{who}. It has some of it in memory until a restart: give this command {how}."
    try:
        seconds, path = FORGOTTEN_WITHIN, _socket_of(store_url)
        with asked(path, "forget", seconds=seconds, **whom) as answered:
            if "error" in answered.answer:
                fail(f"The bot says: {answered.answer['error']}")
            return answered.answer["rows"], ""
    except NotRunning:
        holder = _holder(store_url)
        who = f"No bot answers here{holder}"
        return None, remains.format(who=who, how="where it runs") if holder else ""
    except NoAnswer as error:
        return None, remains.format(who=f"The bot does not answer: {error}", how="once more")


def fail(text: str) -> NoReturn:
    """Say why it cannot be, and end."""
    tell(text)
    raise SystemExit(1)


def _socket_of(store_url: str) -> Path:
    """Where the bot of this folder listens; a bad STORE_URL ends the process."""
    from bot.cli.control import socket_of

    try:
        return socket_of(store_url)
    except ConfigError as error:
        end_with(error)


def _chat_socket_of(store_url: str) -> Path:
    from bot.cli.control import chat_socket_of

    return chat_socket_of(store_url)


def _holder(store_url: str) -> str:
    """Which process has the journal, though it cannot be asked."""
    from adapters.storage.database import Database

    try:
        database = Database(store_url, migrate=lambda _: None)
        holder = database.holder()
        database.close()
    except Exception:  # noqa: BLE001  # a database that is away: then nobody knows
        return ""
    return (
        ""
        if holder is None
        else f", but a process{holder} has the journal: it starts, ends, or runs elsewhere"
    )
