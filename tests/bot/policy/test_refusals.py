from __future__ import annotations

import pytest

from bot.policy.refusals import REFUSALS, explain_refusal


@pytest.mark.parametrize(
    ("wording", "kind"),
    [
        ('Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg EventRet:{"result":120}', "muted"),
        ("你已被禁言", "muted"),
        ("对方不是好友，请先加好友", "not a friend"),
        ("账号被风控", "risk control"),
        ("发言过于频繁", "risk control"),
        ("消息内容过长", "too long"),
        ("识别URL失败, uri= /app/x.png", "bad media"),
        ("消息体无法解析, 请检查是否发送了不支持的消息类型", "nothing left"),
    ],
)
def test_a_refusal_is_known_by_its_words(wording: str, kind: str) -> None:
    assert explain_refusal(wording, 1200).startswith(f"{kind}: ")


def test_unknown_words_are_passed_on_and_none_at_all_are_a_number() -> None:
    assert explain_refusal("something new", 1200) == "something new"
    assert explain_refusal("", 100) == "refused with code 100"


def test_every_kind_says_what_to_do() -> None:
    assert len({refusal.kind for refusal in REFUSALS}) == len(REFUSALS)
    assert all(refusal.advice for refusal in REFUSALS)
