"""Shared images, voice messages, files, cards and merged forwards, and the actions that open them.
Pure.

NapCat puts the messages of a nested forward into `content`; its own id opens nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapters.simulator import wire
from adapters.simulator.call import Action, Done, Params
from adapters.simulator.wire import BAD_REQUEST, NOT_DONE, CallRefused, Json
from adapters.simulator.world import World

HOST = "multimedia.nt.qq.com.cn"  # host of NapCat's images and files
INNER = "inner-"  # prefix of the ids of nested forwards
GONE = "消息已过期或者为内层消息，无法获取转发消息"


@dataclass(frozen=True, slots=True)
class Node:
    """A message of a merged forward: its author, and its segments or nested forward."""

    user_id: int
    name: str
    content: tuple[Json, ...] | Nodes = ()


Nodes: TypeAlias = list[Node]


def picture(name: str, *, sticker: bool = False, size: int = 4) -> Json:
    """An image on QQ's server."""
    return _segment(
        "image",
        summary="[动画表情]" if sticker else "",
        file=name,
        sub_type=int(sticker),
        url=f"https://{HOST}/{name}",
        file_size=str(size),
    )


def own_picture(world: World, name: str, content: bytes) -> Json:
    """An image that only `get_image` returns."""
    world.contents[name] = content
    return _segment("image", summary="", file=name, sub_type=0, file_size=str(len(content)))


def voice(world: World, name: str, sound: bytes) -> Json:
    """A voice message; `get_record` returns `sound` for it."""
    world.contents[name] = sound
    return _segment(
        "record",
        file=name,
        path=f"/app/.config/QQ/{name}",
        url=f"https://{HOST}/{name}",
        file_size=str(len(sound)),
    )


def file(
    world: World, name: str, content: bytes, *, size: int | None = None, file_id: str = ""
) -> Json:
    """A file; `size` is the announced one, by default the real one. The id is by default the
    name.
    """
    key = file_id or name
    world.contents[key] = content
    told = len(content) if size is None else size
    return _segment("file", file=name, file_id=f"/{key}", file_size=str(told))


def card(title: str, description: str = "", url: str = "") -> Json:
    """A card, as other apps share one into QQ."""
    news = {"title": title, "desc": description, "jumpUrl": url}
    told = {
        "app": "com.tencent.tuwen.lua",
        "prompt": f"[分享]{title}",
        "view": "news",
        "meta": {"news": news},
    }
    return _segment("json", data=json.dumps(told, ensure_ascii=False))


def forward(world: World, nodes: Sequence[Node]) -> Json:
    """A merged forward that `get_forward_msg` finds."""
    shown = [_shown(world, node) for node in nodes]
    return _segment("forward", id=world.add_forward(shown))


def _shown(world: World, node: Node) -> Json:
    """A message of a forward as NapCat shows it."""
    match node.content:
        case list(inner):
            messages = [_shown(world, each) for each in inner]
            number = sum(map(_counted, inner))
            segments = [_segment("forward", id=f"{INNER}{number}", content=messages)]
        case content:
            segments = list(content)
    return {
        "self_id": world.self_id,
        "user_id": node.user_id,
        "time": int(world.now()),
        "message_id": 0,
        "message_type": "group",
        "sender": {"user_id": node.user_id, "nickname": node.name, "card": ""},
        "raw_message": wire.format_cq(segments),
        "font": 14,
        "sub_type": "normal",
        "message": segments,
        "message_format": "array",
        "post_type": "message",
        "group_id": 284840486,  # NapCat's number for an unknown group
    }


def _counted(node: Node) -> int:
    return 1 + sum(map(_counted, node.content)) if isinstance(node.content, list) else 1


def _segment(kind: str, **data: object) -> Json:
    return {"type": kind, "data": data}


# --- the actions ----------------------------------------------------------------------------------


def get_forward_msg(world: World, params: Params) -> Done:
    """By the forward's id, or by that of its message."""
    asked = str(params.get("id") or params.get("message_id") or "")
    if asked.isdecimal() and world.messages.knows(int(asked)):
        inside = (
            segment["data"]["id"]
            for segment in world.messages.find(int(asked)).segments
            if segment["type"] == "forward"
        )
        asked = str(next(inside, ""))
    if asked not in world.forwards:
        raise CallRefused(NOT_DONE, GONE)
    return Done({"messages": world.forwards[asked]})


def get_file(world: World, params: Params) -> Done:
    """An image, voice message or file of a message by name: a path inside the server's container.

    This is NapCat's default, without `enableLocalFile2Url` (onebot.md 4.5). Media shared here with
    content returns it, as with that setting.
    """
    name = str(params.get("file") or params.get("file_id") or "")
    if not name:
        raise CallRefused(BAD_REQUEST, "参数 file 缺失或不正确")
    medium = world.messages.medium(name)
    kept = str(medium.get("file") or name)
    path = f"/app/.config/QQ/{kept}"
    found = {
        "file": path,
        "url": medium.get("url") or path,
        "file_size": str(medium.get("file_size") or 0),
        "file_name": kept,
    }
    return Done(found | _content(world, kept))


def get_file_url(world: World, params: Params) -> Done:
    """The URL of a shared file; with its content, because the URL serves nothing."""
    medium = world.messages.medium(str(params.get("file_id")))
    key = str(medium.get("file_id") or medium["file"]).removeprefix("/")
    return Done({"url": f"https://{HOST}/{key}", **_content(world, key)})


def _content(world: World, name: str) -> Json:
    content = world.contents.get(name)
    return {} if content is None else {"base64": base64.b64encode(content).decode()}


ACTIONS: dict[str, Action] = {
    "get_forward_msg": get_forward_msg,
    "get_image": get_file,
    "get_record": get_file,
    "get_file": get_file,
    "get_group_file_url": get_file_url,
    "get_private_file_url": get_file_url,
}
