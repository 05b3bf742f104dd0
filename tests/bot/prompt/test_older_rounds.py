from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.domain.chat import NOTED, AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from bot.prompt import notes
from bot.prompt.older_rounds import told_today
from tests.fakes import GROUP

ASKED = UserMessage("[提问] 消息号 8\n小明(777): 你好")
CALLED = AssistantMessage("", (ToolCall("1", "send_message", "{}"),))
ESCAPED, SENT = (
    AssistantMessage("", (ToolCall("1", "send_message", f'{{"messages": {{"text": "{text}"}}}}'),))
    for text in (r"\u5c0f\u971c\uff1a\u597d", "好")
)
RESULT = ToolMessage("1", "send_message", "消息已发送")


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ((ASKED, AssistantMessage("好")), None),
        ((ASKED, CALLED, RESULT), None),
        ((ASKED, AssistantMessage(NOTED), notes.note(notes.UNANSWERED)), None),
        ((ASKED, CALLED, RESULT, AssistantMessage("(已用 send_message 回答)")), (ASKED, CALLED, RESULT)),
        (
            (ASKED, AssistantMessage("(没有回答)")),
            (ASKED, AssistantMessage(NOTED), notes.note(notes.UNANSWERED)),
        ),
        ((ASKED, AssistantMessage("(被打断了)")), (ASKED, AssistantMessage(NOTED), notes.note(notes.BROKEN_OFF))),
        (
            (ASKED, CALLED, RESULT, AssistantMessage("(被打断了)")),
            (ASKED, CALLED, RESULT, notes.note(notes.BROKEN_OFF)),
        ),
        (
            (ASKED, AssistantMessage("好\n(前 2 条已送达，之后的没有送达: muted)")),
            (
                ASKED,
                AssistantMessage("好"),
                notes.note(notes.delivery_note(notes.REFUSED.format(reason="muted"), arrived=2)),
            ),
        ),
        ((ASKED, CALLED, RESULT, AssistantMessage("")), (ASKED, CALLED, RESULT)),
        ((ASKED, ESCAPED, RESULT), (ASKED, SENT, RESULT)),
        ((ASKED, AssistantMessage("小霜(10001): 好")), (ASKED, AssistantMessage("好"))),
        ((ASKED, AssistantMessage("旧名(10001): 好")), (ASKED, AssistantMessage("好"))),
        ((ASKED, AssistantMessage("好\n小明(777): 谢谢")), (ASKED, AssistantMessage("好"))),
        (
            (ASKED, AssistantMessage("小明(777): 谢谢")),
            (ASKED, AssistantMessage(NOTED), notes.note(notes.UNANSWERED)),
        ),
    ],
)
def test_an_older_round_is_told_without_what_was_noted_in_its_answers(
    stored: tuple[Message, ...], told: tuple[Message, ...] | None
) -> None:
    shown = told_today(("小霜",), replace(GROUP, platform_id=10001), stored)
    assert shown == (told or stored)
    assert (shown is stored) is (told is None)
    assert told_today(("小霜",), replace(GROUP, platform_id=10001), shown) == shown
