"""Checks of the connection to OneBot: the ports the bot listens on, the OneBot server, and the page
from which it fetches large files. A port is free, used by the running bot, which is then asked for
its status, or used by another program.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import CloseCode
from yarl import URL

from adapters.control.client import NoAnswer, NotRunning, ask_bot
from adapters.onebot.accounts import PeerRegistry
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.connection import Connection
from adapters.onebot.sockets import ReverseServer, dial
from adapters.web.file_route import NOTHING
from adapters.web.readiness import NOBODY, ServedAccount
from bot.cli.checks import LOG_IN, Check, failure, failures, ok, warning
from bot.cli.control import socket_of
from bot.cli.doctor.interview import A_SERVER, RESTART, SENT_WITHIN, Interview
from bot.core.errors import NotConnected
from bot.core.events import Event
from bot.core.language import CATALOGUE, Bilingual, Phrase
from config.settings import Settings
from frostagent.models.openai.client import make_session
from frostagent.types.errors import ConfigError
from frostagent.types.ports import Clock, Ids

ASKED_WITHIN = 4.0  # seconds
LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nothing listens there: a key
"""The address listened on -> the address to ask."""

CONNECT = Phrase(
    "看看 OneBot 服务开着没有，它的 WebSocket 客户端里机器人的地址和 "
    "ONEBOT_ACCESS_TOKEN 的令牌对不对；它的日志里写着为什么连不上",
    "Check that the OneBot server runs, and that its websocket client has the bot's address"
    " and the token from ONEBOT_ACCESS_TOKEN; its log says why it does not connect",
)


WEB_IN_USE: Final = Phrase("{place} 由正在运行的机器人占用", "{place} is used by the running bot")
WEB_FREE: Final = Phrase("{place} 空着", "{place} is free")
FREE_WEB_PORT: Final = Phrase(
    "停掉占用它的程序，或者换一个 WEB_PORT（0 表示不要）",
    "Stop what uses it, or choose another WEB_PORT (0: none)",
)
WEB_UNUSABLE: Final = Phrase("{place} 监听不了（{why}）", "cannot listen on {place} ({why})")
ONEBOT_FREE: Final = Phrase(
    "{place} 空着：没有机器人在运行", "{place} is free: no bot is running there"
)
FREE_ONEBOT_PORT: Final = Phrase(
    "停掉占用它的程序，或者换一个 ONEBOT_PORT", "Stop what uses it, or choose another ONEBOT_PORT"
)
ELSEWHERE: Final = Phrase(
    "这个网关上没有账号，账号 {accounts} 在别的网关上",
    "none at this gateway; account {accounts} is at another one",
)
BOT_RUNS_BUT: Final = Phrase("机器人在运行，但是：{why}", "the bot is running, but {why}")
ACCOUNT_UNKNOWN: Final = Phrase(
    "机器人在运行，但不知道账号 {accounts} 在不在线",
    "the bot is running, but it is unknown whether account {accounts} is online",
)
ACCOUNTS_ONLINE: Final = Phrase(
    "机器人在运行，账号 {accounts} 在线", "the bot is running, account {accounts} online"
)
PORT_OF_BOT: Final = Phrase(
    "没有发送：OneBot 服务连着的是正占用端口的程序",
    "was not sent: the OneBot server is connected to the process that has the port now",
)
NONE_CAME: Final = Phrase(
    "没有 OneBot 服务连到 {host}:{port}，等了 {seconds} 秒",
    "none connected to {host}:{port} within {seconds} s",
)
TOKEN_REFUSED: Final = Phrase(
    "{place} 不认我们的令牌（HTTP {status}）", "{place} does not accept our token (HTTP {status})"
)
NO_WEBSOCKET: Final = Phrase(
    "{place} 不是 WebSocket 服务端（HTTP {status}）",
    "{place} is not a websocket server (HTTP {status})",
)
UNREACHABLE: Final = Phrase("连不上 {place}（{why}）", "{place} cannot be reached ({why})")
UNKNOWN_HOST: Final = Phrase("这里不认识 {host} 这个名字", "{host} is not a name known here")
RESOLVED: Final = Phrase("{host} 的地址是 {address}", "the address of {host} is {address}")
TOKEN_NOT_TAKEN: Final = Phrase("{place} 不认我们的令牌", "{place} does not accept our token")
HANGS_UP: Final = Phrase(
    "{place} 一连上就挂断：令牌可能不对",
    "{place} closes the connection at once: our token may be wrong",
)
SILENT: Final = Phrase(
    "{place} 接受了连接，但什么也不答复", "{place} accepts the connection but answers nothing"
)
LEADS_TO_BOT: Final = Phrase("{url} 通到机器人", "{url} leads to the bot")
LEADS_ELSEWHERE: Final = Phrase(
    "{url} 没有通到机器人，那边答复了 {status}", "{url} leads elsewhere: it answered {status}"
)


@dataclass(frozen=True, slots=True)
class RunningBot:
    """The state that a running bot reports; `reason` is why it is not ready."""

    ready: bool
    reason: str
    accounts: tuple[ServedAccount, ...]


async def no_accounts() -> frozenset[int]:
    """The accounts at other gateways when there is no cluster: none."""
    return frozenset()


async def check_ports(
    settings: Settings, *, elsewhere: Callable[[], Awaitable[frozenset[int]]] = no_accounts
) -> list[Check]:
    """Check the port of the web server and, in reverse mode, that of the OneBot servers and the
    connected accounts. `elsewhere` gives the accounts online at other gateways of a cluster.
    """
    running = await find_running(settings)
    checks = [] if settings.web_port == 0 else [await _check_web(settings, running)]
    if settings.onebot_mode == "forward":  # the OneBot server itself is checked instead
        return checks
    checks.append(await _check_onebot(settings, running))
    if running is None:
        return checks
    is_alone = not running.ready and running.reason.startswith(NOBODY)
    return [*checks, *_judge(running, await elsewhere() if is_alone else frozenset())]


async def find_running(settings: Settings) -> RunningBot | None:
    """The bot running with these settings, None if there is none. It is asked at /healthz and
    /readyz, or over its control socket if it has no web port.
    """
    if settings.web_port == 0:
        return await asyncio.to_thread(_ask_control, settings)
    host = LOOPBACK_OF.get(settings.web_host, settings.web_host)
    root = URL.build(scheme="http", host=host, port=settings.web_port)
    try:
        async with asyncio.timeout(ASKED_WITHIN), make_session() as session:
            if await _get(session, root / "healthz") != {"status": "ok"}:
                return None
            return _read(await _get(session, root / "readyz"))
    except (aiohttp.ClientError, OSError, ValueError):
        return None


async def why_taken(host: str, port: int) -> str:
    """Why the port cannot be listened on; empty if it can."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port)
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        return Bilingual("in use", "已被占用") if is_taken else error.strerror or str(error)
    server.close()
    await server.wait_closed()
    return ""


async def _check_web(settings: Settings, running: RunningBot | None) -> Check:
    place = f"{settings.web_host}:{settings.web_port}"
    trouble = await why_taken(settings.web_host, settings.web_port)
    if running is not None:
        return ok(
            "web port",
            WEB_IN_USE,
            place=place,
        )
    if not trouble:
        return ok("web port", WEB_FREE, place=place)
    fix = FREE_WEB_PORT
    # As at start: if the default port is taken, only /metrics is missing.
    judge = failure if "web_port" in settings.model_fields_set else warning
    return judge(
        "web port",
        WEB_UNUSABLE,
        fix,
        place=place,
        why=trouble,
    )


async def _check_onebot(settings: Settings, running: RunningBot | None) -> Check:
    place = f"{settings.onebot_host}:{settings.onebot_port}"
    trouble = await why_taken(settings.onebot_host, settings.onebot_port)
    if not trouble:
        return ok(
            "onebot port",
            ONEBOT_FREE,
            place=place,
        )
    if running is not None:
        return ok(
            "onebot port",
            WEB_IN_USE,
            place=place,
        )
    return failure(
        "onebot port",
        WEB_UNUSABLE,
        FREE_ONEBOT_PORT,
        place=place,
        why=trouble,
    )


def _judge(running: RunningBot, elsewhere: frozenset[int]) -> Iterator[Check]:
    """The connected accounts with their servers, and whether they are online. A gateway without
    accounts is fine as long as those that left it, or any at all, are `elsewhere`.
    """
    there = [seen for seen in running.accounts if seen.state != "missing"]
    gone = {seen.account for seen in running.accounts} - {seen.account for seen in there}
    if there:
        brought = [
            BROUGHT.fill(server=seen.server or A_SERVER, account=seen.account) for seen in there
        ]
        yield ok("onebot", Bilingual("; ".join(brought), "；".join(one.zh for one in brought)))
    if elsewhere and not there and gone <= elsewhere:
        named = ", ".join(map(str, sorted(elsewhere)))
        yield ok(
            "account",
            ELSEWHERE,
            accounts=named,
        )
    elif not running.ready:
        fix = LOG_IN if any(seen.online is False for seen in there) else CONNECT
        yield failure(
            "account",
            BOT_RUNS_BUT,
            fix,
            why=running.reason,
        )
    elif unknown := _numbers(seen for seen in there if seen.online is None):
        yield warning(
            "account",
            ACCOUNT_UNKNOWN,
            LOG_IN,
            accounts=unknown,
        )
    else:
        yield ok(
            "account",
            ACCOUNTS_ONLINE,
            accounts=_numbers(there),
        )


def _numbers(accounts: Iterable[ServedAccount]) -> str:
    return ", ".join(str(seen.account) for seen in accounts)


def _ask_control(settings: Settings) -> RunningBot | None:
    try:
        path = socket_of(settings.store_url.get_secret_value())
        with ask_bot(path, "status", seconds=ASKED_WITHIN) as answered:
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


# --- reverse mode: the server dials; if no bot runs, the doctor listens in its place --------------


COMES_WITHIN = 35.0
"""Seconds. NapCat dials every 5 s with our settings, every 30 s with its own."""

STOP_THE_BOT = Phrase(
    "先停下机器人再查；用 docker：先 `docker compose stop bot`，再 `docker compose "
    "run --rm --no-deps --use-aliases bot doctor --send-image`",
    "Stop the bot and ask again; with docker: `docker compose stop bot`, then "
    "`docker compose run --rm --no-deps --use-aliases bot doctor --send-image`",
)


async def check_reverse(settings: Settings, *, clock: Clock, ids: Ids) -> list[Check]:
    """Check the ports and, if the port is free, the first OneBot server that connects and a picture
    sent through it.
    """
    checks = await check_ports(settings)
    if await why_taken(settings.onebot_host, settings.onebot_port):
        said = PORT_OF_BOT
        return [*checks, warning("picture", said, STOP_THE_BOT)]
    return [*checks, *await listen(settings, clock=clock, ids=ids)]


async def listen(
    settings: Settings, *, clock: Clock, ids: Ids, within: float = COMES_WITHIN
) -> list[Check]:
    """Wait this many seconds for a OneBot server and interview it, with a picture."""
    calls, peers, door = (
        OneBotCalls(boot=ids.trace(), deadline=SENT_WITHIN),
        PeerRegistry(),
        _FirstEvent(),
    )
    server = ReverseServer(
        host=settings.onebot_host,
        port=settings.onebot_port,
        token=settings.access_tokens.common,
        accounts=settings.access_tokens.accounts,
        sink=door,
        peers=peers,
        calls=calls,
        clock=clock,
    )
    try:
        async with server:
            try:
                async with asyncio.timeout(within):
                    peer = peers.caller(await door.account)
            except (TimeoutError, NotConnected):
                return [
                    failure(
                        "onebot",
                        NONE_CAME,
                        CONNECT,
                        host=settings.onebot_host,
                        port=server.port,
                        seconds=f"{within:g}",
                    )
                ]
            interview = Interview(
                peer,
                calls,
                place=Bilingual(f"account {peer.account}", f"账号 {peer.account}"),
            )
            await interview.hold(settings, send_image=True)
            return interview.told
    except ConfigError as error:  # taken since we looked
        return failures("onebot port", error.problems)


class _FirstEvent:
    """An `EventSink` that records the account of the first event: every server sends one on
    connecting.
    """

    def __init__(self) -> None:
        self.account: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def handle(self, event: Event) -> None:
        """Fits `EventSink`."""
        if not self.account.done():
            self.account.set_result(event.self_id)


# --- forward mode: the server is dialled ----------------------------------------------------------


# Seconds; with the disconnect they stay within the deadline of one check.
RESOLVED_WITHIN = 3.0
DIALLED_WITHIN = 5.0

BE_LET_IN = Phrase(
    "把 ONEBOT_ACCESS_TOKEN 设成 OneBot 服务里 WebSocket 服务端的令牌",
    "Set ONEBOT_ACCESS_TOKEN to the token of the OneBot server's websocket server",
)
START_SERVER = Phrase(
    "启动 OneBot 服务，打开它的 WebSocket 服务端，并核对 ONEBOT_URL 的地址和端口",
    "Start the OneBot server, enable its websocket server, and check that ONEBOT_URL has its"
    " host and port",
)
NAME_IN_CONTAINERS = Phrase(
    "在容器里填服务名，要在同一个网络；在同一台机器上填 127.0.0.1",
    "In containers it is the name of the service, in the same network; on one machine, 127.0.0.1",
)


async def check_forward(
    settings: Settings, *, clock: Clock, ids: Ids, send_image: bool = False
) -> list[Check]:
    """Resolve, dial, ask and disconnect, in this order, up to the first failing step."""
    named = await check_name(settings.onebot_url)
    if named.fix:
        return [named]
    place = urlsplit(settings.onebot_url).netloc.rpartition("@")[2]
    try:
        async with asyncio.timeout(DIALLED_WITHIN):
            socket = await dial(settings.onebot_url, settings.access_tokens.only[1])
    except InvalidStatus as error:
        status = error.response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return [
                named,
                failure(
                    "onebot",
                    TOKEN_REFUSED,
                    BE_LET_IN,
                    place=place,
                    status=status,
                ),
            ]
        return [
            named,
            failure(
                "onebot",
                NO_WEBSOCKET,
                START_SERVER,
                place=place,
                status=status,
            ),
        ]
    except (OSError, WebSocketException, ValueError) as error:
        # Only the kind: the text of some errors has the URL with the token.
        reason = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
        return [
            named,
            failure(
                "onebot",
                UNREACHABLE,
                START_SERVER,
                place=place,
                why=reason,
            ),
        ]
    told = await _converse(
        socket, settings, place=place, send_image=send_image, clock=clock, ids=ids
    )
    return [named, *told]


async def check_name(url: str) -> Check:
    """Whether the host of a URL resolves here."""
    host = urlsplit(url).hostname or ""
    try:
        async with asyncio.timeout(RESOLVED_WITHIN):
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except OSError:
        return failure(
            "onebot host",
            UNKNOWN_HOST,
            NAME_IN_CONTAINERS,
            host=host,
        )
    return ok(
        "onebot host",
        RESOLVED,
        host=host,
        address=found[0][4][0],
    )


class _NoEvents:
    """An `EventSink` that drops all events: the doctor answers no messages."""

    async def handle(self, event: Event) -> None:
        """Fits `EventSink`."""


async def _converse(
    socket: ClientConnection,
    settings: Settings,
    *,
    place: str,
    send_image: bool,
    clock: Clock,
    ids: Ids,
) -> list[Check]:
    calls = OneBotCalls(boot=ids.trace(), deadline=SENT_WITHIN)
    connection = Connection(
        socket, sink=_NoEvents(), peers=PeerRegistry(), calls=calls, clock=clock
    )
    interview = Interview(connection, calls, place=place)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(connection.run())
        asking = group.create_task(interview.hold(settings, send_image=send_image))
        await asyncio.wait((reading, asking), return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()  # if the server disconnected, no answer will come
        await connection.close("goodbye")
    if connection.bad_token or socket.close_code == CloseCode.POLICY_VIOLATION:
        return [
            failure(
                "onebot",
                TOKEN_NOT_TAKEN,
                BE_LET_IN,
                place=place,
            )
        ]
    if socket.close_code == CloseCode.PROTOCOL_ERROR and not connection.is_introduced:
        return [
            failure(
                "onebot",
                HANGS_UP,
                BE_LET_IN,
                place=place,
            )
        ]
    return interview.told or [
        failure(
            "onebot",
            SILENT,
            RESTART,
            place=place,
        )
    ]


# --- the page for large files ---------------------------------------------------------------------


MEND_MEDIA_URL = Phrase(
    "看看 MEDIA_URL 写的是不是这台机器和 WEB_PORT（docs/zh/cluster.md），"
    "然后重启机器人；不然大文件发不出去",
    "Check that MEDIA_URL names this machine and WEB_PORT (docs/cluster.md), and restart the"
    " bot; otherwise large files are not sent",
)
BROUGHT: Final = Phrase("{server} 登录的是账号 {account}", "{server} has account {account}")
CATALOGUE.register(__name__, globals())


async def check_media_url(settings: Settings) -> list[Check]:
    """Request a file that does not exist from MEDIA_URL, under which OneBot servers may reach
    another machine. Empty if no bot is running.
    """
    if await find_running(settings) is None:
        return []
    url = settings.media_url
    try:
        async with (
            asyncio.timeout(ASKED_WITHIN),
            make_session() as session,
            session.get(f"{url}/doctor", allow_redirects=False) as response,
        ):
            said = await response.content.read(len(NOTHING) + 1)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return [
            warning(
                "media url",
                UNREACHABLE,
                MEND_MEDIA_URL,
                place=url,
                why=type(error).__name__,
            )
        ]
    if (response.status, said) == (404, NOTHING.encode()):
        return [ok("media url", LEADS_TO_BOT, url=url)]
    return [
        warning(
            "media url",
            LEADS_ELSEWHERE,
            MEND_MEDIA_URL,
            url=url,
            status=response.status,
        )
    ]
