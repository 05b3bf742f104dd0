"""The ports the bot listens on: free, taken by the bot that runs, which is asked how it is, or by
something else.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from adapters.control.client import NoAnswer, NotRunning, asked
from adapters.openai.client import make_session
from adapters.web.readiness import NOBODY, ServedAccount
from bot.cli.control import socket_of
from bot.cli.doctor.checks import LOG_IN, Check, warn, well, wrong
from bot.cli.doctor.chinese import sentence
from bot.domain.errors import ConfigError
from bot.domain.language import Bilingual
from config.settings import Settings

ASKED_WITHIN = 4.0  # seconds
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nothing listens there: a key
"""What is listened on -> where it is asked."""

A_SERVER = sentence("a OneBot server")
CONNECT = (
    "See that the OneBot server runs, and that its websocket client has the bot's address and the "
    "token in ONEBOT_ACCESS_TOKEN; its log says why it does not connect"
)


@dataclass(frozen=True, slots=True)
class RunningBot:
    """The state of a running bot, as it says it; `reason` is why it is not ready."""

    ready: bool
    reason: str
    accounts: tuple[ServedAccount, ...]


async def nowhere() -> frozenset[int]:
    """The accounts of other gateways where this process is the only one: none."""
    return frozenset()


async def check_ports(
    settings: Settings, *, elsewhere: Callable[[], Awaitable[frozenset[int]]] = nowhere
) -> list[Check]:
    """The port of the web server, and in reverse mode that of the OneBot servers and who is
    connected there. `elsewhere` says which accounts are online at other gateways of a cluster.
    """
    running = await find_running(settings)
    checks = [] if settings.web_port == 0 else [await _check_web(settings, running)]
    if settings.onebot_mode == "forward":  # the OneBot server itself is asked
        return checks
    checks.append(await _check_onebot(settings, running))
    if running is None:
        return checks
    is_alone = not running.ready and running.reason.startswith(NOBODY)
    return [*checks, *_judge(running, await elsewhere() if is_alone else frozenset())]


async def find_running(settings: Settings) -> RunningBot | None:
    """The bot that runs with these settings; None where none does.

    It is asked at /healthz and /readyz, over its control socket where it has no web port.
    """
    if settings.web_port == 0:
        return await asyncio.to_thread(_ask_control, settings)
    host = EVERYWHERE.get(settings.web_host, settings.web_host)
    root = URL.build(scheme="http", host=host, port=settings.web_port)
    try:
        async with asyncio.timeout(ASKED_WITHIN), make_session() as session:
            if await _get(session, root / "healthz") != {"status": "ok"}:
                return None
            return _read(await _get(session, root / "readyz"))
    except (aiohttp.ClientError, OSError, ValueError):
        return None


async def why_taken(host: str, port: int) -> str:
    """Why nobody can listen there now; empty where somebody can."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port)
    except OSError as error:
        return (
            sentence("in use") if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        )
    server.close()
    await server.wait_closed()
    return ""


async def _check_web(settings: Settings, running: RunningBot | None) -> Check:
    place = f"{settings.web_host}:{settings.web_port}"
    trouble = await why_taken(settings.web_host, settings.web_port)
    if running is not None:
        return well("web port", sentence("{} is used by the bot that runs", place))
    if not trouble:
        return well("web port", sentence("{} is free", place))
    mend = sentence("Stop what uses it, or choose another WEB_PORT (0: none)")
    # As at start: a default that is taken costs only /metrics.
    judge = wrong if "web_port" in settings.model_fields_set else warn
    return judge("web port", sentence("{} cannot be listened on ({})", place, trouble), mend)


async def _check_onebot(settings: Settings, running: RunningBot | None) -> Check:
    place = f"{settings.onebot_host}:{settings.onebot_port}"
    trouble = await why_taken(settings.onebot_host, settings.onebot_port)
    if not trouble:
        return well("onebot port", sentence("{} is free: no bot is running there", place))
    if running is not None:
        return well("onebot port", sentence("{} is used by the bot that runs", place))
    return wrong(
        "onebot port",
        sentence("{} cannot be listened on ({})", place, trouble),
        sentence("Stop what uses it, or choose another ONEBOT_PORT"),
    )


def _judge(running: RunningBot, elsewhere: frozenset[int]) -> Iterator[Check]:
    """Which servers brought which accounts, and whether these are online. A gateway without one is
    well as long as those that left it, or any at all, are `elsewhere`.
    """
    there = [seen for seen in running.accounts if seen.state != "missing"]
    gone = {seen.account for seen in running.accounts} - {seen.account for seen in there}
    if there:
        brought = [
            sentence("{} has account {}", seen.server or A_SERVER, seen.account) for seen in there
        ]
        yield well(
            "onebot",
            Bilingual("; ".join(brought), "；".join(one.zh for one in brought)),
        )
    if elsewhere and not there and gone <= elsewhere:
        named = ", ".join(map(str, sorted(elsewhere)))
        said = sentence("none is at this gateway, account {} is at another one", named)
        yield well("account", said)
    elif not running.ready:
        mend = LOG_IN if any(seen.online is False for seen in there) else CONNECT
        yield wrong("account", sentence("the bot is running, but {}", running.reason), mend)
    elif unknown := _numbers(seen for seen in there if seen.online is None):
        yield warn(
            "account",
            sentence("the bot is running, but nobody says whether account {} is online", unknown),
            LOG_IN,
        )
    else:
        yield well("account", sentence("the bot is running, account {} online", _numbers(there)))


def _numbers(accounts: Iterable[ServedAccount]) -> str:
    return ", ".join(str(seen.account) for seen in accounts)


def _ask_control(settings: Settings) -> RunningBot | None:
    try:
        path = socket_of(settings.store_url.get_secret_value())
        with asked(path, "status", seconds=ASKED_WITHIN) as answered:
            return _read(answered.answer.get("readiness"))
    except (ConfigError, NotRunning, NoAnswer):
        return None


async def _get(session: aiohttp.ClientSession, url: URL) -> Any:
    async with session.get(url, allow_redirects=False) as response:
        return await response.json()


def _read(body: Any) -> RunningBot | None:
    match body:
        case {"ready": bool(ready), "reason": str(reason), "accounts": list(rows)}:
            accounts = [
                ServedAccount(int(row["account"]), row["state"], str(row.get("server") or ""))
                for row in rows
            ]
            return RunningBot(ready, reason, tuple(accounts))
        case _:
            return None
