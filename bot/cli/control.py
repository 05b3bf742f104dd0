"""The commands that a running process accepts on its control socket: those of a bot (reload, stop,
status, console, forget), those of a gateway, and those of a cluster, which reach all parts over the
broker.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from msgspec import Meta

from adapters.storage.url import file_of, place_of, read_url
from adapters.web.readiness import ConnectedAccount, Readiness
from bot.core.language import CATALOGUE, Bilingual, Phrase, text_of
from config.settings import Settings
from frostagent.types.errors import BotError, ConfigError
from frostagent.types.ports import Clock

if TYPE_CHECKING:  # large, and not needed by commands that only ask
    from adapters.broker.status import BrokerStatus
    from bot.app import Service
    from bot.gateway import RunningGateway

Command: TypeAlias = Callable[..., Awaitable[Mapping[str, Any]]]

WITHIN: Final = 4.0  # seconds for a part of a cluster to report its status
REREAD_WITHIN: Final = 8.0  # seconds to read its files: the client waits 15


SUFFIX = "-control"
ELSEWHERE = Path("data/run/frostagent-control")
"""The socket's path if the journal is not a file, relative to the folder the bot runs in.
Containers that share their data each have this folder to themselves (a cluster in
docker-compose.yml).
"""

NO_CONSOLE = Phrase(
    "没有控制台：设置 CONSOLE_PORT 和 CONSOLE_TOKEN",
    "there is no console: set CONSOLE_PORT and CONSOLE_TOKEN",
).fill()
CONSOLE_ELSEWHERE = Phrase(
    "控制台在负责 0 号分区的 worker 上，它没有回答",
    "the console is at the worker that has partition 0, which does not answer",
).fill()
ONE_OF_TWO = Phrase("要写一个人或一个群", "forget takes either a user or a group")
STANDS_BY = Phrase(
    "这个 worker 在待命：请问一个有账号的 worker（看它们的 status）",
    "this worker stands by: ask one that has accounts (see their status)",
)
NOT_ERASED = Phrase("现在删不了：{why}", "it cannot be erased now: {why}")
OVER_BROKER = Phrase(
    "经过消息队列；{all} 个分区中的：{numbers}", "over the broker; partitions of {all}: {numbers}"
)
NO_PARTITION = Phrase("无", "none")
LISTENING = Phrase("监听 {host}:{port}", "listening on {host}:{port}")
DIALLING = Phrase("主动连接 {url}", "dialling {url}")
OTHERS_AWAY = Phrase(
    "没有通知到其他部分：消息队列连不上（{why}）",
    "no other part was reached: the broker is away ({why})",
)
NOT_READ = Phrase("{name} 什么都没有重新读取：{why}", "{name} has not read anything: {why}")
BROKER_AWAY = Phrase(
    "控制台要经过消息队列来问，它连不上（{why}）",
    "the console is asked for over the broker, which is away ({why})",
)
SILENT = Phrase("没有回答", "it does not answer")
CATALOGUE.register(__name__, globals())

CHAT = "-chat"
"""Appended to the name of a bot's socket for that of a chat, which may run at the same time."""

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A QQ number; 0 for none."""


def socket_of(store_url: str) -> Path:
    """The socket of the bot with this STORE_URL: beside its journal. Raises ConfigError for a bad
    URL.
    """
    file = file_of(read_url(store_url))
    return ELSEWHERE.absolute() if file is None else Path(f"{file.resolve()}{SUFFIX}")


def chat_socket_of(store_url: str) -> Path:
    """The socket of a chat in that bot's folder. Raises ConfigError for a bad URL."""
    beside = socket_of(store_url)
    return beside.with_name(beside.name + CHAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotCommands:
    """The commands for the `bots` of this process: one, or one for each partition of a worker,
    possibly none. `stop` ends the process as SIGTERM does. `since` is its start (seconds since
    1970).
    """

    bots: Callable[[], Sequence[Service]]
    ready: Callable[[], Readiness]
    settings: Settings
    clock: Clock
    version: str
    since: float
    stop: Callable[[], None]

    @property
    def commands(self) -> Mapping[str, Command]:
        """The commands by name."""
        return {
            "reload": self.reload,
            "stop": self.end,
            "status": self.status,
            "console": self.console,
            "forget": self.forget,
        }

    async def reload(self) -> Mapping[str, Any]:
        """Read all files and the journal again."""
        told = [await bot.reload() for bot in self.bots()]
        lines = dict.fromkeys(line for one in told for line in one.lines)
        return {"ok": all(one.whole for one in told), "told": list(lines)}

    async def end(self) -> Mapping[str, Any]:
        """Begin to stop the process; do not wait for it."""
        self.stop()
        return {"pid": os.getpid()}

    async def forget(self, *, user: Number = 0, group: Number = 0) -> Mapping[str, Any]:
        """Erase a person or a group, as `/forget` in the chat does, and notify the other workers of
        a cluster.
        """
        if bool(user) == bool(group):
            return {"error": ONE_OF_TWO.fill()}
        bot = next(iter(self.bots()), None)
        if bot is None:
            return {"error": STANDS_BY.fill()}
        forgetting = bot.app.forgetting
        try:
            rows = await (forgetting.person(user) if user else forgetting.group(group))
        except BotError as error:
            return {"error": NOT_ERASED.fill(why=text_of(error))}
        return {"rows": rows}

    async def console(self) -> Mapping[str, Any]:
        """A link that opens the console once, within five minutes."""
        link = next(filter(None, (bot.console_link for bot in self.bots())), None)
        if link is not None:
            return {"link": link()}
        is_wanted = self.settings.console_port and self.settings.console_token.get_secret_value()
        return {
            "error": CONSOLE_ELSEWHERE if self.settings.has_broker and is_wanted else NO_CONSOLE
        }

    async def status(self) -> Mapping[str, Any]:
        """The status, for people and programs."""
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
            "partitions": [bot.app.journal.scope.number for bot in bots],
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
            numbers: str = ", ".join(str(bot.app.journal.scope.number) for bot in bots)
            return OVER_BROKER.fill(
                all=settings.broker_partitions, numbers=numbers or NO_PARTITION.fill()
            )
        return where_of(settings, next((bot.port for bot in bots), 0))

    def _journal(self, bots: Sequence[Service]) -> Mapping[str, Any]:
        """The state of the one database that all bots share."""
        states = [bot.app.journal.state() for bot in bots]
        place = place_of(read_url(self.settings.store_url.get_secret_value()))
        return {
            "place": place,
            "in_trouble": any(state["in_trouble"] for state in states),
            "waiting": sum(state["waiting"] for state in states),
        }


def where_of(settings: Settings, port: int) -> Bilingual:
    """Where OneBot servers connect, or which one is dialled; in forward mode there is no port."""
    if port:
        return LISTENING.fill(host=settings.onebot_host, port=port)
    return DIALLING.fill(url=settings.onebot_url)


def begun(since: float, clock: Clock) -> Mapping[str, Any]:
    """The host, the process, and its start `since` (seconds since 1970)."""
    at = datetime.fromtimestamp(since, UTC).astimezone()
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": at.isoformat(timespec="seconds"),
        "seconds": round(clock.now() - since, 1),
    }


def accounts_of(accounts: Iterable[ConnectedAccount]) -> list[Mapping[str, Any]]:
    """Each account with whether it is online and the name of its server."""
    return [
        {"account": one.self_id, "online": one.online is not False, "server": one.server}
        for one in accounts
    ]


# --- in a cluster ---------------------------------------------------------------------------------


def name_of_part() -> str:
    """A unique name of this process in the cluster."""
    return f"{os.getpid()}.{token_hex(4)}@{socket.gethostname()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCommands:
    """The commands for a gateway. `stop` ends the process as SIGTERM does; `since` is its start
    (seconds since 1970).
    """

    held: RunningGateway
    settings: Settings
    clock: Clock
    version: str
    since: float
    stop: Callable[[], None]

    @property
    def commands(self) -> Mapping[str, Command]:
        """The commands by name."""
        return {"status": self.status, "reload": self.reload, "stop": self.end}

    async def status(self) -> Mapping[str, Any]:
        """The status, for people and programs."""
        settings, held = self.settings, self.held
        return {
            "version": self.version,
            **begun(self.since, self.clock),
            "stopping": False,
            "readiness": held.ready().to_json(),
            "onebot": where_of(settings, held.port),
            "accounts": accounts_of(held.peers.accounts()),
            "events": events_of(held),
        }

    async def reload(self) -> Mapping[str, Any]:
        """Does nothing: a gateway has no files to read again."""
        return {"ok": True, "told": []}

    async def end(self) -> Mapping[str, Any]:
        """Begin to stop the process; do not wait for it."""
        self.stop()
        return {"pid": os.getpid()}


def events_of(held: RunningGateway) -> Mapping[str, Any]:
    """What became of a gateway's events."""
    gateway = held.gateway
    return {
        "published": gateway.published,
        "waiting": gateway.waiting,
        "lost": gateway.lost,
        "broker": gateway.is_up,
    }


def with_events(status: Command, held: RunningGateway) -> Command:
    """The status of a worker that is also a gateway."""

    async def both() -> Mapping[str, Any]:
        return {**await status(), "events": events_of(held)}

    return both


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCommands:
    """The `own` commands of a part, except that `status` covers all parts, `reload` reaches all of
    them, and `console` reaches the one that serves it.
    """

    own: Mapping[str, Command]
    name: str
    settings: Settings
    clock: Clock

    @property
    def commands(self) -> Mapping[str, Command]:
        """The commands by name."""
        everywhere = {"status": self.status, "reload": self.reload, "console": self.console}
        return {**self.own, **everywhere}

    async def status(self) -> Mapping[str, Any]:
        """The status of this part, and of the whole `cluster`."""
        return {**await self.own["status"](), "cluster": await self._cluster()}

    async def reload(self) -> Mapping[str, Any]:
        """Make every worker read its files and the journal again."""
        from adapters.broker.status import BrokerUnreachable, ask_parts

        try:
            answers = await ask_parts(self._url, "reload", within=REREAD_WITHIN)
        except BrokerUnreachable as error:
            own = await self.own["reload"]()
            return {"ok": False, "told": [*own["told"], OTHERS_AWAY.fill(why=error)]}
        if answers.get(self.name) is None:
            answers[self.name] = await self.own["reload"]()
        lines = dict.fromkeys(
            line for one in answers.values() if one for line in one.get("told", ())
        )
        failed = {name: _why(one) for name, one in answers.items() if one is None or "error" in one}
        told = [NOT_READ.fill(name=name, why=why) for name, why in failed.items()]
        whole = all(one is None or one.get("ok", True) for one in answers.values())
        return {"ok": whole and not failed, "told": [*lines, *told]}

    async def console(self) -> Mapping[str, Any]:
        """A link to the console, from the worker that serves it."""
        from adapters.broker.status import BrokerUnreachable, ask_parts

        try:
            answers = await ask_parts(self._url, "console", within=WITHIN)
        except BrokerUnreachable as error:
            return {"error": BROKER_AWAY.fill(why=error)}
        answered = [one for one in answers.values() if one is not None]
        if link := next((one for one in answered if "link" in one), None):
            return link
        is_nowhere = any(one.get("error") == NO_CONSOLE for one in answered)
        return {"error": NO_CONSOLE if is_nowhere else CONSOLE_ELSEWHERE}

    @property
    def _url(self) -> str:
        return self.settings.broker_url.get_secret_value()

    async def _asked(self) -> Mapping[str, Mapping[str, Any] | None]:
        from adapters.broker.status import BrokerUnreachable, ask_parts

        try:
            return await ask_parts(self._url, "status", within=WITHIN)
        except BrokerUnreachable:  # `_looked` reports it
            return {}

    async def _looked(self) -> BrokerStatus | str:
        """The state of the broker, or why it is unknown."""
        from adapters.broker.status import BrokerUnreachable, read_status

        try:
            return await read_status(self._url, self.settings.broker_partitions, clock=self.clock)
        except (BrokerUnreachable, ConfigError) as error:
            return str(error)

    async def _cluster(self) -> Mapping[str, Any]:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._asked())
            looking = group.create_task(self._looked())
        answers, found = asking.result(), looking.result()
        if isinstance(found, str):
            return {"error": found}
        answered = [one for one in answers.values() if one is not None and "error" not in one]
        return {
            "broker": f"RabbitMQ {found.version}".rstrip(),
            "set_aside": found.dead,
            "partitions": [
                {"waiting": one.waiting, "worked": one.is_worked} for one in found.partitions
            ],
            "workers": [one for one in answered if "lanes" in one],
            "gateways": [one for one in answered if "events" in one],
            "silent": {
                name: _why(one) for name, one in answers.items() if one is None or "error" in one
            },
        }


def _why(answer: Mapping[str, Any] | None) -> str:
    said: str = SILENT.fill() if answer is None else answer["error"]
    return said
