"""The commands that a running bot takes over its control socket: to reload, to stop, to report its
status, to forget a person or a group; and the text of that status.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from adapters.storage.url import file_of, place_of, read_url
from adapters.web.readiness import ConnectedAccount, Readiness
from bot.domain.errors import BotError
from bot.domain.ports import Clock
from config.settings import Settings

if TYPE_CHECKING:
    from bot.app import Service  # large, and a command that only asks needs none of it


def cluster_to_text(cluster: Mapping[str, Any]) -> str:
    """The state of a cluster for people: a line for each part, and what is wrong with the rest."""
    if "error" in cluster:
        return f"cluster   cannot be asked: {cluster['error']}"
    waiting = sum(one["waiting"] for one in cluster["partitions"])
    rows = [
        ("broker", f"{cluster['broker']}: {waiting} events wait, {_aside(cluster['set_aside'])}")
    ]
    rows += [("queue", line) for line in _queues(cluster["partitions"])]
    rows += [("worker", f"{_who(one)}: {_worker(one)}") for one in cluster["workers"]]
    rows += [("gateway", f"{_who(one)}: {_gateway(one)}") for one in cluster["gateways"]]
    rows += [("silent", f"{name}: {why}") for name, why in cluster["silent"].items()]
    return "\n".join(f"{name:<9} {value}" for name, value in rows)


def _aside(number: int) -> str:
    return f"{number} set aside in frost.dead" if number else "none is set aside"


def _queues(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each partition that has a problem."""
    lines = []
    for number, one in enumerate(partitions):
        nobody = "" if one["worked"] else ", no worker has it"
        if one["waiting"] or nobody:
            lines.append(f"partition {number}: {one['waiting']} events wait{nobody}")
    return lines


def _who(part: Mapping[str, Any]) -> str:
    return f"{part['host']} {part['pid']}, {part['version']}"


def _worker(part: Mapping[str, Any]) -> str:
    if part["standing_by"]:
        return "stands by"
    numbers, lanes = ", ".join(map(str, part["partitions"])), part["lanes"]
    trouble = ", the journal CANNOT BE WRITTEN" if part["journal"]["in_trouble"] else ""
    return (
        f"partitions {numbers}; {_accounts(part)}; {lanes['active']} conversations at work,"
        f" {lanes['waiting']} questions wait{trouble}{', stopping' if part['stopping'] else ''}"
    )


def _gateway(part: Mapping[str, Any]) -> str:
    events = part["events"]
    away = "" if events["broker"] else ", the BROKER IS AWAY"
    return f"{_accounts(part)}; {events['waiting']} events wait, {events['lost']} lost{away}"


def _accounts(part: Mapping[str, Any]) -> str:
    told = [f"{one['account']}{'' if one['online'] else ' OFFLINE'}" for one in part["accounts"]]
    return ", ".join(told) or "no account"


SUFFIX = "-control"
ELSEWHERE = Path("data/run/frostagent-control")
"""Where the socket is if the journal is no file: in the folder that the bot runs in. Containers
that share their data each have this folder to themselves (a cluster in docker-compose.yml).
"""

NO_CONSOLE = "there is no console: set CONSOLE_PORT and CONSOLE_TOKEN"
CONSOLE_ELSEWHERE = "the console is at the worker that has partition 0, which does not answer"

CHAT = "-chat"
"""Follows the name of a bot's socket in that of a chat, which may go on beside the bot."""

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A QQ number; 0 for none."""

MINUTE, HOUR, DAY = 60, 3600, 86_400


def socket_of(store_url: str) -> Path:
    """Where the bot with this STORE_URL listens: beside its journal. Raises ConfigError for a bad
    one.
    """
    file = file_of(read_url(store_url))
    return ELSEWHERE.absolute() if file is None else Path(f"{file.resolve()}{SUFFIX}")


def chat_socket_of(store_url: str) -> Path:
    """Where a chat in the folder of that bot listens. Raises ConfigError for a bad url."""
    beside = socket_of(store_url)
    return beside.with_name(beside.name + CHAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotCommands:
    """Answers what is asked of the `bots` of this process: one, or those of a worker's partitions,
    which may be none. `stop` lets the process end as SIGTERM does. `since` is when it began
    (seconds, 1970).
    """

    bots: Callable[[], Sequence[Service]]
    ready: Callable[[], Readiness]
    settings: Settings
    clock: Clock
    version: str
    since: float
    stop: Callable[[], None]

    @property
    def commands(self) -> Mapping[str, Callable[..., Awaitable[Mapping[str, Any]]]]:
        """Each by its name."""
        return {
            "reload": self.reload,
            "stop": self.end,
            "status": self.status,
            "console": self.console,
            "forget": self.forget,
        }

    async def reload(self) -> Mapping[str, Any]:
        """Read everything once more that was read from files, and the journal."""
        told = [await bot.reload() for bot in self.bots()]
        lines = dict.fromkeys(line for one in told for line in one.lines)
        return {"ok": all(one.whole for one in told), "told": list(lines)}

    async def end(self) -> Mapping[str, Any]:
        """Begin to end."""
        self.stop()
        return {"pid": os.getpid()}

    async def forget(self, *, user: Number = 0, group: Number = 0) -> Mapping[str, Any]:
        """Erase a person or a group, as `/forget` in the chat does; in a cluster all others hear
        of it.
        """
        if bool(user) == bool(group):
            return {"error": "forget takes either a user or a group"}
        bot = next(iter(self.bots()), None)
        if bot is None:
            return {"error": "this worker stands by: ask one that has accounts (its status)"}
        forgetting = bot.app.forgetting
        try:
            rows = await (forgetting.person(user) if user else forgetting.group(group))
        except BotError as error:
            return {"error": f"it cannot be erased now: {error}"}
        return {"rows": rows}

    async def console(self) -> Mapping[str, Any]:
        """An address that lets into the console once, within five minutes."""
        link = next(filter(None, (bot.console_link for bot in self.bots())), None)
        if link is not None:
            return {"link": link()}
        is_wanted = self.settings.console_port and self.settings.console_token.get_secret_value()
        return {
            "error": CONSOLE_ELSEWHERE if self.settings.has_broker and is_wanted else NO_CONSOLE
        }

    async def status(self) -> Mapping[str, Any]:
        """How it is, for people and programs."""
        bots, settings = self.bots(), self.settings
        lanes = [bot.app.lanes for bot in bots]
        return {
            "version": self.version,
            **begun(self.since, self.clock),
            "standing_by": not bots,
            "stopping": bool(lanes) and all(one.finishing for one in lanes),
            "readiness": self.ready().to_json(),
            "onebot": self._line(bots),
            "accounts": accounts_of(one for bot in bots for one in bot.app.peers.accounts()),
            "partitions": [bot.app.journal.share.partition for bot in bots],
            "lanes": {
                "active": sum(one.active for one in lanes),
                "waiting": sum(max(0, one.waiting - one.active) for one in lanes),
            },
            "journal": self._journal(bots),
            "model": settings.llm_model,
            "fallbacks": [endpoint.model for endpoint in settings.llm_fallbacks],
            "stalls": max((bot.app.metrics.stalls for bot in bots), default=0),
        }

    def _line(self, bots: Sequence[Service]) -> str:
        settings = self.settings
        if settings.has_broker:
            numbers = ", ".join(str(bot.app.journal.share.partition) for bot in bots) or "none"
            return f"over the broker; partitions of {settings.broker_partitions}: {numbers}"
        if port := next((bot.port for bot in bots), 0):
            return f"listening on {settings.onebot_host}:{port}"
        return f"dialling {settings.onebot_url}"

    def _journal(self, bots: Sequence[Service]) -> Mapping[str, Any]:
        """That of all of them, which is in one database."""
        states = [bot.app.journal.state() for bot in bots]
        place = place_of(read_url(self.settings.store_url.get_secret_value()))
        return {
            "place": place,
            "in_trouble": any(state["in_trouble"] for state in states),
            "waiting": sum(state["waiting"] for state in states),
        }


def begun(since: float, clock: Clock) -> Mapping[str, Any]:
    """Which process it is, and since when (seconds, 1970)."""
    at = datetime.fromtimestamp(since, UTC).astimezone()
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": at.isoformat(timespec="seconds"),
        "seconds": round(clock.now() - since, 1),
    }


def accounts_of(accounts: Iterable[ConnectedAccount]) -> list[Mapping[str, Any]]:
    """Each with whether it is online, and what its server calls itself."""
    return [
        {"account": one.self_id, "online": one.online is not False, "server": one.server}
        for one in accounts
    ]


def status_to_text(status: Mapping[str, Any]) -> str:
    """The status as people read it, on one screen; of a cluster, of all its parts."""
    if "events" in status and "lanes" not in status:
        return _with_cluster(_gateway_rows(status), status)
    journal, lanes = status["journal"], status["lanes"]
    trouble, state = "written", "running"
    if journal["in_trouble"]:
        trouble = f"CANNOT BE WRITTEN, {journal['waiting']} entries wait in memory"
    if status["stopping"]:
        state = "stopping"
    if status["standing_by"]:
        trouble, state = "other workers write it", "standing by: its log says why"
    rows = {
        **_first_rows(status, state),
        "at work": f"{lanes['active']} conversations, {lanes['waiting']} questions wait",
        "journal": f"{journal['place']}: {trouble}",
        "model": ", then ".join([status["model"], *status["fallbacks"]]),
        "stalls": f"{status['stalls']} of over a second",
    }
    return _with_cluster(rows, status)


def _first_rows(status: Mapping[str, Any], state: str) -> dict[str, Any]:
    states = {True: "online", False: "OFFLINE: log it in again"}
    accounts = [
        f"{row['account']} {states[bool(row['online'])]} {row['server']}".rstrip()
        for row in status["accounts"]
    ]
    return {
        "version": status["version"],
        "state": state,
        "pid": status["pid"],
        "since": f"{status['since'].replace('T', ' ')} ({_for_people(status['seconds'])})",
        "OneBot": status["onebot"],
        "accounts": ", ".join(accounts) or "none is connected",
    }


def _gateway_rows(status: Mapping[str, Any]) -> dict[str, Any]:
    events = status["events"]
    waiting = (
        f"{events['published']} published, {events['waiting']} wait, {events['lost']} are lost"
    )
    return {**_first_rows(status, "gateway"), "events": waiting}


def _with_cluster(rows: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    text = "\n".join(f"{name:<9} {value}" for name, value in rows.items())
    if "cluster" not in status:
        return text
    return f"{text}\n\n{cluster_to_text(status['cluster'])}"


def _for_people(seconds: float) -> str:
    whole = int(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min" if whole >= MINUTE else f"{whole} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"
