"""The shapes of answers and events against recorded ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.simulator import wire
from adapters.simulator.wire import mention, text
from tests.cases import each_case


def test_an_answer_has_the_recorded_keys(recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded("api_ok__nc_login_info")
    assert wire.ok(real["data"], real["echo"]) == real


def test_a_refusal_has_the_recorded_keys(recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded("api_error__nc_empty_message")
    assert wire.failed(real["retcode"], real["message"], real["echo"]) == real


def test_lifecycle_and_heartbeat_are_the_recorded_ones(recorded: Callable[[str], dict[str, Any]]) -> None:
    hello, beat = recorded("meta__nc_lifecycle_connect"), recorded("meta__nc_heartbeat_offline")
    assert wire.lifecycle(hello["self_id"], hello["time"]) == hello
    assert wire.heartbeat(beat["self_id"], beat["time"], online=False, interval=30.0) == beat


def test_a_poke_has_the_recorded_fields(recorded: Callable[[str], dict[str, Any]]) -> None:
    friend, group = recorded("notice_notify__nc_poke_friend"), recorded("notice_notify__nc_poke_bot_pokes")
    assert wire.poke(1, 2, user_id=3, target_id=1, group_id=None).keys() == friend.keys()
    assert wire.poke(1, 2, user_id=3, target_id=1, group_id=4).keys() == group.keys()


def test_a_notice_leaves_out_what_is_none() -> None:
    assert "group_id" not in wire.notice(1, 2.9, "friend_recall", group_id=None)
    assert wire.notice(1, 2.9, "friend_recall")["time"] == 2


def test_a_refusal_says_code_and_wording() -> None:
    assert str(wire.CallRefused(1200, "消息不存在")) == "消息不存在 (1200)"


def test_what_qq_did_not_confirm_is_a_timeout_with_all_it_said() -> None:
    assert wire.unconfirmed().endswith("onMsgInfoListUpdate EventRet:\n{}\n")
    assert wire.unconfirmed(result=0, errMsg="").endswith('EventRet:\n{\n    "result": 0,\n    "errMsg": ""\n}\n')


def test_what_qq_refused_says_why() -> None:
    words = wire.rejected(110, "发送失败")
    assert words.startswith("EventChecker Failed: NTEvent")
    assert '"result": 110' in words
    assert "发送失败" in words


@each_case(
    ("written", "segments"),
    [
        ("", []),
        ("hi", [text("hi")]),
        ("[CQ:at,qq=10001] hi", [mention(10001), text(" hi")]),
        ("a[CQ:face,id=1]b", [text("a"), {"type": "face", "data": {"id": "1"}}, text("b")]),
        ("[CQ:shake]", [{"type": "shake", "data": {}}]),
        ("[CQ:at,qq=1", [text("[CQ:at,qq=1")]),
        ("&#91;CQ:at,qq=all&#93; &amp;#91;", [text("[CQ:at,qq=all] &#91;")]),
        ("[CQ:image,file=a&#44;b=c.png]", [{"type": "image", "data": {"file": "a,b=c.png"}}]),
    ],
)
def test_a_string_is_read_as_segments(written: str, segments: list[dict[str, Any]]) -> None:
    assert wire.parse_cq(written) == segments


@given(st.text(alphabet="[]&,=;# aCQ:汉#91", min_size=1))
def test_no_text_can_smuggle_a_code(words: str) -> None:
    assert (
        "".join(piece["data"]["text"] for piece in wire.parse_cq(wire.format_cq([text(f"|{words}|")]))) == f"|{words}|"
    )


def test_values_are_written_as_javascript_writes_them() -> None:
    segment = {"type": "face", "data": {"id": 1, "raw": {"a": 1}, "big": True, "none": None}}
    assert wire.format_cq([segment]) == "[CQ:face,id=1,raw=&#91;object Object&#93;,big=true]"


@pytest.mark.parametrize(
    "name",
    ["message_group__nc_group_at_middle_suffix", "message_media__nc_group_image", "message_media__nc_group_file"],
)
def test_raw_messages_are_the_recorded_ones(name: str, recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded(name)
    assert wire.format_cq(real["message"]) == real["raw_message"]
