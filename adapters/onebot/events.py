"""Event frames -> events. Pure; never raises, whatever the fields contain.

Sections and field lists: onebot.md 3. A kind without an event type becomes `Noticed`, with its wire
names.
"""

from __future__ import annotations

from typing import TypedDict, cast, get_args
from zlib import crc32

from adapters.onebot.fields import Fields, decimal, mapping, number, text
from adapters.onebot.segments import read_message
from bot.core.conversation import Conversation, shared_place
from bot.core.events import (
    ANONYMOUS,
    AccountChanged,
    Connected,
    Event,
    Heartbeat,
    MemberChange,
    MemberChanged,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    Muted,
    Noticed,
    Poked,
    Requested,
    Role,
    Sender,
    masked,
)
from bot.core.segments import Mention, Segment
from frostagent.types.speech import Quote

MILLISECONDS = 1e11  # a time above this is in milliseconds (onebot.md 3.1), or in parts of them
AHEAD = 24 * 3600.0  # seconds a server's clock may be ahead of ours; later times are invalid
SECONDS = 1000.0  # an interval below this is in seconds: Matcha says 3 where NapCat says 30000
LONGEST_INTERVAL = 3600.0  # seconds; a longer one says nothing
UNKNOWN_GROUP = (
    284840486  # NapCat's number for a group it does not know; not a group (onebot.md 3.1)
)
_ROLES = frozenset(get_args(Role))


class About(TypedDict):
    """The fields of every event."""

    self_id: int
    time: float


def read_event(frame: Fields, *, account: int = 0, now: float = 0.0) -> Event | None:
    """Read a frame with a `post_type`; None for a message without sender, place or content.

    `account` and `now` are used if the frame names no account or time.
    """
    about = About(
        self_id=max(0, number(frame.get("self_id"))) or account,
        time=read_time(frame.get("time"), now=now),
    )
    match frame["post_type"]:
        case "message" | "message_sent":
            return _read_message_event(frame, about)
        case "notice":
            return _read_notice(frame, about)
        case "request":
            return _read_request(frame, about)
        case "meta_event":
            return _read_meta(frame, about)
        case unknown:
            return _noticed(frame, about, text(unknown))


def read_time(value: object, *, now: float = 0.0) -> float:
    """Seconds since 1970, from any unit; `now` for an invalid or future time."""
    seconds = decimal(value)
    while seconds > MILLISECONDS:
        seconds /= 1000
    return seconds if 0 < seconds <= (now or MILLISECONDS) + AHEAD else now


def _interval(value: object) -> float:
    """Seconds between heartbeats; 0 if implausible."""
    seconds = decimal(value)
    seconds = seconds if seconds < SECONDS else seconds / 1000
    return seconds if 0 < seconds <= LONGEST_INTERVAL else 0.0


# --- messages -------------------------------------------------------------------------------------


def _read_message_event(frame: Fields, about: About) -> Event | None:
    if frame.get("message_type") not in ("group", "private"):
        return _noticed(frame, about, "message", sub_type=text(frame.get("message_type")))
    said = read_said(frame, about)
    speaker = said.sender.user_id
    if frame["post_type"] == "message_sent" and speaker and not said.is_own:
        return _noticed(frame, about, "message_sent")  # a member's message is never the bot's
    # Lagrange reports the bot's own messages as `message` (onebot.md 3.3).
    if frame["post_type"] == "message_sent" or (speaker and said.is_own):
        return MessageSent(
            **about,
            conversation=said.conversation,
            message_id=said.message_id,
            segments=said.segments,
        )
    # NapCat also reports pokes and new friends as private messages without content.
    return said if speaker > 0 and said.conversation.session_id > 0 and said.segments else None


def read_said(frame: Fields, about: About) -> MessageReceived:
    """Read a message of an event or answer, the bot's too; missing fields are empty or 0."""
    who = mapping(frame.get("sender"))
    user_id = number(frame.get("user_id")) or number(who.get("user_id"))
    mask = mapping(frame.get("anonymous")) if user_id in (0, ANONYMOUS) else {}
    if mask:
        user_id = _masked(mask)
    message_id = text(frame.get("message_id"))
    role = text(who.get("role"))
    return MessageReceived(
        **about,
        conversation=_conversation(frame, about["self_id"], user_id),
        message_id=message_id,
        sender=Sender(
            user_id,
            nickname=text(mask.get("name")) or text(who.get("nickname")),
            card=text(who.get("card")),
            role=cast("Role", role) if role in _ROLES else "unknown",
        ),
        segments=_with_mention(frame, about["self_id"], read_message(_content(frame))),
        sub_type=text(frame.get("sub_type")),
        message_seq=_sequence_number(frame, message_id),
        group_name=text(frame.get("group_name")),
    )


def _with_mention(
    frame: Fields, account: int, segments: tuple[Segment, ...]
) -> tuple[Segment, ...]:
    """Add the mention of the account, which onebots replaces by a quote and reports only as `atme`
    (onebot.md 3.1).
    """
    if frame.get("atme") is not True or frame.get("message_type") != "group" or not segments:
        return segments
    if any(isinstance(one, Mention) and one.user_id == account for one in segments):
        return segments
    place = 1 if isinstance(segments[0], Quote) else 0
    return (*segments[:place], Mention(account), *segments[place:])


def _masked(mask: Fields) -> int:
    """The masked id of an anonymous member: from its number, or from the data needed to mute it."""
    key = max(0, number(mask.get("id"))) or crc32(
        text(mask.get("flag") or mask.get("name")).encode()
    )
    return masked(key) if key else ANONYMOUS


def _content(frame: Fields) -> object:
    """The message. raw_message is trimmed and lossy, so it is only a fallback (onebot.md 3.1)."""
    message = frame.get("message")
    return frame.get("raw_message") if message in (None, "") else message


def _conversation(frame: Fields, self_id: int, user_id: int) -> Conversation:
    # message_type decides: private messages may also have a group_id (onebot.md 6.7).
    if frame.get("message_type") == "group":
        return shared_place(self_id, "group", _group(frame.get("group_id")), 0)
    other = user_id
    if user_id == self_id:  # our own message; target_id, if known, is its recipient
        target = number(frame.get("target_id"))
        other = target if target != self_id else 0
    via = _group_of_temporary_session(frame) if frame.get("sub_type") == "group" else 0
    return shared_place(self_id, "private", other, via)


def _group_of_temporary_session(frame: Fields) -> int:
    """The group: in NapCat at the top, once in temp_source; in LLBot's sender; not in Lagrange."""
    in_sender = mapping(frame.get("sender")).get("group_id")
    return _group(frame.get("group_id")) or _group(in_sender) or _group(frame.get("temp_source"))


def _group(value: object) -> int:
    group_id = number(value)
    return 0 if group_id == UNKNOWN_GROUP else group_id


def _sequence_number(frame: Fields, message_id: str) -> str:
    """The real sequence number: NapCat's real_seq, else message_seq unless it repeats the id."""
    if "real_seq" in frame:
        sequence = text(frame["real_seq"])
    else:
        sequence = text(frame.get("message_seq"))
        sequence = "" if sequence == message_id else sequence
    return "" if sequence == "0" else sequence


# --- notices --------------------------------------------------------------------------------------


def _read_notice(frame: Fields, about: About) -> Event:
    kind = text(frame.get("notice_type"))
    match kind, frame.get("sub_type"):
        case (("group_recall" | "friend_recall"), _):
            return _read_recall(frame, about, in_group=kind == "group_recall")
        case "notify", "poke":
            return _read_poke(frame, about)
        case "group_ban", _:
            return _read_ban(frame, about)
        case "group_increase", _:
            return _read_member_change(frame, about, "joined")
        case "group_decrease", _:
            return _read_member_change(frame, about, "left")
        case "group_admin", "set":
            return _read_member_change(frame, about, "promoted")
        case "group_admin", "unset":
            return _read_member_change(frame, about, "demoted")
        case (("bot_offline" | "bot_online"), _):
            reason = text(frame.get("message")) or text(frame.get("tag"))
            return AccountChanged(**about, online=kind == "bot_online", reason=reason)
        case _:
            return _noticed(frame, about, kind)


def _read_recall(frame: Fields, about: About, *, in_group: bool) -> Event:
    user_id = number(frame.get("user_id"))
    place = (
        _in_group(frame, about) if in_group else Conversation(about["self_id"], "private", user_id)
    )
    return MessageRecalled(
        **about,
        conversation=place,
        message_id=text(frame.get("message_id")),
        user_id=user_id,
        operator_id=number(frame.get("operator_id")) or user_id,
    )


def _read_poke(frame: Fields, about: About) -> Event:
    user_id = number(frame.get("user_id")) or number(frame.get("sender_id"))
    target_id = number(frame.get("target_id"))
    other = target_id if user_id == about["self_id"] else user_id
    private = Conversation(about["self_id"], "private", other)
    return Poked(
        **about,
        conversation=_in_group(frame, about) if number(frame.get("group_id")) else private,
        user_id=user_id,
        target_id=target_id,
    )


def _read_ban(frame: Fields, about: About) -> Event:
    lifted = frame.get("sub_type") == "lift_ban"
    return Muted(
        **about,
        conversation=_in_group(frame, about),
        user_id=number(frame.get("user_id")),
        operator_id=number(frame.get("operator_id")),
        seconds=0 if lifted else number(frame.get("duration")),
    )


def _read_member_change(frame: Fields, about: About, change: MemberChange) -> Event:
    return MemberChanged(
        **about,
        conversation=_in_group(frame, about),
        user_id=number(frame.get("user_id")),
        operator_id=number(frame.get("operator_id")),
        change=change,
        how=text(frame.get("sub_type")),
    )


def _in_group(frame: Fields, about: About) -> Conversation:
    return Conversation(about["self_id"], "group", number(frame.get("group_id")))


def _noticed(frame: Fields, about: About, kind: str, *, sub_type: str = "") -> Noticed:
    user_id = number(frame.get("user_id"))
    place = None
    if number(frame.get("group_id")):
        place = _in_group(frame, about)
    elif user_id and user_id != about["self_id"]:
        place = Conversation(about["self_id"], "private", user_id)
    sub_type = sub_type or text(frame.get("sub_type"))
    return Noticed(**about, kind=kind, sub_type=sub_type, conversation=place, user_id=user_id)


# --- requests and meta events ---------------------------------------------------------------------


def _read_request(frame: Fields, about: About) -> Event:
    match frame.get("request_type"):
        case ("friend" | "group") as kind if text(frame.get("flag")):  # else unanswerable
            return Requested(
                **about,
                kind=kind,
                sub_type=text(frame.get("sub_type")),
                user_id=number(frame.get("user_id")),
                group_id=number(frame.get("group_id")),
                comment=text(frame.get("comment")),
                flag=text(frame.get("flag")),
            )
        case unknown:
            return _noticed(frame, about, text(unknown))


def _read_meta(frame: Fields, about: About) -> Event:
    match frame.get("meta_event_type"):
        case "lifecycle":
            return Connected(**about, change=text(frame.get("sub_type")) or "connect")
        case "heartbeat":
            online = mapping(frame.get("status")).get(
                "online"
            )  # may be missing right after the start
            return Heartbeat(
                **about,
                online=online if isinstance(online, bool) else None,
                interval=_interval(frame.get("interval")),
            )
        case unknown:
            return _noticed(frame, about, text(unknown))
