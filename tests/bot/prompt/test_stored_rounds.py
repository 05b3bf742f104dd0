from __future__ import annotations

from msgspec.structs import replace

from bot.prompt import render
from bot.prompt.stored_rounds import tell_round
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import NOTED, AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from tests.cases import each_case
from tests.fakes import GROUP
from tests.fallback_lines import SORRY, UNANSWERED

ASKED = UserMessage("[提问 14:10]\n小明#1: 你好", sources=("8",))


def note(words: str) -> UserMessage:
    return render.history_note(ZH, words)


CALLED = AssistantMessage("", (ToolCall("1", "send_message", "{}"),))
ESCAPED, SENT = (
    AssistantMessage("", (ToolCall("1", "send_message", f'{{"messages": {{"text": "{text}"}}}}'),))
    for text in (r"\u5c0f\u971c\uff1a\u597d", "好")
)
RESULT = ToolMessage("1", "send_message", "消息已发送")


@each_case(
    ("stored", "told"),
    [
        ((ASKED, AssistantMessage("好")), None),
        ((ASKED, CALLED, RESULT), None),
        ((ASKED, note(ZH.about.unanswered)), None),
        *(
            ((ASKED, AssistantMessage(NOTED), note(what)), (ASKED, note(what)))
            for what in (ZH.about.unanswered, ZH.about.silent)
        ),
        ((ASKED, AssistantMessage(NOTED)), (ASKED, note(ZH.about.unanswered))),
        ((ASKED, CALLED, RESULT, AssistantMessage("(已用 send_message 回答)")), (ASKED, CALLED, RESULT)),
        (
            (ASKED, AssistantMessage("(没有回答)")),
            (ASKED, note(ZH.about.unanswered)),
        ),
        *(
            ((ASKED, AssistantMessage(line)), (ASKED, note(ZH.about.unanswered)))
            for line in (SORRY, UNANSWERED.format(trace="3xn6"))
        ),
        ((ASKED, CALLED, RESULT, AssistantMessage("")), (ASKED, CALLED, RESULT)),
        ((ASKED, ESCAPED, RESULT), (ASKED, SENT, RESULT)),
        ((ASKED, AssistantMessage("小霜(10001): 好")), (ASKED, AssistantMessage("好"))),
        ((ASKED, AssistantMessage("旧名(10001): 好")), (ASKED, AssistantMessage("好"))),
        ((ASKED, AssistantMessage("好\n小明#1: 谢谢")), (ASKED, AssistantMessage("好"))),
        (
            (ASKED, AssistantMessage("小明#1: 谢谢")),
            (ASKED, note(ZH.about.unanswered)),
        ),
    ],
)
def test_a_round_is_told_without_our_frame_and_our_own_lines(
    stored: tuple[Message, ...], told: tuple[Message, ...] | None
) -> None:
    shown = tell_round(("小霜",), replace(GROUP, platform_id=10001), stored)
    assert shown == (told or stored)
    assert (shown is stored) is (told is None)
    assert tell_round(("小霜",), replace(GROUP, platform_id=10001), shown) == shown
