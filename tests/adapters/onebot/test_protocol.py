"""Frames in, calls out; every captured frame is read to the right kind of event."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from adapters.onebot.protocol import (
    ActionReply,
    read_account,
    read_answered_message,
    read_forward,
    read_frame,
    read_history,
    read_message_id,
    write_action,
    write_call,
)
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import (
    AccountChanged,
    Connected,
    Heartbeat,
    MemberChanged,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    Muted,
    Noticed,
    Poked,
    Requested,
)
from bot.core.segments import Card, File, Forward, Mention, Picture, Segment, Unsupported
from frostagent.types.speech import Face, Quote, Text
from tests.adapters.onebot.conftest import ACCOUNT, Frame, message
from tests.adapters.onebot.corpus import Capture, captures, ours
from tests.adapters.onebot.test_fields import ANY_JSON
from tests.cases import each_case

Kind = type[object] | None

# --- the corpus -----------------------------------------------------------------------------------

BY_CATEGORY: dict[str, Kind] = {
    "api_error": ActionReply,
    "api_ok": ActionReply,
    "message_group": MessageReceived,
    "message_media": MessageReceived,
    "message_private": MessageReceived,
    "message_rich": MessageReceived,
    "message_sent": MessageSent,
    "message_string": MessageReceived,
    "notice_friend_account": Noticed,
    "notice_group": Noticed,
    "notice_notify": Noticed,
    "request": Requested,
}
BY_NAME: dict[str, tuple[Kind, ...]] = {
    # Bodies of HTTP answers, which never come as frames: no status, no echo.
    "api_error__nc_http_403": (None,),
    "api_error__rkey_expired_body": (None,),
    "meta__go_heartbeat_stat": (Heartbeat,),
    "meta__lg_heartbeat": (Heartbeat,),
    "meta__lg_lifecycle": (Connected,),
    "meta__ll_heartbeat": (Heartbeat,),
    "meta__nc_heartbeat_offline": (Heartbeat,),
    "meta__nc_lifecycle_connect": (Connected,),
    "meta__spec_lifecycle_disable": (Connected,),
    "meta__spec_lifecycle_enable": (Connected,),
    "notice_friend_account__lg_bot_online": (AccountChanged,),
    "notice_friend_account__nc_bot_offline": (AccountChanged,),
    "notice_friend_account__nc_friend_recall": (MessageRecalled,),
    "notice_group__go_group_increase_op0": (MemberChanged,),
    "notice_group__lg_group_recall_tip": (MessageRecalled,),
    "notice_group__nc_group_admin_set": (MemberChanged,),
    "notice_group__nc_group_ban_bot": (Muted,),
    "notice_group__nc_group_decrease_disband": (MemberChanged,),
    "notice_group__nc_group_decrease_leave": (MemberChanged,),
    "notice_group__nc_group_increase_approve": (MemberChanged,),
    "notice_group__nc_group_recall_by_admin": (MessageRecalled,),
    "notice_notify__go_poke_group": (Poked,),
    "notice_notify__lg_poke_group": (Poked,),
    "notice_notify__nc_poke_bot_pokes": (Poked,),
    "notice_notify__nc_poke_friend": (Poked,),
    "notice_notify__nc_poke_other_suffix": (Poked,),
    "edge__malformed_json_null": (None,),
    "edge__malformed_not_json": (None,),
    "edge__malformed_plain_ping": (None,),
    "edge__malformed_truncated": (None,),
    "edge__nulls_in_notice": (MessageRecalled,),
    "edge__unknown_meta": (Noticed,),
    "edge__unknown_post_type": (Noticed,),
    "edge__seq_bot_ping_pong": (MessageReceived,) * 6,
    "edge__seq_duplicate_delivery": (MessageReceived, MessageReceived),
    "edge__seq_duplicate_two_connections": (MessageReceived, MessageReceived),
    "edge__seq_file_message_and_notice": (MessageReceived, Noticed),
    "edge__seq_friend_add_with_request": (Noticed, Requested),
    "edge__seq_recall_before_answer": (MessageReceived, MessageRecalled),
    "edge__seq_response_between_events": (
        Connected,
        MessageReceived,
        ActionReply,
        MessageReceived,
        ActionReply,
        ActionReply,
    ),
}


def expected_of(capture: Capture) -> tuple[Kind, ...]:
    return BY_NAME.get(capture.name) or (BY_CATEGORY.get(capture.category, MessageReceived),)


def test_every_captured_frame_is_read_to_the_right_kind() -> None:
    assert BY_NAME.keys() <= ours().keys()
    for capture in captures():
        read = [read_frame(frame) for frame in capture.frames]
        kinds = tuple(None if one is None else type(one) for one in read)
        assert kinds == expected_of(capture), capture.name


def test_only_the_segments_of_the_future_are_unsupported() -> None:
    unsupported = {
        segment.kind
        for capture in captures()
        for frame in capture.frames
        if isinstance(event := read_frame(frame), MessageReceived)
        for segment in event.segments
        if isinstance(segment, Unsupported)
    }
    assert unsupported == {"future_segment"}


def test_captured_answers_are_read() -> None:
    def data_of(name: str) -> Any:
        (frame,) = ours()[f"api_ok__{name}"].frames
        reply = read_frame(frame)
        assert isinstance(reply, ActionReply)
        return reply.data

    own = read_answered_message(data_of("nc_get_msg_bot_own"), account=3504158305)
    assert own is not None
    assert own.is_own
    assert read_account(data_of("nc_login_info")) == 3504158305
    assert read_message_id(data_of("go_send_ok")) == "-1500833959"
    for name in ("nc_get_forward_msg", "ll_get_forward_msg", "go_get_forward_msg"):
        assert all(node.segments and node.sender.nickname for node in read_forward(data_of(name), account=1))


def test_the_flat_elements_in_what_onebots_answers_are_read() -> None:
    (frame,) = ours()["api_ok__os_get_forward_msg"].frames
    reply = read_frame(frame)
    assert isinstance(reply, ActionReply)
    first, second = read_forward(reply.data, account=1)
    assert first.segments == (Mention(2041336587, "小机"), Text("山顶见"))
    assert [type(segment) for segment in second.segments] == [Face, Card]
    assert second.segments[1] == Card("json", '{"prompt":"[位置]香山"}', "[位置]香山")
    assert (first.sender.user_id, first.sender.nickname) == (1604417739, "木樨")


def test_a_node_is_read_wherever_its_fields_stand() -> None:
    (frame,) = ours()["api_ok__os_get_forward_msg_nodes"].frames
    (shown,) = read_forward(json.loads(frame)["data"], account=1)
    assert (shown.sender.nickname, shown.segments) == ("南星", (Text("带水"),))
    parts = [{"type": "text", "data": {"text": "山顶见"}}]
    told = {"user_id": 7, "nickname": "木樨", "content": parts}
    older = {"uin": "7", "name": "木樨", "content": "山顶见"}
    for node in (told, older, {"type": "node", "data": told}, {"type": "node", **told}, {"type": "node", **older}):
        for data in ([node], {"messages": [node]}, {"message": [node]}):
            (found,) = read_forward(data, account=1)
            assert (found.sender.user_id, found.sender.nickname, found.segments) == (7, "木樨", (Text("山顶见"),)), node


def test_the_hash_of_a_file_is_kept_for_the_server_that_wants_it_back() -> None:
    (frame,) = ours()["message_media__lg_private_file"].frames
    read = read_frame(frame)
    assert isinstance(read, MessageReceived)
    (file,) = read.segments
    assert isinstance(file, File)
    assert (file.name, file.hash[:4], file.id[:5]) == ("路线.txt", "9c1f", "/7f1e")


def test_a_mention_that_a_server_only_tells_of_is_read_once_and_only_where_it_is_one() -> None:
    (frame,) = ours()["message_rich__os_at_in_atme"].frames
    content = json.loads(frame)
    me, (quote, words) = content["self_id"], content["message"]
    at = {"type": "at", "data": {"qq": str(me)}}
    mention, said, quoted = Mention(me), Text(" 那几点集合"), Quote("1169")
    cases: list[tuple[dict[str, object], tuple[Segment, ...]]] = [
        ({}, (quoted, mention, said)),
        ({"message": [words]}, (mention, said)),
        ({"message": [quote, words, at]}, (quoted, said, mention)),
        ({"message": "[CQ:reply,id=1169] 那几点集合"}, (quoted, mention, said)),
        ({"atme": False}, (quoted, said)),
        ({"atme": "true"}, (quoted, said)),
        ({"message_type": "private", "sub_type": "friend"}, (quoted, said)),
    ]
    for changed, expected in cases:
        read = read_frame(json.dumps({**content, **changed}))
        assert isinstance(read, MessageReceived)
        assert read.segments == expected, changed


def test_nothing_that_is_done_to_a_captured_frame_makes_reading_raise() -> None:
    for frame in (frame for capture in captures() for frame in capture.frames):
        raw = frame.encode()
        for cut in range(0, len(raw), max(1, len(raw) // 20)):
            read_frame(raw[:cut])
            read_frame(raw[:cut] + b"\xff" + raw[cut + 1 :])
        for mutant in mutants(frame):
            read_frame(mutant)


def mutants(frame: str) -> list[str]:
    """The frame with each of its top-level fields replaced by everything it should not be."""
    try:
        content = json.loads(frame)
    except ValueError:
        return []
    if not isinstance(content, dict):
        return []
    wrong: list[object] = [None, "", "x", -1, 2**70, 1.5, True, [], {}, [[]], [{}], {"data": None}]
    return [json.dumps({**content, key: value}) for key in content for value in wrong]


# --- frames ---------------------------------------------------------------------------------------

FIELDS = [
    "post_type", "message_type", "notice_type", "request_type", "meta_event_type", "sub_type", "self_id", "user_id",
    "group_id", "message_id", "message", "raw_message", "sender", "time", "status", "interval", "echo", "retcode",
    "data", "wording", "stream",
]  # fmt: skip
WORDS = ["message", "notice", "request", "meta_event", "group", "private", "notify", "poke", "heartbeat", "group_ban"]


@given(st.dictionaries(st.sampled_from(FIELDS), ANY_JSON | st.sampled_from(WORDS), max_size=12))
def test_no_object_makes_reading_raise(frame: dict[str, object]) -> None:
    read_frame(json.dumps(frame))


@given(st.binary() | st.text())
def test_no_bytes_make_reading_raise(frame: bytes | str) -> None:
    read_frame(frame)


@each_case("frame", ["", "null", "ping", "[]", "[1]", '"x"', "7", "{}", '{"a":1}', b"\xff\xfe", "{" * 9000])
def test_what_is_not_onebot_is_nothing(frame: str | bytes) -> None:
    assert read_frame(frame) is None


def test_an_event_is_an_event_even_with_an_echo() -> None:
    assert isinstance(read_frame(orjson.dumps(message(echo="boot-1", status="ok"))), MessageReceived)


def test_half_surrogates_and_nul_do_not_come_in() -> None:
    frame = json.dumps(message("a\ud800b\0c😀"))
    event = read_frame(frame)
    assert isinstance(event, MessageReceived)
    assert event.segments == (Text("a�bc😀"),)


# --- replies --------------------------------------------------------------------------------------


def reply(**fields: object) -> ActionReply:
    read = read_frame(orjson.dumps({"status": "failed", "retcode": 1200, "echo": "e", **fields}))
    assert isinstance(read, ActionReply)
    return read


@each_case(
    ("status", "retcode", "ok"),
    [
        ("ok", 0, True),
        ("ok", None, True),
        ("ok", "0", True),
        ("ok", 1, False),
        ("ok", 120, False),
        (None, 0, True),
        (None, "0", True),
        ("failed", 0, False),
        ("failed", 200, False),
        ("failed", 1200, False),
        ("async", 1, False),
        (None, None, False),
        (None, False, False),
    ],
)
def test_success_is_ok_or_zero_and_never_200(status: str | None, retcode: object, ok: bool) -> None:
    assert reply(status=status, retcode=retcode).ok is ok


@each_case(
    ("data", "ok", "retcode"),
    [
        ({"result": 120101005, "errMsg": "ERR_NOT_GROUP_ADMIN"}, False, 120101005),
        ({"result": 0, "errMsg": ""}, True, 0),
        ({"result": {"wording": ""}, "errCode": 7, "errMsg": ""}, False, 7),
        ({"result": True, "errMsg": ""}, True, 0),
        ({"result": 3}, True, 0),  # a die
        ([{"result": 3, "errMsg": "x"}], True, 0),
        (None, True, 0),
    ],
)
def test_a_result_of_qq_inside_the_data_is_a_failure(data: object, ok: bool, retcode: int) -> None:
    read = reply(status="ok", retcode=0, data=data)
    assert (read.ok, read.retcode) == (ok, retcode)
    assert read.wording == ("ERR_NOT_GROUP_ADMIN" if retcode > 100 else "")


@each_case(("echo", "expected"), [("b-1", "b-1"), (None, ""), (0, ""), ({"seq": 12}, ""), ("", "")])
def test_only_text_can_be_an_echo_of_ours(echo: object, expected: str) -> None:
    assert reply(echo=echo).echo == expected


@each_case(
    ("fields", "expected"),
    [
        ({"wording": "消息不存在", "message": "x"}, "消息不存在"),
        ({"message": "x"}, "x"),
        ({"msg": "API_NOT_FOUND"}, "API_NOT_FOUND"),
        ({}, ""),
    ],
)
def test_the_servers_own_words_are_found_wherever_they_are(fields: Frame, expected: str) -> None:
    assert reply(**fields).wording == expected


TIMEOUT = (
    "Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg "
    'ListenerName:NodeIKernelMsgListener/onMsgInfoListUpdate EventRet:\n{"result":%d,"errMsg":""}\n'
)


@each_case(
    ("retcode", "wording", "unknown"),
    [
        (1200, TIMEOUT % 0, True),
        (1200, TIMEOUT % 120, False),
        (1200, TIMEOUT % 1200, False),
        (1200, TIMEOUT % -1, False),
        (1200, "消息不存在", False),
        (1400, TIMEOUT % 0, False),
    ],
)
def test_a_kernel_timeout_may_have_been_done_unless_qq_has_said_no(retcode: int, wording: str, unknown: bool) -> None:
    assert reply(retcode=retcode, wording=wording).may_be_done("send_group_msg") is unknown


@each_case(
    ("stream", "kind", "final"),
    [("stream-action", "stream", False), ("stream-action", "response", True), ("normal-action", "stream", True)],
)
def test_only_the_last_answer_of_a_stream_is_final(stream: str, kind: str, final: bool) -> None:
    assert reply(stream=stream, data={"type": kind}).final is final


def test_a_refused_token_is_told_by_a_frame_that_answers_nothing() -> None:
    assert reply(retcode=1403, echo=None).is_bad_token
    assert not reply(retcode=1403).is_bad_token


@each_case(
    ("fields", "known"),
    [
        ({}, True),
        ({"real_seq": "71"}, True),
        ({"real_seq": "0"}, False),
        ({"real_seq": 0}, False),
        ({"real_seq": "71", "raw": {"sendStatus": 2}}, True),
        ({"real_seq": "71", "raw": {"sendStatus": 0}}, False),
        ({"real_seq": "71", "raw": {"sendStatus": 1}}, False),
        ({"real_seq": "0", "post_type": "message"}, True),  # somebody else's
    ],
)
def test_words_of_the_bot_that_qq_has_not_taken_have_no_identity_in_a_history(fields: Frame, known: bool) -> None:
    row = {**message("hi"), "post_type": "message_sent", "message_id": 7, "user_id": ACCOUNT, **fields}
    (read,) = read_history({"messages": [row]}, Conversation(ACCOUNT, "group", 4242), server="NapCat.Onebot 4.18.13")
    assert read.has_identity is known


@each_case(
    ("server", "fields", "proven"),
    [
        ("NapCat.Onebot 4.18.13", {"real_seq": "71"}, True),
        ("NapCat.Onebot 4.6.0", {}, False),  # which has no such field
        ("LLOneBot 8.1.7", {"message_seq": 71}, True),
        ("LLOneBot 7.2.0", {"message_seq": 0}, True),  # it failed, and has no identity
        ("LLOneBot 3.1.0", {"message_seq": 7}, False),  # its id once more
        ("LLOneBot 7.2.0", {"message_seq": 7, "raw": {"sendStatus": 2}}, True),
        ("Lagrange.OneBot 0.0.3", {}, True),
        ("Lagrange.OneBot 0.0.3", {"post_type": "message"}, True),
        ("go-cqhttp v1.2.0", {}, True),
        ("SnowLuma 0.9.0-node", {}, True),
        ("onebots 0.4.96", {"message_seq": 71}, False),
        ("", {"message_seq": 71}, False),
        ("", {"real_seq": "71"}, True),
        ("", {"post_type": "message"}, False),
        ("", {"user_id": 777, "post_type": "message"}, True),  # somebody else's
    ],
)
def test_words_of_the_bot_in_a_history_that_may_hold_failed_ones_are_not_proven(
    server: str, fields: Frame, proven: bool
) -> None:
    row = {
        **message("hi"),
        "post_type": "message_sent",
        "message_id": 7,
        "user_id": ACCOUNT,
        "message_seq": 7,
        **fields,
    }
    (read,) = read_history({"messages": [row]}, Conversation(ACCOUNT, "group", 4242), server=server)
    assert read.unproven is not proven
    assert read.has_identity is (fields.get("message_seq") != 0)


# --- answers --------------------------------------------------------------------------------------

NODES: list[object] = [
    {"messages": [{"message": [{"type": "text", "data": {"text": "一"}}], "user_id": 5, "message_type": "group",
                   "group_id": 284840486, "sender": {"user_id": 5, "nickname": "明"}, "time": 9}]},
    {"messages": [{"content": [{"type": "text", "data": {"text": "一"}}], "sender": {"user_id": 5, "nickname": "明"},
                   "time": 9, "message_type": "group"}]},
    {"messages": [{"content": "一", "sender": {"user_id": 5, "nickname": "明"}, "time": 9, "group_id": 4242}]},
    {"message": [{"type": "node", "data": {"user_id": "5", "nickname": "明", "time": 9,
                                           "content": [{"type": "text", "data": {"text": "一"}}]}}]},
    [{"type": "node", "data": {"uin": "5", "name": "明", "time": 9, "content": "一"}}],
]  # fmt: skip


@each_case("data", NODES)
def test_a_forward_is_read_in_every_dialect(data: object) -> None:
    [node] = read_forward(data, account=ACCOUNT)
    assert (node.self_id, node.time, node.segments) == (ACCOUNT, 9.0, (Text("一"),))
    assert (node.sender.user_id, node.sender.nickname) == (5, "明")


def test_a_forward_inside_a_forward_keeps_its_place() -> None:
    inner = {"type": "forward", "data": {"id": "7436377759204399490"}}
    [node] = read_forward({"messages": [{"message": [inner]}]}, account=ACCOUNT)
    assert node.segments == (Forward("7436377759204399490"),)


@given(ANY_JSON)
def test_no_answer_makes_reading_raise(data: object) -> None:
    assert isinstance(read_forward(data, account=1), tuple)
    assert isinstance(read_message_id(data), str)
    assert isinstance(read_account(data), int)
    read_answered_message(data, account=1)


def test_an_answered_message_may_be_the_bots_own() -> None:
    found = read_answered_message(message(post_type="message_sent", user_id=ACCOUNT), account=ACCOUNT)
    assert found is not None
    assert found.is_own
    assert found.conversation == Conversation(ACCOUNT, "group", 4242)


def test_an_answered_message_without_an_account_is_the_askers() -> None:
    found = read_answered_message({"group_id": 4242, "message": "[CQ:at,qq=7] hi", "sender": {"user_id": 5}}, account=9)
    assert found is not None
    assert (found.self_id, found.conversation) == (9, Conversation(9, "group", 4242))
    assert found.segments == (Mention(7), Text(" hi"))


@each_case("data", [None, {}, [], "x", {"status": "deleted", "message": "x"}])
def test_no_message_is_found_in_an_empty_answer(data: object) -> None:
    assert read_answered_message(data, account=1) is None


# --- writing --------------------------------------------------------------------------------------


def test_a_group_message_is_sent_to_the_group() -> None:
    action = SendMessage(Conversation(ACCOUNT, "group", 4242), (Text("好"), Quote("-3")))
    assert write_action(action) == (
        "send_group_msg",
        {
            "group_id": 4242,
            "message": [{"type": "reply", "data": {"id": "-3"}}, {"type": "text", "data": {"text": "好"}}],
        },
    )


def test_a_friend_is_written_to_without_a_group() -> None:
    name, params = write_action(SendMessage(Conversation(ACCOUNT, "private", 20002), (Text("好"),)))
    assert name == "send_private_msg"
    assert params == {"user_id": 20002, "message": [{"type": "text", "data": {"text": "好"}}]}


def test_a_temporary_session_is_answered_through_its_group() -> None:
    name, params = write_action(SendMessage(Conversation(ACCOUNT, "private", 20002, 4242), (Text("好"),)))
    assert name == "send_private_msg"
    assert (params["user_id"], params["group_id"]) == (20002, 4242)


def test_a_call_carries_its_echo() -> None:
    call = {"action": "get_msg", "params": {"message_id": 1}, "echo": "b-1"}
    assert json.loads(write_call("get_msg", {"message_id": 1}, "b-1")) == call


@each_case("id_", ["9" * 20, "9" * 19, 2**63, 2**64 - 1, "9" * 18, 2**63 - 1])
@each_case("kind", ["group", "private"])
@each_case("field", ["self_id", "user_id", "group_id"])
def test_a_message_that_is_read_can_be_answered_whatever_its_ids(field: str, id_: object, kind: str) -> None:
    event = read_frame(orjson.dumps(message(message_type=kind, sub_type="group") | {field: id_}))
    if isinstance(event, MessageReceived):
        assert write_call(*write_action(SendMessage(event.conversation, (Text("好"),))), "b-1")


def test_pictures_are_read_from_a_frame() -> None:
    frame = message(message="[CQ:image,file=a.image,url=https://x/?a=1&amp;b=2]")
    event = read_frame(orjson.dumps(frame))
    assert isinstance(event, MessageReceived)
    assert event.segments == (Picture("a.image", "https://x/?a=1&b=2"),)
