"""The settings that NapCat and LLBot read at their start: how to reach the bot, and with which
token. Pure.

NapCat reads `onebot11.json` until the account's own `onebot11_<qq>.json` exists, which it makes of
it at the first login; it reads no environment. LLBot has `config_<qq>.json` only. Shapes: NapCat
packages/napcat-onebot/config and NapCat-Docker entrypoint.sh (4.18), LLBot
script/install-llbot-docker.sh (8.1).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never
from urllib.parse import urlsplit

from config import values
from config.settings import Mode, Settings

Server = Literal["napcat", "llbot"]

BOT_URL = "ws://bot:6199/"
"""Where docker-compose.yml has the bot; any path is accepted."""

HEARTBEAT = 30_000  # ms
RECONNECT = 5_000  # ms
EVERYWHERE = "0.0.0.0"  # noqa: S104  # inside a container


@dataclass(frozen=True, slots=True)
class ServerLink:
    """How a server and the bot find each other: `url` is where the one that dials (`mode`) finds
    the other.

    `token` is the one to write down; a server that has one of the `others` comes in, too.
    """

    mode: Mode
    url: str
    token: str
    others: frozenset[str] = frozenset()

    @property
    def accepted(self) -> frozenset[str]:
        """Every token by which it is made."""
        return self.others | {self.token}

    @property
    def place(self) -> tuple[str | None, int | None]:
        """Host and port of the url. Raises ValueError where it has none that could be."""
        return _place(self.url)


def link_of(settings: Settings, *, bot_url: str = BOT_URL, account: int = 0) -> ServerLink:
    """The link that these settings want; `bot_url` is where the bot is for a server that dials.

    It is that of the server of `account`; 0 where it is not known before somebody logs in.
    """
    url = settings.onebot_url if settings.onebot_mode == "forward" else bot_url
    tokens = settings.access_tokens
    token = tokens.token_for(account)
    return ServerLink(settings.onebot_mode, url, token, frozenset(tokens.all) - {token})


def account_in(text: str) -> int:
    """The account that a variable names; 0 where it names none, or several."""
    try:
        (number,) = values.qq_numbers(text)
    except ValueError:
        return 0
    return number


def write_onebot(link: ServerLink) -> str:
    """NapCat's `onebot11.json`: dial the bot, or listen for it on every address of the
    container.
    """
    match link.mode:
        case "reverse":
            client = {**_connection(link.token), "url": link.url, "reconnectInterval": RECONNECT}
            return _onebot(websocketClients=[client])
        case "forward":
            server = {**_connection(link.token), "host": EVERYWHERE, "port": link.place[1]}
            return _onebot(websocketServers=[server])
        case _:
            assert_never(link.mode)


def _connection(token: str) -> dict[str, Any]:
    return {
        "name": "frostagent",
        "enable": True,
        "messagePostFormat": "array",
        "reportSelfMessage": True,  # it confirms what was sent
        "token": token,
        "debug": False,
        "heartInterval": HEARTBEAT,
    }


def _onebot(**connections: list[dict[str, Any]]) -> str:
    kinds = (
        "httpServers",
        "httpSseServers",
        "httpClients",
        "websocketServers",
        "websocketClients",
        "plugins",
    )
    return _text(
        {
            "network": {**{kind: [] for kind in kinds}, **connections},
            "musicSignUrl": "",
            # get_image and get_record answer with the bytes: the bot sees no files there
            "enableLocalFile2Url": True,
            "parseMultMsg": False,
            "imageDownloadProxy": "",
        }
    )


def write_webui(*, token: str) -> str:
    """NapCat's `webui.json`; inside its container it must listen on every address to be published
    at all.
    """
    return _text({"host": EVERYWHERE, "port": 6099, "prefix": "", "token": token, "loginRate": 3})


def webui_token(text: str) -> str:
    """The password in a `webui.json`, or in a file that is nothing but one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return str(found.get("token") or "") if isinstance(found, dict) else text.strip()


def write_llbot(link: ServerLink) -> str:
    """LLBot's `config_<qq>.json`, with the same meaning; to it no host is every address."""
    match link.mode:
        case "reverse":
            kind: dict[str, Any] = {"type": "ws-reverse", "url": link.url}
        case "forward":
            kind = {"type": "ws", "host": "", "port": link.place[1]}
        case _:
            assert_never(link.mode)
    connection = {
        **kind,
        "enable": True,
        "token": link.token,
        "reportSelfMessage": True,
        "reportOfflineMessage": False,
        "messageFormat": "array",
        "debug": False,
        "heartInterval": HEARTBEAT,
    }
    return _text(
        {
            "ob11": {"enable": True, "connect": [connection]},
            "webui": {"enable": True, "host": "", "port": 3080},
        }
    )


def tokens_for(text: str, link: ServerLink) -> set[str]:
    """The tokens by which such a file would make this link, whatever the token of it; none of what
    is switched off.

    A file that cannot be read as one of these holds none: its server will say so better than we
    can.
    """
    try:
        found = _connections(json.loads(text))
        return {
            str(each.get("token") or "")
            for each in found
            if each.get("enable") and _makes(each, link)
        }
    except (ValueError, RecursionError):
        return set()


def _connections(found: object) -> Iterator[dict[str, Any]]:
    match found:
        case {"network": dict(network)}:
            kinds = [network.get(kind) for kind in ("websocketClients", "websocketServers")]
        case {"ob11": {"connect": connections}}:
            kinds = [connections]
        case _:
            return
    for kind in kinds:
        if isinstance(kind, list):
            yield from (each for each in kind if isinstance(each, dict))


def _makes(connection: dict[str, Any], link: ServerLink) -> bool:
    """Whether a connection is that of a link; only LLBot's have a type. The path does not matter to
    the bot.
    """
    kind = connection.get("type")
    match link.mode:
        case "reverse":
            return kind in {None, "ws-reverse"} and _place(connection.get("url")) == link.place
        case "forward":
            return kind in {None, "ws"} and connection.get("port") == link.place[1]
        case _:
            assert_never(link.mode)


def _place(url: object) -> tuple[str | None, int | None]:
    parts = urlsplit(str(url))
    return parts.hostname, parts.port or {"ws": 80, "wss": 443}.get(parts.scheme)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
