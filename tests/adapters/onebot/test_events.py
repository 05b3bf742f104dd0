"""Events, one by one; the corpus is read in test_protocol."""

from __future__ import annotations

from collections.abc import Callable

from adapters.onebot.events import read_event, read_time
from bot.core.conversation import Conversation
from bot.core.events import (
    ANONYMOUS,
    AccountChanged,
    Connected,
    Event,
    Heartbeat,
    MemberChanged,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    Muted,
    Noticed,
    Poked,
    Requested,
    Sender,
    account_of,
)
from frostagent.types.speech import Text
from tests.adapters.onebot.conftest import ACCOUNT, Frame, heartbeat, lifecycle, message
from tests.cases import each_case

GROUP = Conversation(ACCOUNT, "group", 4242)
FRIEND = Conversation(ACCOUNT, "private", 20002)


def received(frame: Frame) -> MessageReceived:
    event = read_event(frame)
    assert isinstance(event, MessageReceived)
    return event


def anonymous(**mask: object) -> MessageReceived:
    frame = {**message("哼"), "sub_type": "anonymous", "user_id": ANONYMOUS, "anonymous": mask or None}
    return received({**frame, "sender": {"user_id": ANONYMOUS, "nickname": "匿名消息"}})


def test_anonymous_members_are_told_apart_by_number_or_by_flag() -> None:
    masks: list[dict[str, object]] = [
        {"id": 7, "name": "纸飞机", "flag": "a|b"},
        {"id": 8, "name": "大香蕉", "flag": "c|d"},
        {"id": 0, "name": "纸飞机", "flag": "e|f"},
        {"id": 0, "name": "纸飞机", "flag": "g|h"},
        {"name": "饭团"},
    ]
    read = [anonymous(**mask).sender for mask in masks]
    assert [one.nickname for one in read] == [mask["name"] for mask in masks]
    assert len({one.user_id for one in read}) == len(masks)
    assert {account_of(one.user_id) for one in read} == {ANONYMOUS}
    assert read == [anonymous(**mask).sender for mask in masks]  # the same one again
    assert anonymous().sender == Sender(ANONYMOUS, "匿名消息")
    assert anonymous(id=-1, flag="").sender.user_id == ANONYMOUS
    named = received({**message("hi"), "anonymous": {"id": 7}}).sender  # somebody with an account
    assert account_of(named.user_id) == named.user_id


def private(**fields: object) -> Frame:
    return {**message(), "message_type": "private", "sub_type": "friend", **fields}


def notice(kind: str, sub_type: str | None = None, **fields: object) -> Frame:
    frame: Frame = {"time": 5, "self_id": ACCOUNT, "post_type": "notice", "notice_type": kind, **fields}
    return frame if sub_type is None else {**frame, "sub_type": sub_type}


def test_a_group_message_is_read_with_everything_it_says() -> None:
    frame = message("早", message_id=-7, real_seq="41672", group_name="测试群")
    frame["sender"] |= {"card": "明", "role": "admin"}
    assert read_event(frame) == MessageReceived(
        self_id=ACCOUNT,
        time=1_776_056_153.0,
        conversation=GROUP,
        message_id="-7",
        sender=Sender(20002, "小明", "明", "admin"),
        segments=(Text("早"),),
        sub_type="normal",
        message_seq="41672",
        group_name="测试群",
    )


def test_ids_may_be_text() -> None:
    event = received(message() | {"self_id": "10001", "user_id": "20002", "group_id": "4242", "message_id": "9"})
    assert (event.self_id, event.sender.user_id, event.conversation, event.message_id) == (ACCOUNT, 20002, GROUP, "9")
    assert event.conversation.via_group == 0


def test_a_time_in_milliseconds_becomes_seconds() -> None:
    assert received(message(time=1_776_056_153_123)).time == 1_776_056_153.123


NOW = 1_776_056_200.0
NO_NUMBER: tuple[object, ...] = (None, "", "soon", True, [], {})


@each_case(
    ("said", "time"),
    [
        ("1776056153.5", 1_776_056_153.5),
        (1_776_056_153.5, 1_776_056_153.5),
        (" 1776056153 ", 1_776_056_153.0),
        ("1776056153500", 1_776_056_153.5),
        (1_776_056_153_500_000, 1_776_056_153.5),
        (1_776_056_153_500_000_000, 1_776_056_153.5),
        (NOW + 3600, NOW + 3600),
        *((bad, NOW) for bad in (*NO_NUMBER, "1.776e9", "nan", "inf", 0, -5, "-1776056153")),
        *((late, NOW) for late in (NOW + 90_000, 9e10, 2**63 - 1, 10.0**300, "9" * 19, "9" * 40)),
    ],
)
def test_a_time_is_read_in_any_form_and_what_is_none_is_now(said: object, time: float) -> None:
    assert read_time(said, now=NOW) == time
    event = read_event(message(time=said), now=NOW)
    assert event is not None
    assert event.time == time


def test_a_time_is_a_time_also_where_nobody_knows_what_time_it_is() -> None:
    assert read_time("1776056153.5") == 1_776_056_153.5
    assert read_time(-1) == 0.0


def test_a_missing_account_or_time_is_filled_in() -> None:
    frame = message()
    del frame["self_id"], frame["time"]
    event = read_event(frame, account=ACCOUNT, now=7.5)
    assert event is not None
    assert (event.self_id, event.time) == (ACCOUNT, 7.5)


def test_a_missing_sender_is_known_by_number_only() -> None:
    assert received(message(sender=None)).sender == Sender(20002)


def test_a_sender_may_be_named_only_inside() -> None:
    assert received(message(user_id=None)).sender.user_id == 20002


@each_case("role", ["", None, "王", 3])
def test_an_unknown_role_is_unknown(role: object) -> None:
    assert received(message(sender={"role": role})).sender.role == "unknown"


@each_case(
    ("fields", "expected"),
    [
        ({"real_seq": "55", "message_seq": 1}, "55"),
        ({"real_seq": "0", "message_seq": 1}, ""),
        ({"message_seq": 478121}, "478121"),
        ({"message_seq": 1}, ""),
        ({"message_seq": 0}, ""),
        ({}, ""),
    ],
)
def test_the_true_sequence_number_is_found_or_empty(fields: Frame, expected: str) -> None:
    assert received(message(message_id=1, **fields)).message_seq == expected


@each_case(
    ("fields", "group"),
    [
        ({"group_id": 4242, "temp_source": 0}, 4242),
        ({"group_id": 284840486, "temp_source": 0}, 0),
        ({"group_id": 284840486, "temp_source": 4242}, 4242),
        ({"group_id": None, "sender": {"group_id": 4242}}, 4242),
        ({"group_id": None}, 0),
    ],
)
def test_a_temporary_session_is_private_and_remembers_its_group(fields: Frame, group: int) -> None:
    conversation = received(private(sub_type="group", **fields)).conversation
    assert (conversation, conversation.via_group) == (FRIEND, group)


def test_a_friend_is_private_whatever_group_is_named() -> None:
    conversation = received(private(group_id=4242)).conversation
    assert (conversation, conversation.via_group) == (FRIEND, 0)


def test_a_message_that_is_only_in_raw_message_is_read_from_there() -> None:
    assert received(message(message="", raw_message="&#91;正文&#93;")).segments == (Text("[正文]"),)


@each_case(
    "content",
    [[], "", None, [{}], [{"type": "text", "data": {"text": ""}}], [{"type": "text"}], {}],
)
@each_case("kind", [message, private])
def test_a_message_with_nothing_in_it_is_none(kind: Callable[..., Frame], content: object) -> None:
    """NapCat sends such a one beside a poke and a new friend: nobody said anything."""
    raw = "[object Object]" if content == [] else ""
    assert read_event(kind(message=content, raw_message=raw)) is None


@each_case(
    "segment",
    [
        {"type": "at", "data": {"qq": str(ACCOUNT)}},
        {"type": "text", "data": {"text": " "}},
        {"type": "face", "data": {"id": "1"}},
        {"type": "nobody-knows", "data": {}},
    ],
)
def test_a_message_with_anything_in_it_is_one(segment: Frame) -> None:
    assert len(received(message(message=[segment])).segments) == 1


@each_case("frame", [message(post_type="message_sent", user_id=ACCOUNT), message(user_id=ACCOUNT)])
def test_the_bots_own_message_is_a_message_sent_whatever_it_is_called(frame: Frame) -> None:
    event = read_event(frame)
    assert isinstance(event, MessageSent)
    assert (event.conversation, event.message_id, event.segments) == (GROUP, "1", (Text("hi"),))


def test_what_a_member_said_is_not_the_bots_whatever_it_is_called() -> None:
    for frame in (message(post_type="message_sent"), private(post_type="message_sent", target_id=20003)):
        event = read_event(frame)
        assert isinstance(event, Noticed)
        assert event.kind == "message_sent"


@each_case(("target", "session"), [(20002, 20002), (0, 0), (ACCOUNT, 0), (None, 0)])
def test_the_bots_own_private_message_belongs_to_whom_it_was_for(target: int | None, session: int) -> None:
    event = read_event(private(post_type="message_sent", user_id=ACCOUNT, target_id=target, group_id=None))
    assert isinstance(event, MessageSent)
    assert event.conversation == Conversation(ACCOUNT, "private", session)


@each_case(
    "frame", [message(group_id=0), message(user_id=0, sender=None), {"post_type": "message", "message_type": "group"}]
)
def test_a_message_from_nobody_or_nowhere_is_ignored(frame: Frame) -> None:
    assert read_event(frame) is None


def test_a_message_of_another_sort_is_noticed() -> None:
    event = read_event(message(message_type="guild"))
    assert isinstance(event, Noticed)
    assert (event.kind, event.sub_type) == ("message", "guild")


NOTICES: list[tuple[Frame, Event]] = [
    (
        notice("group_recall", group_id=4242, user_id=20002, operator_id=3, message_id=-9),
        MessageRecalled(self_id=ACCOUNT, time=5.0, conversation=GROUP, message_id="-9", user_id=20002, operator_id=3),
    ),
    (
        notice("friend_recall", group_id=None, user_id="20002", message_id="9"),
        MessageRecalled(
            self_id=ACCOUNT, time=5.0, conversation=FRIEND, message_id="9", user_id=20002, operator_id=20002
        ),
    ),
    (
        notice("notify", "poke", group_id=4242, user_id=20002, target_id=ACCOUNT),
        Poked(self_id=ACCOUNT, time=5.0, conversation=GROUP, user_id=20002, target_id=ACCOUNT),
    ),
    (
        notice("notify", "poke", user_id=20002, sender_id=20002, target_id=ACCOUNT),
        Poked(self_id=ACCOUNT, time=5.0, conversation=FRIEND, user_id=20002, target_id=ACCOUNT),
    ),
    (
        notice("notify", "poke", user_id=ACCOUNT, target_id=20002),
        Poked(self_id=ACCOUNT, time=5.0, conversation=FRIEND, user_id=ACCOUNT, target_id=20002),
    ),
    (
        notice("group_ban", "ban", group_id=4242, user_id=0, operator_id=3, duration=-1),
        Muted(self_id=ACCOUNT, time=5.0, conversation=GROUP, user_id=0, operator_id=3, seconds=-1),
    ),
    (
        notice("group_ban", "lift_ban", group_id=4242, user_id=ACCOUNT, operator_id=3, duration=600),
        Muted(self_id=ACCOUNT, time=5.0, conversation=GROUP, user_id=ACCOUNT, operator_id=3, seconds=0),
    ),
    (
        notice("group_increase", "invite", group_id=4242, user_id=20002, operator_id=0),
        MemberChanged(
            self_id=ACCOUNT,
            time=5.0,
            conversation=GROUP,
            user_id=20002,
            operator_id=0,
            change="joined",
            how="invite",
        ),
    ),
    (
        notice("group_decrease", "kick_me", group_id=4242, user_id=ACCOUNT, operator_id=3),
        MemberChanged(
            self_id=ACCOUNT,
            time=5.0,
            conversation=GROUP,
            user_id=ACCOUNT,
            operator_id=3,
            change="left",
            how="kick_me",
        ),
    ),
    (
        notice("group_admin", "set", group_id=4242, user_id=ACCOUNT),
        MemberChanged(
            self_id=ACCOUNT,
            time=5.0,
            conversation=GROUP,
            user_id=ACCOUNT,
            operator_id=0,
            change="promoted",
            how="set",
        ),
    ),
    (
        notice("group_admin", "unset", group_id=4242, user_id=ACCOUNT),
        MemberChanged(
            self_id=ACCOUNT,
            time=5.0,
            conversation=GROUP,
            user_id=ACCOUNT,
            operator_id=0,
            change="demoted",
            how="unset",
        ),
    ),
    (
        notice("group_admin", "crowned", group_id=4242, user_id=ACCOUNT),
        Noticed(self_id=ACCOUNT, time=5.0, kind="group_admin", sub_type="crowned", conversation=GROUP, user_id=ACCOUNT),
    ),
    (
        notice("bot_offline", user_id=ACCOUNT, tag="KickedOffLine", message="被迫下线"),
        AccountChanged(self_id=ACCOUNT, time=5.0, online=False, reason="被迫下线"),
    ),
    (notice("bot_online", reason=0), AccountChanged(self_id=ACCOUNT, time=5.0, online=True)),
    (
        notice("notify", "input_status", user_id=20002, group_id=0),
        Noticed(self_id=ACCOUNT, time=5.0, kind="notify", sub_type="input_status", conversation=FRIEND, user_id=20002),
    ),
    (
        notice("reaction", "add", group_id=4242, operator_id=3),
        Noticed(self_id=ACCOUNT, time=5.0, kind="reaction", sub_type="add", conversation=GROUP),
    ),
    (notice("client_status"), Noticed(self_id=ACCOUNT, time=5.0, kind="client_status")),
    (notice(""), Noticed(self_id=ACCOUNT, time=5.0, kind="")),
]


@each_case(("frame", "expected"), NOTICES)
def test_every_notice_is_read(frame: Frame, expected: Event) -> None:
    assert read_event(frame) == expected


@each_case(("kind", "group"), [("friend", 0), ("group", 4242)])
def test_a_request_keeps_its_flag_as_text(kind: str, group: int) -> None:
    frame = {"post_type": "request", "request_type": kind, "flag": 17, "user_id": "5", "comment": "hi"}
    event = read_event({**frame, "group_id": group, "sub_type": "add"}, account=ACCOUNT)
    assert isinstance(event, Requested)
    assert (event.kind, event.flag, event.user_id, event.group_id, event.comment) == (kind, "17", 5, group, "hi")


@each_case("online", [True, False, None])
def test_a_heartbeat_says_whether_the_account_is_online_or_nothing(online: bool | None) -> None:
    assert read_event(heartbeat(online=online)) == Heartbeat(
        self_id=ACCOUNT, time=1_764_033_440.0, online=online, interval=30.0
    )


def test_a_lifecycle_event_says_hello() -> None:
    assert read_event(lifecycle()) == Connected(self_id=ACCOUNT, time=1_764_033_403.0)


@each_case(
    ("frame", "kind"),
    [
        ({"post_type": "meta_event", "meta_event_type": "future"}, "future"),
        ({"post_type": "request", "request_type": "future"}, "future"),
        ({"post_type": "request", "request_type": "friend", "flag": None}, "friend"),
        ({"post_type": "request", "request_type": "group"}, "group"),
        ({"post_type": "future"}, "future"),
        ({"post_type": None}, ""),
        ({"post_type": ["x"]}, '["x"]'),
        ({"post_type": "meta_event"}, ""),
    ],
)
def test_what_nobody_knows_is_noticed_by_its_name(frame: Frame, kind: str) -> None:
    assert read_event(frame, account=ACCOUNT) == Noticed(self_id=ACCOUNT, time=0.0, kind=kind)


@each_case(
    ("said", "seconds"),
    [
        (30_000, 30.0),
        ("30000", 30.0),
        (1000, 1.0),
        (3, 3.0),
        (999, 999.0),
        (2.5, 2.5),
        ("3", 3.0),
        (3_600_000, 3600.0),
        *((bad, 0.0) for bad in (*NO_NUMBER, 0, -3, -30_000)),
        *((absurd, 0.0) for absurd in (3_600_001, 10**15, 2**63, 10.0**300)),
    ],
)
def test_a_heartbeat_says_when_the_next_one_comes_in_seconds_or_in_thousandths(said: object, seconds: float) -> None:
    event = read_event({**heartbeat(), "interval": said})
    assert isinstance(event, Heartbeat)
    assert event.interval == seconds


@each_case("field", ["user_id", "group_id"])
@each_case("number", [0, -5, "-5"])
def test_a_message_from_nobody_or_nowhere_is_none(field: str, number: int | str) -> None:
    frame: Frame = {"post_type": "message", "message_type": "group", "self_id": ACCOUNT, "user_id": 5, "group_id": 6}
    frame |= {"message": "hi", "message_id": 1, "time": 1, field: number}
    assert read_event(frame) is None
