"""The actions the bot can call, a small function each. No sockets.

Parameters and results are NapCat's (onebot.md 2 and 5): ids may be numbers or strings; missing or
invalid parameters are refused with 1400, impossible actions with 1200.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from adapters.simulator import outgoing, shared_media, wire
from adapters.simulator.call import Action, Call, CallAnswer, Done, Gesture, Params, SentMessage
from adapters.simulator.outgoing import read_segments
from adapters.simulator.wire import BAD_REQUEST, NO_SUCH_ACTION, NOT_DONE, CallRefused, Json
from adapters.simulator.world import Group, Person, Stored, World, event_of, other_id

RESULT = {"result": 0, "errMsg": ""}


def set_msg_emoji_like(world: World, params: Params) -> Done:
    """Add a reaction, or remove it if `set` is false."""
    taken_back = params.get("set") in (False, "false")
    return _react(world, params, emoji="emoji_id", taken_back=taken_back)


def unset_msg_emoji_like(world: World, params: Params) -> Done:
    """LLBot's name for removing a reaction."""
    return _react(world, params, emoji="emoji_id", taken_back=True)


def set_group_reaction(world: World, params: Params) -> Done:
    """A reaction in Lagrange's form."""
    world.group(params.number("group_id"))
    taken_back = params.get("is_add") in (False, "false")
    return _react(world, params, emoji="code", taken_back=taken_back)


def _react(world: World, params: Params, *, emoji: str, taken_back: bool) -> Done:
    stored = world.messages.find(params.number("message_id"))
    if not params.has(emoji):
        raise CallRefused(BAD_REQUEST, f"参数 {emoji} 缺失或不正确")
    gesture = Gesture(
        "reaction",
        user_id=stored.author,
        group_id=stored.group_id,
        message_id=stored.message_id,
        emoji_id=str(params.get(emoji)),
        taken_back=taken_back,
    )
    return Done(RESULT, gesture=gesture)


def send_poke(world: World, params: Params) -> Done:
    """The account receives its own poke too."""
    target = params.number("user_id")
    group_id = world.group(params.number("group_id")).group_id if params.has("group_id") else None
    event = wire.poke(
        world.self_id, world.now(), user_id=world.self_id, target_id=target, group_id=group_id
    )
    return Done(events=(event,), gesture=Gesture("poke", user_id=target, group_id=group_id))


def set_input_status(_world: World, params: Params) -> Done:
    return Done(RESULT, gesture=Gesture("typing", user_id=params.number("user_id")))


GESTURES: dict[str, Action] = {
    "set_msg_emoji_like": set_msg_emoji_like,
    "unset_msg_emoji_like": unset_msg_emoji_like,
    "set_group_reaction": set_group_reaction,
    "send_poke": send_poke,
    "group_poke": send_poke,
    "friend_poke": send_poke,
    "set_input_status": set_input_status,
}


RANKS = {"member": 1, "admin": 2, "owner": 3}


def set_group_ban(world: World, params: Params) -> Done:
    """Only members of lower rank can be muted."""
    group, person = _target(world, params)
    seconds = params.number("duration", 1800)
    _above(world, group, person)
    return Done(gesture=Gesture("mute", user_id=person.user_id, group_id=group, seconds=seconds))


def set_group_card(world: World, params: Params) -> Done:
    group, person = _target(world, params)
    if person.user_id != world.self_id:
        _above(world, group, person)
    card = str(params.get("card") or "")
    world.group(group).members[person.user_id] = replace(person, card=card)
    return Done(gesture=Gesture("card", user_id=person.user_id, group_id=group))


def set_essence_msg(world: World, params: Params) -> Done:
    stored = world.messages.find(params.number("message_id"))
    group = stored.group_id or 0
    if RANKS[world.member(group, world.self_id).role] < RANKS["admin"]:
        raise CallRefused(NOT_DONE, "没有权限")
    return Done(gesture=Gesture("pin", group_id=group, message_id=stored.message_id))


def _target(world: World, params: Params) -> tuple[int, Person]:
    group = world.group(params.number("group_id")).group_id
    return group, world.member(group, params.number("user_id"))


def _above(world: World, group: int, person: Person) -> None:
    own = RANKS[world.member(group, world.self_id).role]
    if own < RANKS["admin"] or RANKS.get(person.role, 1) >= own:
        raise CallRefused(NOT_DONE, "没有权限")


ADMIN_ACTIONS: dict[str, Action] = {
    "set_group_ban": set_group_ban,
    "set_group_card": set_group_card,
    "set_essence_msg": set_essence_msg,
}


def befriend(world: World, person: Person, comment: str) -> Json:
    """The event of a friend request."""
    return _asked(world, person, request_type="friend", comment=comment)


def invite(world: World, person: Person, group_id: int) -> Json:
    """The event of an invitation into a group the account is not in."""
    more = {"group_id": group_id, "sub_type": "invite", "comment": ""}
    return _asked(world, person, request_type="group", **more)


def apply(world: World, person: Person, group_id: int, comment: str) -> Json:
    """Somebody asks to join a group that the account is in: the event of it."""
    more = {"group_id": group_id, "sub_type": "add", "comment": comment}
    return _asked(world, person, request_type="group", **more)


def _asked(world: World, person: Person, **fields: Any) -> Json:
    flag = str(1_776_500_000 + len(world.petitions))
    world.petitions[flag] = (person, int(fields.get("group_id", 0)))
    return {
        "time": int(world.now()),
        "self_id": world.self_id,
        "post_type": "request",
        "user_id": person.user_id,
        "flag": flag,
        **fields,
    }


def lapse(world: World) -> None:
    """All pending requests expire."""
    world.petitions = dict.fromkeys(world.petitions)


def set_friend_add_request(world: World, params: Params) -> Done:
    person, _ = _answered(world, params)
    if not params.flag("approve"):
        return Done(gesture=Gesture("refusal", user_id=person.user_id))
    world.add_friend(person)
    return Done(gesture=Gesture("friend", user_id=person.user_id))


def set_group_add_request(world: World, params: Params) -> Done:
    person, group_id = _answered(world, params)
    applies = params.get("sub_type") == "add"
    if params.get("sub_type") not in ("add", "invite") or not group_id:
        raise CallRefused(NOT_DONE, "no such invite")
    if not params.flag("approve"):
        return Done(gesture=Gesture("refusal", user_id=person.user_id, group_id=group_id))
    if applies:
        world.group(group_id).members[person.user_id] = person
        return Done(gesture=Gesture("admitted", user_id=person.user_id, group_id=group_id))
    world.add_group(group_id, members=[person])
    return Done(gesture=Gesture("joined", user_id=person.user_id, group_id=group_id))


def _answered(world: World, params: Params) -> tuple[Person, int]:
    """Return who asked, and for which group; QQ accepts one answer."""
    flag = str(params.get("flag"))
    if (asked := world.petitions.get(flag)) is None:
        raise CallRefused(NOT_DONE, "请求不存在或已过期")
    world.petitions[flag] = None
    return asked


REQUEST_ACTIONS: dict[str, Action] = {
    "set_friend_add_request": set_friend_add_request,
    "set_group_add_request": set_group_add_request,
}


VERSION = {"protocol_version": "v11", "app_version": "4.18.13"}


def read_call(text: str | bytes) -> Call | CallAnswer:
    """Read a call from a frame; for an invalid one, return its answer."""
    try:
        frame = json.loads(text)
    except ValueError:
        frame = None
    if not isinstance(frame, dict):
        return CallAnswer(wire.failed(BAD_REQUEST, "json解析失败,请检查数据格式", None))
    name, params = frame.get("action"), frame.get("params") or {}
    if not isinstance(name, str) or name not in ACTIONS.keys() | SENDS.keys():
        return CallAnswer(wire.failed(NO_SUCH_ACTION, f"不支持的Api {name}", frame.get("echo")))
    if not isinstance(params, dict):
        return CallAnswer(wire.failed(BAD_REQUEST, "参数 params 不正确", frame.get("echo")))
    return Call(name, Params(params), frame)


def perform(world: World, call: Call) -> CallAnswer:
    """Carry out a call. Always returns an answer; errors are in it."""
    read_message = SENDS.get(call.action)
    try:
        if call.action in world.unsupported:
            raise CallRefused(NO_SUCH_ACTION, f"不支持的Api {call.action}")
        if read_message is None:
            return call.confirm(ACTIONS[call.action](world, call.params))
        return call.confirm(_send(world, read_message(call.params)))
    except CallRefused as refusal:
        return call.refuse(refusal)


def message_in(call: Call) -> SentMessage | None:
    """The message that a call would send, without an id; None if there is none to read."""
    with suppress(CallRefused):
        return SENDS[call.action](call.params) if call.action in SENDS else None
    return None


# --- sending -------------------------------------------------------------------------------------


def send_group_msg(params: Params) -> SentMessage:
    return SentMessage(0, _message(params, "message"), group_id=params.number("group_id"))


def send_private_msg(params: Params) -> SentMessage:
    user_id, via_group = params.number("user_id"), params.number("group_id", 0)
    return SentMessage(0, _message(params, "message"), user_id=user_id, via_group=via_group)


def send_msg(params: Params) -> SentMessage:
    """With both ids and no type, the group wins, as in NapCat."""
    if params.get("message_type") == "private" or not params.has("group_id"):
        return send_private_msg(params)
    return send_group_msg(params)


def send_group_forward_msg(params: Params) -> SentMessage:
    return SentMessage(0, _message(params, "messages"), group_id=params.number("group_id"))


def send_private_forward_msg(params: Params) -> SentMessage:
    return SentMessage(0, _message(params, "messages"), user_id=params.number("user_id"))


SENDS: dict[str, Callable[[Params], SentMessage]] = {
    "send_group_msg": send_group_msg,
    "send_private_msg": send_private_msg,
    "send_msg": send_msg,
    "send_group_forward_msg": send_group_forward_msg,
    "send_private_forward_msg": send_private_forward_msg,
}
"""The actions that send, as the message they send; faults apply to these."""


def _message(params: Params, name: str) -> tuple[Json, ...]:
    return tuple(read_segments(params.get(name), auto_escape=params.flag("auto_escape")))


def _send(world: World, message: SentMessage) -> Done:
    """Deliver a message. Raises CallRefused without a receiver, and if muted or offline."""
    group_id, user_id = message.group_id, message.user_id or 0
    if not world.online:
        raise CallRefused(NOT_DONE, wire.unconfirmed())
    if group_id is None:
        if not world.reaches(user_id, via_group=message.via_group):
            raise CallRefused(NOT_DONE, "无法获取用户信息")
    elif world.mutes.is_muted(world.group(group_id).group_id):
        raise CallRefused(NOT_DONE, wire.MUTED)
    segments = list(message.segments)
    told: Json = {}
    if segments and all(segment["type"] == "node" for segment in segments):
        forward_id = world.add_forward([_inner(world, node) for node in segments])
        accepted: list[Json] = [{"type": "forward", "data": {"id": forward_id}}]
        told = {"res_id": forward_id, "forward_id": forward_id}
    else:
        accepted = outgoing.accept(
            segments, in_group=group_id is not None, is_known=world.messages.knows
        )
    via_group = 0 if user_id in world.friends else message.via_group
    stored = world.post(
        accepted, author=world.self_id, group_id=group_id, peer_id=user_id, via_group=via_group
    )
    events = (event_of(world, stored),) if world.reports_self else ()
    return Done(
        {"message_id": stored.message_id, **told},
        events,
        replace(message, message_id=stored.message_id),
    )


def _inner(world: World, node: Json) -> Json:
    """A message of a merged forward, as get_forward_msg shows it: by the named author."""
    data = node["data"]
    author = Params(data).number("user_id" if "user_id" in data else "uin", world.self_id)
    name = str(data.get("nickname") or data.get("name") or "")
    content = outgoing.accept(
        read_segments(data.get("content")), in_group=True, is_known=world.messages.knows
    )
    stored = Stored(0, 0, world.now(), author, tuple(content), peer_id=author)
    event = event_of(world, stored) | {
        "sender": {"user_id": author, "nickname": name, "card": ""},
        "post_type": "message",
    }
    event.pop("message_sent_type", None)
    return event


# --- messages ------------------------------------------------------------------------------------


def get_msg(world: World, params: Params) -> Done:
    message_id = params.number("message_id")
    if world.renumbers and not world.messages.knows(message_id):
        message_id = other_id(message_id)
    return Done(event_of(world, world.messages.find(message_id)))


def delete_msg(world: World, params: Params) -> Done:
    """Any message if the account is an administrator, otherwise only its own."""
    message_id = params.number("message_id")
    stored = world.messages.find(message_id)
    if stored.author != world.self_id:
        role = (
            "member"
            if stored.group_id is None
            else world.member(stored.group_id, world.self_id).role
        )
        if role not in ("owner", "admin"):
            raise CallRefused(NOT_DONE, "撤回失败, 没有权限")
    recalled = world.recall(message_id, operator_id=world.self_id)
    gesture = Gesture("recall", group_id=stored.group_id, message_id=message_id)
    return Done(events=(recalled,), gesture=gesture)


def get_group_msg_history(world: World, params: Params) -> Done:
    group = world.group(params.number("group_id"))
    return _history(world, world.messages.history(group_id=group.group_id), params)


def get_friend_msg_history(world: World, params: Params) -> Done:
    return _history(world, world.messages.history(peer_id=params.number("user_id")), params)


def _history(world: World, stored: list[Stored], params: Params) -> Done:
    """The last `count` up to `message_seq` (0: the latest), oldest first unless reversed."""
    last, count = params.number("message_seq", 0), params.number("count", 20)
    if last and world.renumbers and not world.messages.knows(last):
        last = other_id(last)
    if last:
        anchor = world.messages.find(last)
        stored = stored[: stored.index(anchor) + 1] if anchor in stored else []
    messages = [event_of(world, one) for one in stored[-count:]] if count > 0 else []
    if world.renumbers:
        messages = [_renumbered(one) for one in messages]
    return Done({"messages": messages[::-1] if params.flag("reverse_order") else messages})


def _renumbered(event: Json) -> Json:
    other = other_id(event["message_id"])
    return {name: other if value == event["message_id"] else value for name, value in event.items()}


# --- people and groups ---------------------------------------------------------------------------


def get_login_info(world: World, _: Params) -> Done:
    return Done({"user_id": world.self_id, "nickname": world.nickname})


def get_status(world: World, _: Params) -> Done:
    return Done({"online": world.online, "good": True, "stat": {}})


def get_version_info(world: World, _: Params) -> Done:
    return Done(VERSION | {"app_name": world.app_name})


def get_group_list(world: World, _: Params) -> Done:
    return Done([_describe_group(world, group) for group in world.groups.values()])


def get_group_info(world: World, params: Params) -> Done:
    return Done(_describe_group(world, world.group(params.number("group_id"))))


def _describe_group(world: World, group: Group) -> Json:
    return {
        "group_all_shut": -1 if world.mutes.is_whole(group.group_id) else 0,
        "group_remark": "",
        "group_id": group.group_id,
        "group_name": group.name,
        "member_count": len(group.members),
        "max_member_count": 500,
    }


def get_group_member_list(world: World, params: Params) -> Done:
    group = world.group(params.number("group_id"))
    return Done(
        [_describe_member(world, group.group_id, person) for person in group.members.values()]
    )


def get_group_member_info(world: World, params: Params) -> Done:
    group_id = params.number("group_id")
    return Done(_describe_member(world, group_id, world.member(group_id, params.number("user_id"))))


def _describe_member(world: World, group_id: int, person: Person) -> Json:
    is_account = person.user_id == world.self_id
    return {
        "group_id": group_id,
        "user_id": person.user_id,
        "nickname": person.nickname,
        "card": person.card,
        "sex": "unknown",
        "age": 0,
        "area": "",
        "level": "1",
        "qq_level": 1,
        "join_time": 0,
        "last_sent_time": 0,
        "title_expire_time": 0,
        "unfriendly": False,
        "card_changeable": True,
        "is_robot": person.is_robot,
        "shut_up_timestamp": int(world.mutes.until(group_id)) if is_account else 0,
        "role": person.role,
        "title": "",
    }


def get_friend_list(world: World, _: Params) -> Done:
    return Done([_describe_person(person) | {"remark": ""} for person in world.friends.values()])


def get_stranger_info(world: World, params: Params) -> Done:
    """Works for any number; an unknown one has an empty nickname."""
    user_id = params.number("user_id")
    return Done(_describe_person(world.person(user_id) or Person(user_id, "")))


def _describe_person(person: Person) -> Json:
    return {"user_id": person.user_id, "nickname": person.nickname, "sex": "unknown", "age": 0}


# --- others --------------------------------------------------------------------------------------


def can_send(_world: World, _: Params) -> Done:
    return Done({"yes": True})


def mark_msg_as_read(_world: World, _: Params) -> Done:
    return Done()


ACTIONS: dict[str, Action] = {
    "get_msg": get_msg,
    "delete_msg": delete_msg,
    **ADMIN_ACTIONS,
    **REQUEST_ACTIONS,
    **shared_media.ACTIONS,
    "get_group_msg_history": get_group_msg_history,
    "get_friend_msg_history": get_friend_msg_history,
    "get_login_info": get_login_info,
    "get_status": get_status,
    "get_version_info": get_version_info,
    "get_group_list": get_group_list,
    "get_group_info": get_group_info,
    "get_group_member_list": get_group_member_list,
    "get_group_member_info": get_group_member_info,
    "get_friend_list": get_friend_list,
    "get_stranger_info": get_stranger_info,
    "can_send_image": can_send,
    "can_send_record": can_send,
    "mark_msg_as_read": mark_msg_as_read,
    **GESTURES,
}
