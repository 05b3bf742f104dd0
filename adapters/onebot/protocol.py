"""The OneBot v11 wire without I/O: frames -> events and replies, actions -> frames.

Reading never raises: anything but OneBot is None. A frame is an event if and only if it has a
`post_type`; the echo of a reply may be absent, null, "" or 0 (onebot.md 1.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never

import orjson
from msgspec import Struct
from msgspec.structs import replace

from adapters.onebot.events import About, read_event, read_said, read_time
from adapters.onebot.fields import Fields, decimal, load, mapping, number, sequence, text
from adapters.onebot.segments import write_nodes, write_segments
from bot.core.actions import Gesture, MergedForward, React, SendMessage, ShowTyping
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused
from bot.core.events import Event, MessageReceived, Role
from bot.core.group_admin import GroupAct, JoinRequest, Mute, Pin, Recall, SetCard
from bot.core.ports import JoinedGroup, KeptFile, Member
from bot.core.refusals import failure_in, judge_refusal

MAX_FRAME: Final = 50 * 2**20  # bytes; NapCat's maxPayload (onebot.md 1.2)

INLINE: Final = "base64://"
BAD_REQUEST: Final = 1400
BAD_TOKEN: Final = 1403
NO_SUCH_ACTION: Final = (404, 1404)  # onebot.md 2
SENT: Final = 2  # a sendStatus of QQ's kernel
TYPING: Final = 1  # an event_type of set_input_status


class ActionReply(Struct, frozen=True):
    """A server's answer to a call. `wording` is its own text, often empty; `data` any JSON.

    `echo` is empty if the server lost it. A stream action answers several times; only the last is
    `final`.
    """

    echo: str
    ok: bool
    retcode: int
    data: Any = None
    wording: str = ""
    final: bool = True

    @property
    def is_bad_token(self) -> bool:
        """Whether the server rejects our token, which it says in a frame that answers no call
        (onebot.md 1.3, 1.6).
        """
        return self.retcode == BAD_TOKEN and not self.echo

    def may_be_done(self, action: str) -> bool:
        """Whether this action may have reached QQ despite the failure; messages often do."""
        return not self.ok and judge_refusal(self.wording, self.retcode, action).may_be_done


# --- reading frames -------------------------------------------------------------------------------


def read_frame(
    data: str | bytes, *, account: int = 0, now: float = 0.0
) -> Event | ActionReply | None:
    """Read one frame; None if it is no JSON, no OneBot, or a message without a sender. Never
    raises.

    `account` and `now` (seconds since 1970) are used for an event that names no account or time.
    """
    try:
        frame = load(data)
    except ValueError:
        return None
    match frame:
        case {"post_type": _}:
            return read_event(frame, account=account, now=now)
        case {"status": _} | {"echo": _}:
            return _read_reply(frame)
        case _:
            return None


def _read_reply(frame: Fields) -> ActionReply:
    echo = frame.get("echo")
    part_of_stream = (
        frame.get("stream") == "stream-action"
        and mapping(frame.get("data")).get("type") == "stream"
    )
    status, retcode = frame.get("status"), frame.get("retcode")
    failure = failure_in(frame.get("data")) if status == "ok" else None
    code, words = failure or (number(retcode), _words_of(frame))
    return ActionReply(
        echo=echo if isinstance(echo, str) else "",  # ours are text
        # Not retcode 200: on several servers it is a failure (onebot.md 2). Lagrange has failures
        # with 0, and "ok" with other numbers (set_friend_add_request).
        ok=failure is None
        and status != "failed"
        and (text(retcode) == "0" or (status == "ok" and not text(retcode))),
        retcode=code,
        data=frame.get("data"),
        wording=words,
        final=not part_of_stream,
    )


def _words_of(frame: Fields) -> str:
    return text(frame.get("wording")) or text(frame.get("message")) or text(frame.get("msg"))


# --- reading answers ------------------------------------------------------------------------------


def read_account(data: object) -> int:
    """The bot's number in an answer to get_login_info, or 0."""
    return number(mapping(data).get("user_id"))


def read_message_id(data: object) -> str:
    """The id in an answer to a send; empty if there is none."""
    return text(mapping(data).get("message_id"))


def read_answered_message(data: object, *, account: int) -> MessageReceived | None:
    """The message in an answer to get_msg; None if there is none, or LLBot marks it deleted."""
    message = mapping(data)
    if not message or message.get("status") == "deleted":
        return None
    return _read_answered(message, account)


def read_forward(data: object, *, account: int) -> tuple[MessageReceived, ...]:
    """The messages in an answer to get_forward_msg (or in a forward's inline content), in order.

    NapCat and LLBot: `messages`, with their content under `message` or `content`; go-cqhttp: with
    CQ strings; Lagrange: `message`, a list of nodes (onebot.md 5).
    """
    fields = mapping(data)
    nodes = sequence(data) or sequence(fields.get("messages")) or sequence(fields.get("message"))
    return tuple(_read_answered(_node(node), account) for node in nodes if isinstance(node, dict))


def read_history(
    data: object, conversation: Conversation, *, server: str = ""
) -> tuple[MessageReceived, ...]:
    """The messages in an answer to get_group_msg_history or get_friend_msg_history of this server,
    oldest first.

    All belong to the `conversation`, whatever a server says about the bot's own. Messages without
    author or content are left out. The bot's own messages that QQ did not accept get no id, so they
    prove no delivery.
    """
    account = conversation.platform_id
    rows = sequence(mapping(data).get("messages"))
    read = (_read_row(row, account, server) for row in rows if isinstance(row, dict))
    heard = (message for message in read if message.sender.user_id and message.segments)
    found = [replace(message, conversation=conversation) for message in heard]
    return tuple(sorted(found, key=lambda message: message.time))


REAL_SEQUENCE: Final = "real_seq"
SEQUENCES: Final = (
    ("NapCat", REAL_SEQUENCE),  # QQ's client: its history includes failed messages (NapCatQQ#182)
    ("LLOneBot", "message_seq"),  # the same before version 8, QQ's server since
    ("Lagrange", None),  # QQ's server, without failed messages; the next two likewise
    ("go-cqhttp", None),
    ("SnowLuma", None),  # or its memory of confirmed sends
)
"""Servers, and the field of a history row with QQ's number of the message. QQ numbers only accepted
messages: a message of the bot with 0 failed; one without a number may have failed. None if the
history holds accepted messages only. Unlisted servers are trusted if they write NapCat's field.
"""


def _read_row(row: Fields, account: int, server: str) -> MessageReceived:
    read = _read_answered(row, account)
    if not read.is_own or (taken := _was_taken(row, server)):
        return read
    if taken is None or row.get("post_type") != "message_sent":
        return replace(read, unproven=True)
    return replace(read, message_id="")


def _was_taken(row: Fields, server: str) -> bool | None:
    """Whether QQ accepted the bot's own message in this history row; None if unknown."""
    state = mapping(row.get("raw")).get("sendStatus")  # with `debug` of NapCat and LLBot
    if state is not None:
        return number(state) == SENT
    field = next((field for name, field in SEQUENCES if server.startswith(name)), REAL_SEQUENCE)
    if field is None:
        return True
    value = text(row.get(field))
    if value == text(row.get("message_id")):  # as in old versions of LLBot
        return None
    return value != "0" if value else None


def read_kept_file(data: object) -> KeptFile:
    """The file in an answer to get_image; `base64` only if the server is configured to send it.

    Otherwise `file` is a path inside the server's container, and `url` the same path or a fresh URL
    (onebot.md 4.5).
    """
    fields = mapping(data)
    places = [text(fields.get(name)).removeprefix("file://") for name in ("path", "file", "url")]
    inline = next((place.removeprefix(INLINE) for place in places if place.startswith(INLINE)), "")
    url = next((place for place in places if place.startswith(("http://", "https://"))), "")
    path = next(
        (place for place in places if "://" not in place and ("/" in place or "\\" in place)), ""
    )
    return KeptFile(text(fields.get("base64")) or inline, path, url)


def _node(node: Fields) -> Fields:
    """A forwarded message in the form of an event; some nodes have their fields at the top."""
    if node.get("type") == "node":
        node = mapping(node.get("data")) or node
    content = node.get("message") if "message" in node else node.get("content")
    user_id = node.get("user_id") or node.get("uin")
    named = {"user_id": user_id, "nickname": node.get("nickname") or node.get("name")}
    return {
        **node,
        "user_id": user_id,
        "sender": mapping(node.get("sender")) or named,
        "message": content,
    }


def _read_answered(message: Fields, account: int) -> MessageReceived:
    """A message of an answer. It belongs to the asking account, whatever the server says."""
    kind = (
        "group" if "group_id" in message or message.get("group") is True else "private"
    )  # go-cqhttp: a boolean
    about = About(self_id=account, time=read_time(message.get("time")))
    return read_said({"message_type": kind, **message}, about)


# --- writing --------------------------------------------------------------------------------------


def write_call(action: str, params: Mapping[str, object], echo: str) -> bytes:
    return orjson.dumps({"action": action, "params": params, "echo": echo})


def write_action(action: SendMessage, *, server: str = "") -> tuple[str, dict[str, object]]:
    """The wire name of the action and its parameters, for this server.

    A temporary session is answered as private, with the group it came through (onebot.md 3.1).
    Raises ActionRefused for a place without a number.
    """
    place = action.conversation
    if place.session_id <= 0:
        nobody = f"there is no {place.message_type} {place.session_id}"
        raise ActionRefused("send_msg", retcode=BAD_REQUEST, wording=nobody)
    to: dict[str, object] = {"group_id" if place.is_group else "user_id": place.session_id}
    kind = "group" if place.is_group else "private"
    if merged := next((part for part in action.segments if isinstance(part, MergedForward)), None):
        messages = write_nodes(merged, account=place.platform_id, server=server)
        return f"send_{kind}_forward_msg", {**to, "messages": messages}
    if place.via_group > 0:
        to["group_id"] = place.via_group
    return f"send_{kind}_msg", {**to, "message": write_segments(action.segments)}


def write_gesture(gesture: Gesture, *, server: str) -> tuple[str, dict[str, object]]:
    """The wire name of the gesture and its parameters, for this server (onebot.md 5)."""
    place = gesture.conversation
    match gesture:
        case React(message_id=message_id, emoji_id=emoji_id) if server.startswith("Lagrange"):
            params = {"message_id": write_id(message_id), "code": emoji_id, "is_add": True}
            return "set_group_reaction", {"group_id": place.session_id, **params}
        case React(message_id=message_id, emoji_id=emoji_id):
            return "set_msg_emoji_like", {
                "message_id": write_id(message_id),
                "emoji_id": emoji_id,
                "set": True,
            }
        case ShowTyping():
            return "set_input_status", {"user_id": place.session_id, "event_type": TYPING}
        case _:
            assert_never(gesture)


def write_id(message_id: str) -> int | str:
    """The id as a number, as in the standard; today's servers also accept text (onebot.md 2)."""
    try:
        number = int(message_id)
    except ValueError:
        return message_id
    return number if abs(number) < 2**53 else message_id


def write_act(group: Conversation, act: GroupAct) -> tuple[str, dict[str, object]]:
    place = {"group_id": group.session_id}
    match act:
        case Mute(user_id=user_id, seconds=seconds):
            return "set_group_ban", {**place, "user_id": user_id, "duration": seconds}
        case SetCard(user_id=user_id, card=card):
            return "set_group_card", {**place, "user_id": user_id, "card": card}
        case Recall(message_id=message_id):
            return "delete_msg", {"message_id": write_id(message_id)}
        case Pin(message_id=message_id):
            return "set_essence_msg", {"message_id": write_id(message_id)}
        case _:
            assert_never(act)


def write_admission(
    request: JoinRequest, *, granted: bool, reason: str
) -> tuple[str, dict[str, object]]:
    """The same for the answer to a friend request, an invite or an applicant (onebot.md 3.6)."""
    answer: dict[str, object] = {"flag": request.flag, "approve": granted}
    if request.kind == "friend":
        return "set_friend_add_request", answer
    if reason:  # NapCat warns about an empty one
        answer["reason"] = reason
    sub_type = "invite" if request.kind == "invite" else "add"
    return "set_group_add_request", {**answer, "sub_type": sub_type}


UNCHECKED: Final = (
    ("NapCat", ("set_friend_add_request", "set_group_add_request")),
    ("Lagrange", ("set_group_ban", "set_group_card")),
)
"""Servers that always answer "ok" to these actions (NapCat: except for an unknown flag)."""


def tells_of_failure(server: str, action: str) -> bool:
    """Whether this server reports refusals of the action by QQ."""
    return not any(server.startswith(name) and action in actions for name, actions in UNCHECKED)


ROLES: dict[str, Role] = {"owner": "owner", "admin": "admin", "member": "member"}


def read_groups(data: object, *, account: int) -> tuple[JoinedGroup, ...]:
    """The groups in an answer to get_group_list. `group_all_shut` is NapCat's, a number or a bool;
    the two timestamps are LLBot's.
    """
    read = [(number(fields.get("group_id")), fields) for fields in map(mapping, sequence(data))]
    return tuple(
        JoinedGroup(
            Conversation(account, "group", group),
            _flag(fields.get("group_all_shut")),
            max(0, number(fields.get("member_count"))),
            _time(fields.get("shut_up_all_timestamp")),
            _time(fields.get("shut_up_me_timestamp")),
            name=text(fields.get("group_name")),
        )
        for group, fields in read
        if group > 0
    )


def read_member(data: object) -> Member:
    """The member in an answer to get_group_member_info."""
    fields = mapping(data)
    return Member(
        ROLES.get(text(fields.get("role")), "unknown"),
        _time(fields.get("shut_up_timestamp")),
        _flag(fields.get("is_robot")),
        text(fields.get("card")) or text(fields.get("nickname")),
    )


def _time(value: Any) -> float | None:
    """Seconds since 1970; None if missing."""
    return None if value is None else decimal(value)


def _flag(value: Any) -> bool | None:
    """Whether it is set; None if missing. In QQ's own terms, -1 means all members."""
    return None if value is None else value is True or number(value) != 0
