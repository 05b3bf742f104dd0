from __future__ import annotations

from frostagent.engine.answer_filter import LONGEST, is_receipt
from tests.cases import each_case


@each_case(
    "text",
    [
        "消息已发送",
        "消息已发送 (message_id: 5502844)",
        "[消息已发送]",
        "（已发送）",
        "已回复。",
        "Message sent.",
        "Sent! (message_id: -77)",
    ],
)
def test_what_a_model_was_told_of_its_call_is_no_answer(text: str) -> None:
    assert is_receipt(text)


@each_case(
    "text", ["", "好的", "无", "null", "快递已发送，明天到", "消息", "邮件已发送", "已回复你的邮件", "已发送" * 30]
)
def test_whatever_says_more_or_something_else_is_one(text: str) -> None:
    assert not is_receipt(text)


def test_of_a_long_text_nothing_is_a_receipt() -> None:
    longest = f"消息已发送 (message_id: {'1' * 40})"
    assert len(longest) == LONGEST
    assert is_receipt(longest)
    assert not is_receipt(longest.replace("1)", "11)"))
