"""The files that `setup` and `init` write, all or none: a `.env`, whose comments stay, and the
settings that NapCat and LLBot read at their start.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_never
from urllib.parse import urlsplit

from dotenv.parser import parse_stream

from bot.core.language import CATALOGUE, Phrase
from config.settings import Mode, Settings
from config.values import qq_numbers, why_of
from frostagent.types.errors import ConfigError, Problem

PRIVATE = 0o600
UNREADABLE = Phrase("读不了（{why}）", "cannot be read ({why})")
UNWRITABLE = Phrase("写不了（{why}）", "cannot be written ({why})")
NOT_UTF8 = Phrase("不是 UTF-8 文本", "not UTF-8 text")
PERMIT = Phrase(
    "给这个账号相应的权限，或者把它移走", "Give this account permission, or move it away"
)
OUTSIDE = Phrase(
    "在容器外运行 setup（make run ARGS=setup），或者手动改 .env",
    "Run setup outside the container (make run ARGS=setup), or edit .env by hand",
)
NOT_FOR_ENV = Phrase(
    "有引号、反斜杠或换行，各种程序读 .env 时理解不同",
    "has a quote, a backslash or a line break, which programs read from .env in different ways",
)
CHOOSE_ANOTHER = Phrase("换一个值", "Choose another value")
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write, with its whole text. It has secrets, so only its owner may read it."""

    path: Path
    text: str


def read_text(path: Path) -> str | None:
    """The text of a file, None if it does not exist. Raises ConfigError if it cannot be read."""
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(_problem(path, UNREADABLE, error)) from None


def write_files(files: Iterable[NewFile]) -> None:
    """Write the files, creating missing folders. A failure while preparing them leaves every
    existing file unchanged.

    A symbolic link is kept: its target is replaced. Raises ConfigError if a file cannot be written.
    """
    ready: list[tuple[Path, Path]] = []
    try:
        for file in files:
            path = file.path.resolve()
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                ready.append((_write_beside(path, file.text), path))
            except OSError as error:
                raise ConfigError(_problem(file.path, UNWRITABLE, error)) from None
        for temporary, path in ready:
            try:
                temporary.replace(path)
            except OSError as error:
                raise ConfigError(_problem(path, UNWRITABLE, error)) from None
    finally:
        for temporary, _ in ready:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _write_beside(path: Path, text: str) -> Path:
    """A private temporary file in the same folder, synced to disk."""
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(PRIVATE)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _problem(path: Path, what: Phrase, error: OSError | UnicodeDecodeError) -> Problem:
    why = why_of(error) if isinstance(error, OSError) else NOT_UTF8.fill()
    is_read_only = isinstance(error, OSError) and error.errno == errno.EROFS  # a container's
    fix = OUTSIDE if is_read_only else PERMIT
    return Problem(str(path), what.fill(why=why), fix.fill())


# --- the text of a .env ---------------------------------------------------------------------------

# What is written there means the same to our own reader, to a shell-like `.env` reader, and to
# docker compose, which replaces `$NAME` unless the value stands in single quotes. python-dotenv
# reads the lines. Its `set_key` does not write them: it puts one name at a time into a file, drops
# the blank lines before it and the remark behind it, and switches nothing on that is commented out.

UNQUOTED = re.compile(r"[^\s#'\"`$\\]*")
REMARK = re.compile(r"[^\S\r\n]+#[^\r\n'\"]*$")


def fill_env(text: str, values: Mapping[str, str]) -> str:
    """The text with these values, each in the line that sets its name, else in the one that has it
    commented out, else at the end.

    An empty value is left out unless the name is already set. Raises ConfigError for a value that a
    `.env` cannot hold.
    """
    left = dict(values)
    text = _fill_set(text, left)
    text = _fill_commented(text, left)
    added = [_line(name, value) for name, value in left.items() if value]
    if added and text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{line}\n" for line in added)


def _fill_set(text: str, left: dict[str, str]) -> str:
    parts = []
    done = set()
    for binding in parse_stream(io.StringIO(text)):
        original = binding.original.string
        if binding.key in left:
            done.add(binding.key)
            before = original[: len(original) - len(original.lstrip())]
            remark = REMARK.search(original.rstrip())
            original = (
                f"{before}{_line(binding.key, left[binding.key])}{remark[0] if remark else ''}\n"
            )
        parts.append(original)
    for name in done:
        del left[name]
    return "".join(parts)


def _fill_commented(text: str, left: dict[str, str]) -> str:
    for name in [name for name, value in left.items() if value]:
        text, changed = re.subn(
            rf"^#[ \t]*{name}=.*$", _line(name, left[name]), text, count=1, flags=re.MULTILINE
        )
        if changed:
            del left[name]
    return text


def can_be_in_env(value: str) -> bool:
    """Whether every reader of a `.env` would read this value the same way."""
    return bool(UNQUOTED.fullmatch(value)) or not set(value) & set("'\\\r\n\0")


def _line(name: str, value: str) -> str:
    if UNQUOTED.fullmatch(value):
        return f"{name}={value}"
    if not can_be_in_env(value):
        raise ConfigError(Problem(name, NOT_FOR_ENV.fill(), CHOOSE_ANOTHER.fill()))
    return f"{name}='{value}'"


# --- what the OneBot servers read -----------------------------------------------------------------

# How to reach the bot, and with which token. NapCat reads `onebot11.json` until the account's own
# `onebot11_<qq>.json` exists, which it makes of it at the first login; it reads no environment.
# LLBot has `config_<qq>.json` only. Shapes: NapCat packages/napcat-onebot/config and NapCat-Docker
# entrypoint.sh (4.18), LLBot script/install-llbot-docker.sh (8.1).

Server = Literal["napcat", "llbot"]

BOT_URL = "ws://bot:6199/"
"""The bot's address in docker-compose.yml; any path is accepted."""

HEARTBEAT = 30_000  # ms
RECONNECT = 5_000  # ms
EVERYWHERE = "0.0.0.0"  # noqa: S104  # inside a container


@dataclass(frozen=True, slots=True)
class ServerLink:
    """How a server and the bot connect: `url` is the address that the dialling side (`mode`) dials.

    `token` is the one to write into files; a server with one of the `others` is accepted, too.
    """

    mode: Mode
    url: str
    token: str
    others: frozenset[str] = frozenset()

    @property
    def accepted(self) -> frozenset[str]:
        """Every token that is accepted."""
        return self.others | {self.token}

    @property
    def place(self) -> tuple[str | None, int | None]:
        """Host and port of the URL. Raises ValueError for an impossible one."""
        return _place(self.url)


def link_of(settings: Settings, *, bot_url: str = BOT_URL, account: int = 0) -> ServerLink:
    """The link that these settings describe; `bot_url` is the bot's address for a server that
    dials.

    It is that of `account`'s server; 0 if the account is unknown before the first login.
    """
    url = settings.onebot_url if settings.onebot_mode == "forward" else bot_url
    tokens = settings.access_tokens
    token = tokens.token_for(account)
    return ServerLink(settings.onebot_mode, url, token, frozenset(tokens.all) - {token})


def account_in(text: str) -> int:
    """The account that a variable names; 0 if it names none or several."""
    try:
        (number,) = qq_numbers(text)
    except ValueError:
        return 0
    return number


def write_onebot(link: ServerLink) -> str:
    """NapCat's `onebot11.json`: it dials the bot, or listens on all addresses of its container."""
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
    """NapCat's `webui.json`; in its container it must listen on all addresses to be published."""
    return _text({"host": EVERYWHERE, "port": 6099, "prefix": "", "token": token, "loginRate": 3})


def webui_token(text: str) -> str:
    """The password in a `webui.json`, or in a file that has only a password."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return str(found.get("token") or "") if isinstance(found, dict) else text.strip()


def write_llbot(link: ServerLink) -> str:
    """LLBot's `config_<qq>.json`, with the same meaning; an empty host means all addresses."""
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
    """The tokens with which such a file would make this link, whatever the link's own token;
    disabled connections do not count.

    Empty for a file in another format: its server reports that better than we can.
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
    """Whether a connection is that of a link. Only LLBot's connections have a type; the path does
    not matter.
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
