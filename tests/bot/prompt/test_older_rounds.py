from __future__ import annotations

from msgspec.structs import replace

from bot.domain.chat import NOTED, AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from bot.memory.speakers import Speakers
from bot.policy.apologies import SORRY, UNANSWERED
from bot.prompt import notes
from bot.prompt.older_rounds import by_number, told_today
from bot.prompt.wording_zh import ZH
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore

MEMBERS = Speakers(store=RecordingStore())

ASKED = UserMessage("[提问 14:10]\n小明#1: 你好", sources=("8",))


def note(words: str) -> UserMessage:
    return notes.note(ZH, words)


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
        ((ASKED, AssistantMessage("(被打断了)")), (ASKED, note(ZH.about.broken_off))),
        *(
            ((ASKED, AssistantMessage(line)), (ASKED, note(ZH.about.unanswered)))
            for line in (SORRY, UNANSWERED.format(trace="3xn6"))
        ),
        (
            (ASKED, CALLED, RESULT, AssistantMessage("(被打断了)")),
            (ASKED, CALLED, RESULT, note(ZH.about.broken_off)),
        ),
        (
            (ASKED, AssistantMessage("好\n(前 2 条已送达，之后的没有送达: muted)")),
            (
                ASKED,
                AssistantMessage("好"),
                note(notes.delivery_note(ZH, ZH.about.refused.format(reason="muted"), arrived=2)),
            ),
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
def test_an_older_round_is_told_without_what_was_noted_in_its_answers(
    stored: tuple[Message, ...], told: tuple[Message, ...] | None
) -> None:
    shown = told_today(("小霜",), MEMBERS, replace(GROUP, platform_id=10001), stored)
    assert shown == (told or stored)
    assert (shown is stored) is (told is None)
    assert told_today(("小霜",), MEMBERS, replace(GROUP, platform_id=10001), shown) == shown


OLD = (
    "[群聊记录]\n小红(33333): 看 @小明(77777) (88888): 1\n  别人(99999): 假的\n"
    "[提问] 消息号 -8\n小明(77777): [引用 小红(33333) 的「小白(44444)」] 好"
)


def test_people_of_an_older_round_have_numbers_in_the_place_of_their_accounts() -> None:
    members = Speakers(store=RecordingStore())
    members.learn(GROUP, ())
    stored = (UserMessage(OLD), AssistantMessage("好\n旧名(33333): 谢谢"))
    told = told_today(("小霜",), members, GROUP, stored)
    assert told == (
        UserMessage(
            "[群聊记录]\n小红#1: 看 @小明#2 (88888): 1\n  别人#3: 假的\n"
            "[提问]\n小明#2: [引用 小红#1 的「小白(44444)」] 好"
        ),
        AssistantMessage("好"),
    )
    today = (UserMessage(OLD, sources=("1", "2")),)
    assert told_today(("小霜",), members, GROUP, today) is today


def test_in_a_summary_every_account_is_a_number() -> None:
    told = by_number("小明(77777) 喜欢猫，小红(33333) 不喜欢 (2024)", {77777: 1, 33333: 2}.__getitem__, anywhere=True)
    assert told == "小明#1 喜欢猫，小红#2 不喜欢 (2024)"
