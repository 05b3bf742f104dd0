"""What NapCat and LLBot read at their start: how to reach the bot, and with which token. Pure.

NapCat reads `onebot11.json` until the account's own `onebot11_<qq>.json` exists, which it makes of it at the first
login; it reads no environment. LLBot has `config_<qq>.json` only. Shapes: NapCat packages/napcat-onebot/config and
NapCat-Docker entrypoint.sh (4.18), LLBot script/install-llbot-docker.sh (8.1).
"""

from __future__ import annotations

import json
from typing import Any, Literal
from urllib.parse import urlsplit

Server = Literal["napcat", "llbot"]

BOT_URL = "ws://bot:6199/"
"""Where docker-compose.yml has the bot; any path is accepted."""

HEARTBEAT = 30_000  # ms
RECONNECT = 5_000  # ms


def write_onebot(*, url: str, token: str) -> str:
    """NapCat's `onebot11.json` for a bot that listens: dial it there."""
    client = {
        **_connection(token),
        "url": url,
        "reconnectInterval": RECONNECT,
    }
    return _onebot(websocketClients=[client])


def write_onebot_listening(*, token: str) -> str:
    """NapCat's `onebot11.json` for a bot that dials: listen on every address of the container, port 3001."""
    return _onebot(websocketServers=[{**_connection(token), "host": "0.0.0.0", "port": 3001}])  # noqa: S104  # inside a container


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
    kinds = ("httpServers", "httpSseServers", "httpClients", "websocketServers", "websocketClients", "plugins")
    return _text(
        {
            "network": {**{kind: [] for kind in kinds}, **connections},
            "musicSignUrl": "",
            "enableLocalFile2Url": True,  # get_image and get_record answer with the bytes: the bot sees no files there
            "parseMultMsg": False,
            "imageDownloadProxy": "",
        }
    )


def write_webui(*, token: str) -> str:
    """NapCat's `webui.json`; inside its container it must listen on every address to be published at all."""
    return _text({"host": "0.0.0.0", "port": 6099, "prefix": "", "token": token, "loginRate": 3})  # noqa: S104  # inside a container


def write_llbot(*, url: str, token: str) -> str:
    """LLBot's `config_<qq>.json`, with the same meaning."""
    client = {
        "type": "ws-reverse",
        "enable": True,
        "url": url,
        "token": token,
        "reportSelfMessage": True,
        "reportOfflineMessage": False,
        "messageFormat": "array",
        "debug": False,
        "heartInterval": HEARTBEAT,
    }
    return _text({"ob11": {"enable": True, "connect": [client]}, "webui": {"enable": True, "host": "", "port": 3080}})


def tokens_for(text: str, *, url: str) -> set[str]:
    """The tokens with which such a file lets its server dial the bot at that url; nothing of what is switched off.

    A file that cannot be read as one of these holds none: its server will say so better than we can.
    """
    try:
        match json.loads(text):
            case {"network": {"websocketClients": [*clients]}} | {"ob11": {"connect": [*clients]}}:
                return {
                    str(client.get("token") or "")
                    for client in clients
                    if isinstance(client, dict) and client.get("enable") and _place(client.get("url")) == _place(url)
                }
            case _:
                return set()
    except (ValueError, RecursionError):
        return set()


def _place(url: object) -> tuple[str | None, int | None]:
    """Host and port; the path does not matter to the bot."""
    parts = urlsplit(str(url))
    return parts.hostname, parts.port


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
