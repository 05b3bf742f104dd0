"""How the server treats a message from the bot: the segments it accepts, drops and refuses
(onebot.md 2, 4.2, 4.4).

The result is the message as events and get_msg show it afterwards: an image is then a name and a
size, without data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from adapters.simulator import wire
from adapters.simulator.wire import BAD_REQUEST, NOT_DONE, CallRefused, Json

EMPTY = "消息体无法解析, 请检查是否发送了不支持的消息类型"
MIXED = "转发消息不能和普通消息混在一起发送"
IGNORED = frozenset(
    {
        "xml",
        "poke",
        "location",
        "miniapp",
        "onlinefile",
        "flashtransfer",
        "markdown",
        "share",
        "forward",
    }
)
KEPT = frozenset({"text", "face", "mface", "json", "dice", "rps", "music", "contact"})
MEDIA = {"image": ".png", "record": ".amr", "video": ".mp4", "file": ""}


def read_segments(message: Any, *, auto_escape: bool = False) -> list[Json]:
    """Return the `message` of a call as a list of segments: from a string (with CQ codes), one
    segment, or a list.

    Raises CallRefused for anything else.
    """
    match message:
        case str() if auto_escape:
            return [{"type": "text", "data": {"text": message}}] if message else []
        case str():
            return wire.parse_cq(message)
        case dict():
            return read_segments([message])
        case list():
            return [_read_segment(segment) for segment in message]
        case _:
            raise CallRefused(BAD_REQUEST, "参数 message 缺失或不正确")


def _read_segment(segment: Any) -> Json:
    match segment:
        case {"type": str(), "data": dict()}:
            return dict(segment)
        case _:
            raise CallRefused(BAD_REQUEST, "参数 message 中有不正确的消息段")


def accept(segments: list[Json], *, in_group: bool, is_known: Callable[[int], bool]) -> list[Json]:
    """Return the segments as sent; `is_known` tells which messages may be quoted.

    Raises CallRefused for an unknown type, an unavailable medium, and an empty message.
    """
    accepted = [
        kept for segment in segments if (kept := _accept(segment, in_group, is_known)) is not None
    ]
    if not any(segment["type"] != "reply" for segment in accepted):
        raise CallRefused(NOT_DONE, EMPTY)
    return accepted


def _accept(segment: Json, in_group: bool, is_known: Callable[[int], bool]) -> Json | None:
    kind, data = segment["type"], segment["data"]
    match kind:
        case "text":
            return segment if str(data.get("text", "")) else None
        case "at":
            return {"type": "at", "data": {"qq": str(data.get("qq", ""))}} if in_group else None
        case "reply":
            quoted = str(data.get("id", ""))
            known = quoted.isascii() and quoted.isdigit() and is_known(int(quoted))
            return {"type": "reply", "data": {"id": quoted}} if known else None
        case "node":
            raise CallRefused(NOT_DONE, MIXED)
        case _ if kind in MEDIA:
            return {"type": kind, "data": _medium(kind, data)}
        case _ if kind in KEPT:
            return segment
        case _ if kind in IGNORED:
            return None
        case _:
            raise CallRefused(NOT_DONE, f"未知的消息类型：{kind}")


def _medium(kind: str, data: Json) -> Json:
    uri = str(data.get("url") or data.get("file") or data.get("path") or "")
    content = fetch(uri)
    digest = (
        hashlib.md5(uri.encode() if content is None else content, usedforsecurity=False)
        .hexdigest()
        .upper()
    )
    name = str(data.get("name") or "") or digest + MEDIA[kind]
    url = uri if content is None else ""
    size = str(len(content or b""))
    match kind:
        case "image":
            summary = str(data.get("summary") or "")
            sub_type = data.get("sub_type") or 0
            return {
                "summary": summary,
                "file": digest + MEDIA[kind],
                "sub_type": sub_type,
                "url": url,
                "file_size": size,
            }
        case "file":
            return {"file": name, "file_id": f"/{digest.lower()}", "file_size": size}
        case _:
            return {"file": name, "url": url, "path": "", "file_size": size}


def fetch(uri: str) -> bytes | None:
    """Return the bytes of `base64://`, `data:` or a local file; None for http(s), which is not
    checked.

    Raises CallRefused for anything else.
    """
    match uri.partition(":")[0]:
        case "http" | "https" if urlsplit(uri).netloc:
            return None
        case "base64":
            return _decode(uri, uri.removeprefix("base64://"))
        case "data":
            return _decode(uri, uri.partition(";base64,")[2])
        case "file":
            return _read_file(uri, url2pathname(urlsplit(uri).path))
        case _:
            return _read_file(uri, uri)


def _decode(uri: str, text: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if not content:
        raise _not_found(uri)
    return content


def _read_file(uri: str, name: str) -> bytes:
    path = Path(name)
    if not (path.is_absolute() and path.is_file()):
        raise _not_found(uri)
    return path.read_bytes()


def _not_found(uri: str) -> CallRefused:
    return CallRefused(NOT_DONE, f"文件下载失败, 识别URL失败, uri= {uri[:100]}")
