"""The commands that reach the running bot over its control socket: reload, stop, status."""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterator
from contextlib import contextmanager
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

DOCKER = Path("/.dockerenv")

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
        tell(f"The bot (pid {pid}) ends what it is doing ...{warning_of_docker(DOCKER)}")
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
    """Print an address that lets a browser into the console, once and within five minutes."""
    if totp:
        secret = b32encode(token_bytes(TOTP_BYTES)).decode()
        print(f"CONSOLE_TOTP={secret}")
        print(f"otpauth://totp/FrostAgent:console?secret={secret}&issuer=FrostAgent")
        return
    with answer_to("console") as answered:
        print(answered.answer["link"])


@contextmanager
def answer_to(command: str) -> Iterator[Answered]:
    """Ask the bot of this folder; where none answers, say so and end the process."""
    from bot.cli.control import socket_of

    store_url = locate()
    try:
        path = socket_of(store_url)
    except ConfigError as error:
        end_with(error)
    try:
        with asked(path, command) as answered:
            if "error" in answered.answer:
                fail(f"The bot says: {answered.answer['error']}")
            yield answered
    except NotRunning:
        fail(f"No bot runs here{_holder(store_url)} (nobody listens at {path}).")
    except NoAnswer as error:
        fail(f"The bot does not answer{_holder(store_url)}: {error}.")


def warning_of_docker(mark: Path) -> str:
    """A line for a stop that lasts; empty where `mark` is not there, as outside Docker's
    containers.
    """
    if not mark.exists():
        return ""
    return "\nDocker starts it again. A stop that lasts: docker compose stop bot"


def reload_running(store_url: str) -> str:
    """Let the bot read its journal once more, where one runs; what came of it, in a line."""
    from bot.cli.control import socket_of

    recipe = "`.venv/bin/frostagent reload` (docker compose exec bot python -m bot reload)"
    try:
        with asked(socket_of(store_url), "reload") as answered:
            if answered.answer.get("ok"):
                return "The running bot has let go of what it remembered of it."
            return (
                "The running bot could not let go of all it remembered: see its log, and try "
                f"{recipe}."
            )
    except NotRunning:
        holder = _holder(store_url)
        return (
            f"A running bot{holder} remembers some of it until {recipe} or a restart."
            if holder
            else ""
        )
    except NoAnswer as error:
        return f"A running bot remembers some of it until {recipe} or a restart ({error})."


def fail(text: str) -> NoReturn:
    """Say why it cannot be, and end."""
    tell(text)
    raise SystemExit(1)


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
