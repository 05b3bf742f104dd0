"""Typed text -> values: each function takes a text (or a value already), and reports what is wrong
with it.

All raise `Wrong`. No message quotes a URL or a secret, because keys get pasted anywhere.
"""

from __future__ import annotations

import base64
import binascii
import errno
import ipaddress
import json
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from bot.core.language import Bilingual, Language, Phrase

SEPARATORS = re.compile(r"[\s,，、;；]+")
DOUBLE, SINGLE = "“”„‟＂〝〞", "‘’‚‛＇"
QUOTES = ('"', "'", DOUBLE, SINGLE, "「」", "『』")
"""Quotation marks around a value, by kind: a Chinese keyboard may type either one of a pair."""
WIDE_QUOTES = QUOTES[2:]
ITEM = re.compile(
    rf'"[^"]*"|[{DOUBLE}][^{DOUBLE}]*[{DOUBLE}]|‘[^‘’]*’|「[^「」]*」|『[^『』]*』|[^\s,，、;；]+'
)
HALVES = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: " ", ord("。"): "."}
NOT_JSON = frozenset(f"{DOUBLE}：，｛｝［］")
# A DNS name: labels of 63 characters, 253 in all (RFC 1035); Docker allows _.
HOST = re.compile(r"(?!-|.{254})[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*(?<!-)")
QQ_NUMBER = re.compile(r"[0-9]{1,18}")  # fits into 64 bits
DATABASE = re.compile(r"(sqlite|postgres|postgresql)(\+[a-z0-9_]+)?://.+")
ED25519 = bytes.fromhex("302e020100300506032b657004220420")
"""The prefix of a 32-byte key (RFC 8410 section 7)."""
CHAT_PATH = "/chat/completions"
AUDIENCES = ("everyone", "group_admin", "owner")
MAX_CONTEXT = 100_000_000  # tokens
SYSTEM: Final[Mapping[int, Phrase]] = {
    errno.ENOENT: Phrase("没有这个文件", "No such file or directory"),
    errno.ENOTDIR: Phrase("路径里有一段不是目录", "Not a directory"),
    errno.EISDIR: Phrase("是目录", "Is a directory"),
    errno.EACCES: Phrase("没有权限", "Permission denied"),
    errno.EPERM: Phrase("没有权限", "Operation not permitted"),
    errno.ELOOP: Phrase("符号链接绕成了圈", "Too many levels of symbolic links"),
    errno.ENAMETOOLONG: Phrase("文件名太长", "File name too long"),
    errno.EIO: Phrase("磁盘读写出错", "Input/output error"),
    errno.ENOSPC: Phrase("磁盘满了", "No space left on device"),
    errno.EROFS: Phrase("这里只能读", "Read-only file system"),
}
"""What the system says, by its number."""
OTHER_NUMBER: Final = Phrase("错误号 {number}", "error {number}")
IN_BRACKETS: Final = Phrase("（{why}）", "({why})")
NEAR_JSON: Final = Phrase("（第 {line} 行第 {column} 个字附近）", "line {line} column {column}")
LIKE_A_KEY = re.compile(r"\bsk-[\w-]+|[\w+=~-]{16,}", re.ASCII)


class Wrong(ValueError):
    """An unusable value: `what` is wrong, and the remedy `fix`."""

    def __init__(self, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix
        super().__init__(f"{what}. {fix}")


def why_unreadable(error: OSError) -> Bilingual:
    """What the system says of a file that cannot be read, in brackets."""
    return IN_BRACKETS.fill(why=why_of(error))


def why_of(error: OSError) -> Bilingual:
    """What the system says is wrong with a file."""
    if (said := SYSTEM.get(error.errno or 0)) is not None:
        return said.fill()
    zh = OTHER_NUMBER.format(Language.CHINESE, number=error.errno)
    return Bilingual(str(error.strerror), zh)


def shown(value: object) -> str:
    """A value for messages: at most 40 characters, masking what may be a misplaced key."""
    text = LIKE_A_KEY.sub("***", str(value))
    return f"“{text if len(text) <= 40 else text[:39] + '…'}”"


def shown_path(path: Path) -> str:
    """A path for messages: whole, unless it is a bare name that may be a key."""
    is_file = len(path.parts) > 1 or path.suffix in {".md", ".toml", ".txt"}
    return str(path) if is_file else LIKE_A_KEY.sub("***", str(path))


# --- as a Chinese keyboard types it ---------------------------------------------------------------


def without_quotes(text: str, *, quotes: Iterable[str] = QUOTES) -> str:
    """Strip spaces and one pair of quotation marks around the whole text; inner ones stay."""
    text = text.strip()
    for marks in quotes:
        is_quoted = len(text) >= 2 and text[0] in marks and text[-1] in marks
        if is_quoted and not set(marks) & set(text[1:-1]):
            return text[1:-1].strip()
    return text


def check_quotes(text: str) -> str:
    """Return the text. Raises `Wrong` if it begins or ends with a full-width quotation mark without
    its other half, since the end of the value is unclear then.
    """
    for marks in WIDE_QUOTES:
        lone = [letter for letter in text if letter in marks]
        if marks != SINGLE and len(lone) == 1 and lone[0] in {text[0], text[-1]}:
            raise Wrong(
                Bilingual(f"has a {lone[0]} at one end only", f"只有一头有 {lone[0]}"),
                Bilingual(
                    "Write it without quotes, or between two plain ones",
                    "不要写引号，或者两头都写英文引号",
                ),
            )
    return text


def to_half_width(text: str) -> str:
    """Convert full-width characters to ASCII and strip spaces; for values that are ASCII."""
    return text.translate(HALVES).strip()


# --- lists ----------------------------------------------------------------------------------------


def names(value: object) -> tuple[str, ...]:
    """The items of a list separated by commas or spaces (also Chinese commas, and quoted items), or
    of a JSON list: in order, without duplicates.
    """
    return tuple(dict.fromkeys(text for item in _items(value) if (text := str(item).strip())))


def qq_numbers(value: object) -> frozenset[int]:
    texts = [to_half_width(text) for text in names(value)]
    for text in texts:
        if not (QQ_NUMBER.fullmatch(text) and int(text) > 0):
            raise Wrong(
                Bilingual(f"{shown(text)} is not a QQ number", f"{shown(text)} 不是 QQ 号"),
                Bilingual("Write only the numbers, e.g. 10001,10002", "只写号码，比如 10001,10002"),
            )
    return frozenset(map(int, texts))


def _items(value: object) -> Iterable[object]:
    if not isinstance(value, str):
        return value if isinstance(value, Iterable) else (value,)
    if not value.lstrip().startswith("["):
        return [check_quotes(without_quotes(item)) for item in ITEM.findall(value)]
    fix = Bilingual('Write it as a, b or as ["a", "b"]', '写成 a, b 或 ["a", "b"]')
    items = _json(value, fix)
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in items):
        raise Wrong(
            Bilingual(
                "has an item that is neither text nor a number", "有一项既不是文字也不是数字"
            ),
            fix,
        )
    return list(items)


def _json(text: str, fix: Bilingual) -> list[object] | dict[str, object]:
    try:
        found: list[object] | dict[str, object] = json.loads(text)
    except ValueError as error:
        marks, place = wide_marks(text), ""
        if isinstance(error, json.JSONDecodeError):
            place = NEAR_JSON.fill(line=error.lineno, column=error.colno).zh
        raise Wrong(
            Bilingual(f"is not good JSON ({error}){marks}", f"不是正确的 JSON{place}{marks.zh}"),
            fix,
        ) from None
    return found


def wide_marks(text: str) -> Bilingual:
    """The likely reason why JSON is invalid, to append to a message; else empty."""
    if NOT_JSON.isdisjoint(text):
        return Bilingual("", "")
    return Bilingual(
        "; it has full-width quotes, commas or colons, which JSON does not accept",
        "；里面有中文的引号、逗号或冒号，JSON 只认英文的",
    )


# --- addresses ------------------------------------------------------------------------------------


def base_url(value: str) -> str:
    """The base of an OpenAI-compatible API, without a trailing slash or /chat/completions."""
    fix = Bilingual("Write it as https://api.example.com/v1", "写成 https://api.example.com/v1")
    text = to_half_width(value).rstrip("/").removesuffix(CHAT_PATH).rstrip("/")
    if text:
        _url(text, schemes=("https", "http"), fix=fix)
        if "?" in text or "#" in text:
            raise Wrong(Bilingual("has a ? or # in it", "里面有 ? 或 #"), fix)
    return text


def socket_url(value: str) -> str:
    fix = Bilingual("Write it as ws://127.0.0.1:3001", "写成 ws://127.0.0.1:3001")
    text = to_half_width(value)
    if text:
        url = _url(text, schemes=("ws", "wss"), fix=fix)
        if "access_token=" in url.query:
            raise Wrong(
                Bilingual("has an access token in it", "里面有访问令牌"),
                Bilingual(
                    "Put the token in ONEBOT_ACCESS_TOKEN, where it is kept secret",
                    "把令牌放进 ONEBOT_ACCESS_TOKEN，那里会保密",
                ),
            )
    return text


def origin(value: str) -> str:
    """The console's address for browsers: scheme, host, optionally port and path."""
    fix = Bilingual(
        "Write it as https://bot.example.com or https://example.com/bot",
        "写成 https://bot.example.com 或 https://example.com/bot",
    )
    text = to_half_width(value).rstrip("/")
    if text:
        url = _url(text, schemes=("https", "http"), fix=fix)
        if "?" in text or "#" in text or "@" in url.netloc:
            raise Wrong(Bilingual("has a ?, a # or an @ in it", "里面有 ?、# 或 @"), fix)
        if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", url.path):
            raise Wrong(
                Bilingual(
                    "has a path that cannot begin our addresses",
                    "里面的路径有不能用的字符",
                ),
                fix,
            )
    return text


def mirrors(value: object) -> dict[str, str]:
    """A JSON object of host -> base URL: {"api.example.com": "https://mirror.example.net/api"}."""
    fix = Bilingual(
        'Write it as {"api.example.com": "https://mirror.example.net"}',
        '写成 {"api.example.com": "https://mirror.example.net"}',
    )
    found = _json(value, fix) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
        raise Wrong(Bilingual("is not a JSON object", "不是 JSON 对象"), fix)
    for host, url in found.items():
        if not (isinstance(host, str) and HOST.fullmatch(host)):
            raise Wrong(Bilingual(f"{shown(host)} is not a host", f"{shown(host)} 不是域名"), fix)
        if not (isinstance(url, str) and url):
            raise Wrong(Bilingual(f"{host} has no URL as text", f"{host} 没有写网址"), fix)
        _url(url, schemes=("https", "http"), fix=fix)
    return {host.lower(): url.rstrip("/") for host, url in found.items()}


def sites(value: object) -> tuple[str, ...]:
    """The hosts of a list, in lower case and without `www.`."""
    found = [to_half_width(name).lower().removeprefix("www.") for name in names(value)]
    for site in found:
        if not (HOST.fullmatch(site) and "." in site):
            raise Wrong(
                Bilingual(f"{shown(site)} is not a host", f"{shown(site)} 不是域名"),
                Bilingual(
                    "Write only hosts, e.g. bilibili.com,github.com",
                    "只写域名，比如 bilibili.com,github.com",
                ),
            )
    return tuple(dict.fromkeys(found))


def audiences(value: object) -> dict[str, str]:
    """A JSON object of tool -> audience, as in {"get_weather": "group_admin"}."""
    fix = Bilingual(
        'Write it as {"get_weather": "group_admin"}; the values are everyone, group_admin and'
        " owner",
        '写成 {"get_weather": "group_admin"}，可以写 everyone、group_admin 和 owner',
    )
    found = _json(value, fix) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
        raise Wrong(Bilingual("is not a JSON object", "不是 JSON 对象"), fix)
    for name, audience in found.items():
        if audience not in AUDIENCES:
            tool, whom = shown(str(name)), shown(str(audience))
            raise Wrong(
                Bilingual(
                    f"{tool} is for {whom}, which is not an audience",
                    f"{tool} 写的是给 {whom} 用，没有这种人",
                ),
                fix,
            )
    return {str(name): audience for name, audience in found.items()}


def host(value: str) -> str:
    """A name or an address to listen on, without scheme, port and brackets of IPv6."""
    text = bare(to_half_width(value))
    if not (_is_address(text) or HOST.fullmatch(text)):
        fix = Bilingual(
            "Write an address only, e.g. 0.0.0.0 or 127.0.0.1; the port has its own variable",
            "只写地址，比如 0.0.0.0 或 127.0.0.1；端口另有一项",
        )
        raise Wrong(
            Bilingual(
                f"{shown(value)} is not an address to listen on",
                f"{shown(value)} 不是可以监听的地址",
            ),
            fix,
        )
    return text


def bare(text: str) -> str:
    """An IPv6 address without brackets; any other text unchanged."""
    return text[1:-1] if re.fullmatch(r"\[[^\[\]]*:[^\[\]]*\]", text) else text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _url(text: str, *, schemes: tuple[str, ...], fix: Bilingual) -> SplitResult:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise Wrong(
            Bilingual(
                "has a space or a character that is not allowed in a URL",
                "里面有空格或网址里不能有的字符",
            ),
            fix,
        )
    try:
        url = urlsplit(text)
        _ = url.port  # raises for an invalid port
    except ValueError:
        raise Wrong(
            Bilingual("has an impossible address or port", "里面的地址或端口不对"), fix
        ) from None
    if url.scheme not in schemes:
        begins = [f"{scheme}://" for scheme in schemes]
        raise Wrong(
            Bilingual(
                f"does not begin with {' or '.join(begins)}", f"开头不是 {' 或 '.join(begins)}"
            ),
            fix,
        )
    if not url.hostname:
        raise Wrong(Bilingual("has no host", "没有域名"), fix)
    if not (_is_address(url.hostname) or HOST.fullmatch(url.hostname.removesuffix("."))):
        raise Wrong(
            Bilingual(
                "has an impossible host name (two dots in a row, or over 63 characters"
                " between two?)",
                "里面的域名不对（连着两个点，或者两点之间超过 63 个字符？）",
            ),
            fix,
        )
    if url.username is not None:
        raise Wrong(
            Bilingual("has a name or password before the host", "域名前面有用户名或密码"),
            Bilingual(
                "Put keys and tokens in the variables made for them",
                "密钥和令牌写到各自的配置项里",
            ),
        )
    return url


def database(value: SecretStr) -> SecretStr:
    """A database's URL, checked further by the storage. Never shown: it may hold a password."""
    if not DATABASE.fullmatch(value.get_secret_value()):
        fix = Bilingual(
            "Write it as sqlite+aiosqlite:///data/frostagent.db or "
            "postgresql://user:password@host/database",
            "写成 sqlite+aiosqlite:///data/frostagent.db 或 postgresql://user:password@host/database",
        )
        raise Wrong(
            Bilingual(
                "is not the URL of an SQLite or PostgreSQL database",
                "不是 SQLite 或 PostgreSQL 的地址",
            ),
            fix,
        )
    return value


def api_host(value: str) -> str:
    """The host of an API; a pasted https:// and slash are removed."""
    text = to_half_width(value).removeprefix("https://").removesuffix("/").lower()
    if text and not (HOST.fullmatch(text) and "." in text):
        raise Wrong(
            Bilingual(f"{shown(value)} is not the name of a host", f"{shown(value)} 不是域名"),
            Bilingual(
                "Write it as abc1234xyz.def.qweatherapi.com", "写成 abc1234xyz.def.qweatherapi.com"
            ),
        )
    return text


def contact(value: str) -> str:
    """How to reach the operator; used in an HTTP header, inside brackets."""
    if not (value.isascii() and value.isprintable()) or set(value) & set("()") or len(value) > 100:
        raise Wrong(
            Bilingual(
                "has a bracket or a character that is not ASCII, or is longer than 100 characters",
                "里面有括号或非 ASCII 字符，或者超过 100 个字符",
            ),
            Bilingual(
                "Write a mail address or the address of a page, e.g. bot@example.com",
                "写邮箱或网页地址，比如 bot@example.com",
            ),
        )
    return value


# --- everything else ------------------------------------------------------------------------------


def secret(value: SecretStr) -> SecretStr:
    """A key or token; used in an HTTP header, so it is one word of ASCII."""
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise Wrong(
            Bilingual(
                "has a space, a line break or a character that is not ASCII",
                "里面有空格、换行或非 ASCII 字符",
            ),
            Bilingual("Copy it again, without “Bearer”", "重新复制一次，不要带“Bearer”"),
        )
    return value


def ed25519_key(value: SecretStr) -> SecretStr:
    """An Ed25519 private key (PKCS #8), from PEM with or without its outer lines, as base64."""
    lines = re.sub(r"-----[A-Z ]+-----", "", value.get_secret_value().replace("\\n", "\n"))
    text = "".join(lines.split())
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if text and not (key.startswith(ED25519) and len(key) == len(ED25519) + 32):
        fix = Bilingual(
            "Write the line between BEGIN and END in the file made by `openssl genpkey"
            " -algorithm ED25519`",
            "写 `openssl genpkey -algorithm ED25519` 生成的文件里 BEGIN 和 END 之间的那一行",
        )
        raise Wrong(Bilingual("is not an Ed25519 private key", "不是 Ed25519 私钥"), fix)
    return SecretStr(text)


def keys(value: SecretStr) -> SecretStr:
    """One key, several separated by commas, or a JSON list; returned without spaces."""
    text = value.get_secret_value()
    if not text.lstrip().startswith("["):
        items: Iterable[object] = re.split("[,，]", text)
    else:
        try:
            items = _items(text)
        except Wrong as error:  # the parser may quote part of a key
            raise Wrong(
                Bilingual("is not a good JSON list of keys", "不是正确的 JSON 密钥列表"), error.fix
            ) from None
    found = dict.fromkeys(filter(None, (str(item).strip() for item in items)))
    return SecretStr(",".join(secret(SecretStr(key)).get_secret_value() for key in found))


@dataclass(frozen=True, slots=True)
class Whole:
    """Reads an integer in [low, high]."""

    low: int
    high: int

    def __call__(self, value: object) -> int:
        text = to_half_width(str(value))
        fix = Bilingual(
            f"Write a number from {self.low} to {self.high}",
            f"写 {self.low} 到 {self.high} 的整数",
        )
        if "://" in text:  # Kubernetes sets NAME_PORT=tcp://... for a service called NAME
            raise Wrong(
                Bilingual("is a URL, not a number", "是网址，不是数字"),
                Bilingual(
                    f"{fix}; in Kubernetes set enableServiceLinks: false for the pod",
                    f"{fix.zh}；在 Kubernetes 里给这个 pod 设 enableServiceLinks: false",
                ),
            )
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise Wrong(
                Bilingual(f"{shown(text)} is not a whole number", f"{shown(text)} 不是整数"), fix
            )
        if not self.low <= int(text) <= self.high:
            raise Wrong(Bilingual(f"{text} is out of range", f"{text} 超出了范围"), fix)
        return int(text)


@dataclass(frozen=True, slots=True)
class Number:
    """Reads a number in [low, high]."""

    low: float
    high: float

    def __call__(self, value: object) -> float:
        text = to_half_width(str(value))
        fix = Bilingual(
            f"Write a number from {self.low:.12g} to {self.high:.12g}",
            f"写 {self.low:.12g} 到 {self.high:.12g} 的数字",
        )
        if not re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", text):
            raise Wrong(
                Bilingual(f"{shown(text)} is not a number", f"{shown(text)} 不是数字"),
                Bilingual(f"{fix}, as 0.5", f"{fix.zh}，比如 0.5"),
            )
        if not self.low <= float(text) <= self.high:
            raise Wrong(Bilingual(f"{text} is out of range", f"{text} 超出了范围"), fix)
        return float(text)


def rate(value: object) -> tuple[int, float] | None:
    """N in M seconds, written as 6/60; None for 0, which is no limit."""
    if value is None or isinstance(value, tuple):
        return value
    text = to_half_width(str(value)).replace(" ", "")
    if text == "0":
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", text)
    if found is None:
        fix = Bilingual(
            "Write a number per seconds, e.g. 6/60, or 0 for no limit",
            "写多少秒里多少次，比如 60 秒 6 次写成 6/60；不限就写 0",
        )
        raise Wrong(Bilingual(f"{shown(value)} is not a rate", f"{shown(value)} 不是频率"), fix)
    return int(found[1]), float(found[2])


class OneOf:
    """Reads one of these words in any case ("": may be omitted); `spellings` are alternatives."""

    def __init__(self, *choices: str, **spellings: str) -> None:
        self.choices = tuple(filter(None, choices))
        self._folded = {choice.casefold(): choice for choice in choices}
        self._spellings = spellings

    def __call__(self, value: object) -> str:
        folded = to_half_width(str(value)).casefold()
        meant = self._spellings.get(folded, folded).casefold()
        if meant in self._folded:
            return self._folded[meant]
        there = ", ".join(self.choices)
        raise Wrong(
            Bilingual(f"{shown(value)} is not one of the choices", f"不能写 {shown(value)}"),
            Bilingual(f"Write one of: {there}", f"写其中一个：{there}"),
        )


def switch(value: object) -> bool:
    """On or off: 1 or 0, and common words for them."""
    match to_half_width(str(value)).casefold():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off":
            return False
        case _:
            raise Wrong(
                Bilingual(
                    f"{shown(value)} is neither on nor off", f"{shown(value)} 看不出是开还是关"
                ),
                Bilingual("Write 1 for on or 0 for off", "开写 1，关写 0"),
            )


def path(value: object) -> Path:
    """A file or folder; `~` is the home folder."""
    try:
        return Path(str(value)).expanduser()
    except RuntimeError:
        raise Wrong(
            Bilingual(
                "begins with ~, but there is no home folder", "以 ~ 开头，但没有对应的主目录"
            ),
            Bilingual("Write the whole path", "写完整的路径"),
        ) from None


def broker_url(value: SecretStr) -> SecretStr:
    """The URL of RabbitMQ. It may hold a password, so it is never shown. Empty if there is none."""
    text = value.get_secret_value()
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in {"amqp", "amqps"} and bool(parts.hostname)
    except ValueError:
        is_one = False
    if text and not is_one:
        raise Wrong(
            Bilingual("is not the URL of a RabbitMQ", "不是 RabbitMQ 的地址"),
            Bilingual("Write it as amqp://user:password@host/", "写成 amqp://user:password@host/"),
        )
    return value


HERE: Final = "{hostname}"
PAGE: Final = "/media"  # of WEB_PORT (`adapters/web/file_route`)
MEDIA_REMEDY: Final = Bilingual(
    "Write it as http://bot:8080/media: the address at which OneBot servers reach /media of"
    " WEB_PORT",
    "写成 http://bot:8080/media，即 OneBot 服务访问 WEB_PORT 的 /media 时用的地址",
)


def media_url(value: str) -> str:
    """The address; `{hostname}` in it is this machine's name, so that one line fits several
    machines. Empty if there is none.
    """
    text = to_half_width(value).replace(HERE, socket.gethostname()).rstrip("/")
    try:
        origin(text)
    except Wrong as wrong:
        raise Wrong(wrong.what, MEDIA_REMEDY) from None
    if text and not text.endswith(PAGE):
        raise Wrong(Bilingual(f"does not end in {PAGE}", f"结尾不是 {PAGE}"), MEDIA_REMEDY)
    return text


PROXY_REMEDY: Final = Bilingual(
    "Write the one address that the proxy connects from, e.g. 127.0.0.1",
    "只写代理连过来时用的那个地址，比如 127.0.0.1",
)
EVERYBODY: Final = IPv4Address("255.255.255.255")


def proxy_address(value: str) -> str:
    """One machine's address in its shortest form, mapped IPv4 as IPv4; empty if there is none."""
    text = bare(to_half_width(value))
    if not text:
        return text
    try:
        found = ip_address(text)
    except ValueError:
        raise Wrong(
            Bilingual(f"{shown(value)} is not an address", f"{shown(value)} 不是 IP 地址"),
            PROXY_REMEDY,
        ) from None
    if "%" in text:  # sockets do not report it for a peer
        raise Wrong(
            Bilingual(f"{shown(value)} names a network interface", f"{shown(value)} 带了网卡名"),
            Bilingual("Remove the % and all that follows", "去掉 % 和后面的部分"),
        )
    named = found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
    if named.is_unspecified or named.is_multicast or named == EVERYBODY:
        raise Wrong(
            Bilingual(
                f"{shown(value)} is not the address of one machine",
                f"{shown(value)} 不是某一台机器的地址",
            ),
            PROXY_REMEDY,
        )
    return str(named)


DAY = 24 * 60  # minutes
SPAN = re.compile(r"([0-9]{1,2}):([0-5][0-9])-([0-9]{1,2}):([0-5][0-9])")
AROUND_DASH = re.compile(r"\s*[-–—~～至到]\s*")  # as people type it
TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
NEVER = frozenset({"0", "off"})
HOURS_REMEDY = Bilingual("Write it as 23:30-07:30", "写成 23:30-07:30")
RULE = re.compile(r"(<[^>]+>|[A-Za-z]{3,})[+-]?[0-9].*")  # CST-8: needs no time zone database


def hours(value: object) -> tuple[tuple[int, int], ...]:
    """Spans of the day, `23:30-07:30, 12:00-13:30`, as start and end in minutes since midnight."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, str):
        raise Wrong(_no_hours(value), HOURS_REMEDY)
    return tuple(
        _span(text) for text in SEPARATORS.split(AROUND_DASH.sub("-", to_half_width(value))) if text
    )


def _span(text: str) -> tuple[int, int]:
    found = SPAN.fullmatch(text)
    if found is None:
        raise Wrong(_no_hours(text), HOURS_REMEDY)
    first, second, third, fourth = map(int, found.groups())
    begins, ends = first * 60 + second, third * 60 + fourth
    if max(begins, ends) > DAY or begins % DAY == ends % DAY:
        raise Wrong(
            Bilingual(
                f"{shown(text)} is not a part of a day", f"{shown(text)} 不是一天里的一段时间"
            ),
            HOURS_REMEDY,
        )
    return begins % DAY, ends % DAY


def _no_hours(value: object) -> Bilingual:
    return Bilingual(f"{shown(value)} is not a time of day", f"{shown(value)} 不是时间段")


def time_of_day(value: object) -> float | None:
    """A time of day, 09:00, in seconds after midnight; None for 0, which is never."""
    if value is None or isinstance(value, float):
        return value
    text = to_half_width(str(value))
    if text.casefold() in NEVER:
        return None
    if not (found := TIME.fullmatch(text)):
        raise Wrong(
            Bilingual(f"{shown(text)} is not a time of day", f"{shown(text)} 不是时刻"),
            Bilingual("Write it as 09:00, or 0 for never", "写成 09:00；不要就写 0"),
        )
    return 3600.0 * int(found[1]) + 60.0 * int(found[2])


def clock_time(value: object) -> str:
    """A time of day as `09:00`; empty for 0 or off, which is never."""
    if value == "" or (at := time_of_day(value)) is None:
        return ""
    return f"{int(at) // 3600:02}:{int(at) % 3600 // 60:02}"


def zone(value: str) -> str:
    """A time zone in TZ's format. The C library would silently take invalid text for UTC."""
    text = to_half_width(value)
    name = text.removeprefix(":")
    is_file = name.startswith("/") and Path(name).is_file()
    if not name or name == "UTC" or RULE.fullmatch(name) or is_file:
        return text
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise Wrong(
            Bilingual(f"{shown(text)} is not a time zone", f"{shown(text)} 不是时区"),
            Bilingual("Write it as Asia/Shanghai", "写成 Asia/Shanghai"),
        ) from None
    return text


# --- owners ---------------------------------------------------------------------------------------


QUIET = ":quiet"


class Owners(frozenset[int]):
    """The owners' QQ numbers; `quiet` are those who get no alarms. Frozen."""

    quiet: frozenset[int]

    def __new__(cls, owners: Iterable[int] = (), quiet: Iterable[int] = ()) -> Self:
        made = super().__new__(cls, owners)
        made.quiet = frozenset(quiet)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (frozenset(self), self.quiet)


def owners(value: object) -> Owners:
    """QQ numbers, each optionally followed by `:quiet`."""
    if isinstance(value, Owners):
        return value
    texts = [to_half_width(text).casefold() for text in names(value)]
    quiet = [text.removesuffix(QUIET) for text in texts if text.endswith(QUIET)]
    if odd := next((text for text in texts if ":" in (text.removesuffix(QUIET) or ":")), ""):
        raise Wrong(
            Bilingual(f"{shown(odd)} is not an owner", f"{shown(odd)} 不是主人的写法"),
            Bilingual(
                "Write the numbers, e.g. 10001,10002:quiet", "写 QQ 号，比如 10001,10002:quiet"
            ),
        )
    return Owners(qq_numbers([text.removesuffix(QUIET) for text in texts]), qq_numbers(quiet))
