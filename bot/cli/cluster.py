"""The commands of a cluster's parts: a gateway's own, and those that reach all parts over the
broker from beside any of them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from adapters.broker.status import BrokerStatus, BrokerUnreachable, ask_parts, read_status
from bot.cli.control import CONSOLE_ELSEWHERE, NO_CONSOLE, accounts_of, begun
from bot.domain.errors import ConfigError
from bot.domain.ports import Clock
from config.settings import Settings

if TYPE_CHECKING:  # a worker loads nothing of it
    from bot.gateway import RunningGateway

WITHIN: Final = 4.0  # seconds until a part has said how it is
REREAD_WITHIN: Final = 8.0  # until it has read its files: who asks waits 15

Command: TypeAlias = Callable[..., Awaitable[Mapping[str, Any]]]


def name_of_part() -> str:
    """The name of this process among the others."""
    return f"{os.getpid()}.{token_hex(4)}@{socket.gethostname()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCommands:
    """Answers what a gateway is asked. `stop` lets the process end as SIGTERM does; `since` is when
    it began (seconds, 1970).
    """

    held: RunningGateway
    settings: Settings
    clock: Clock
    version: str
    since: float
    stop: Callable[[], None]

    @property
    def commands(self) -> Mapping[str, Command]:
        """Each by its name."""
        return {"status": self.status, "reload": self.reload, "stop": self.end}

    async def status(self) -> Mapping[str, Any]:
        """How it is, for people and programs."""
        settings, held = self.settings, self.held
        where = f"listening on {settings.onebot_host}:{held.port}"
        return {
            "version": self.version,
            **begun(self.since, self.clock),
            "stopping": False,
            "readiness": held.ready().to_json(),
            "onebot": where if held.port else f"dialling {settings.onebot_url}",
            "accounts": accounts_of(held.peers.accounts()),
            "events": events_of(held),
        }

    async def reload(self) -> Mapping[str, Any]:
        """Nothing was read that could be read again."""
        return {"ok": True, "told": []}

    async def end(self) -> Mapping[str, Any]:
        """Begin to end."""
        self.stop()
        return {"pid": os.getpid()}


def events_of(held: RunningGateway) -> Mapping[str, Any]:
    """The fates of a gateway's events."""
    gateway = held.gateway
    return {
        "published": gateway.published,
        "waiting": gateway.waiting,
        "lost": gateway.lost,
        "broker": gateway.is_up,
    }


def with_events(status: Command, held: RunningGateway) -> Command:
    """The status of a worker that is a gateway as well."""

    async def both() -> Mapping[str, Any]:
        return {**await status(), "events": events_of(held)}

    return both


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCommands:
    """The `own` commands of a part; `status` tells of all parts, `reload` reaches all of them, and
    `console` the one that has it.
    """

    own: Mapping[str, Command]
    name: str
    settings: Settings
    clock: Clock

    @property
    def commands(self) -> Mapping[str, Command]:
        """Each by its name."""
        everywhere = {"status": self.status, "reload": self.reload, "console": self.console}
        return {**self.own, **everywhere}

    async def status(self) -> Mapping[str, Any]:
        """How this part is, and the whole `cluster`."""
        return {**await self.own["status"](), "cluster": await self._cluster()}

    async def reload(self) -> Mapping[str, Any]:
        """Let every worker read its files and the journal once more."""
        try:
            answers = await ask_parts(self._url, "reload", within=REREAD_WITHIN)
        except BrokerUnreachable as error:
            own = await self.own["reload"]()
            others = f"no other part was reached: the broker is away ({error})"
            return {"ok": False, "told": [*own["told"], others]}
        if answers.get(self.name) is None:
            answers[self.name] = await self.own["reload"]()
        lines = dict.fromkeys(
            line for one in answers.values() if one for line in one.get("told", ())
        )
        failed = {name: _why(one) for name, one in answers.items() if one is None or "error" in one}
        told = [f"{name} has not read anything: {why}" for name, why in failed.items()]
        whole = all(one is None or one.get("ok", True) for one in answers.values())
        return {"ok": whole and not failed, "told": [*lines, *told]}

    async def console(self) -> Mapping[str, Any]:
        """An address that lets into the console, from the worker that has it."""
        try:
            answers = await ask_parts(self._url, "console", within=WITHIN)
        except BrokerUnreachable as error:
            return {"error": f"the console is asked for over the broker, which is away ({error})"}
        answered = [one for one in answers.values() if one is not None]
        if link := next((one for one in answered if "link" in one), None):
            return link
        is_nowhere = any(one.get("error") == NO_CONSOLE for one in answered)
        return {"error": NO_CONSOLE if is_nowhere else CONSOLE_ELSEWHERE}

    @property
    def _url(self) -> str:
        return self.settings.broker_url.get_secret_value()

    async def _asked(self) -> Mapping[str, Mapping[str, Any] | None]:
        try:
            return await ask_parts(self._url, "status", within=WITHIN)
        except BrokerUnreachable:  # whoever looks at it says so
            return {}

    async def _looked(self) -> BrokerStatus | str:
        """The state of the broker, or why that cannot be said."""
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
    return "it does not answer" if answer is None else str(answer["error"])
