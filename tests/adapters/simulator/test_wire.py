"""The shapes of answers and events against recorded ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapters.simulator import wire


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
