"""A message as the event that shows it to the bot."""

from __future__ import annotations

from typing import Any

from adapters.simulator import cq
from adapters.simulator.messages import Stored
from adapters.simulator.wire import Json
from adapters.simulator.world import World


def event_of(world: World, stored: Stored) -> Json:
    """The message as an event, `message_sent` if it is the account's own (onebot.md 3.1 and
    3.3).
    """
    own = stored.author == world.self_id
    segments = list(stored.segments)
    return {
        "self_id": world.self_id,
        "user_id": stored.author,
        "time": int(stored.time),
        "message_id": stored.message_id,
        **_numbers(world, stored),
        "message_type": "private" if stored.group_id is None else "group",
        "sender": _sender(world, stored),
        "raw_message": cq.write(segments),
        "font": 14,
        "sub_type": _sub_type(stored),
        "message": segments,
        "message_format": "array",
        "post_type": "message_sent" if own else "message",
        **_place(world, stored),
        **({"message_sent_type": "self"} if own else {}),
    }


def _numbers(world: World, stored: Stored) -> Json:
    """What the server tells of QQ's number of the message, besides the id."""
    if not world.app_name.startswith("NapCat"):
        return {"message_seq": stored.sequence}
    repeated = dict.fromkeys(("message_seq", "real_id"), stored.message_id)
    return {**repeated, "real_seq": str(stored.sequence)}


def _sub_type(stored: Stored) -> str:
    if stored.group_id is not None:
        return "normal"
    return "group" if stored.via_group else "friend"


def _sender(world: World, stored: Stored) -> Json:
    if stored.group_id is not None:
        person = world.groups[stored.group_id].members[stored.author]
        return {
            "user_id": person.user_id,
            "nickname": person.nickname,
            "card": person.card,
            "role": person.role,
        }
    known = world.person(stored.author)
    nickname = "临时会话" if stored.via_group else known.nickname if known else ""
    return {"user_id": stored.author, "nickname": nickname, "card": ""}


def _place(world: World, stored: Stored) -> Json:
    if stored.group_id is None:
        temporary: dict[str, Any] = (
            {"group_id": stored.via_group, "temp_source": 0} if stored.via_group else {}
        )
        return {"target_id": stored.peer_id, **temporary}
    place: dict[str, Any] = {"group_id": stored.group_id}
    if not world.app_name.startswith("Lagrange"):  # which tells it in its list of groups alone
        place["group_name"] = world.groups[stored.group_id].name
    if stored.author == world.self_id:
        place["target_id"] = stored.group_id
    return place
