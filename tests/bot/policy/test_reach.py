from __future__ import annotations

import pytest

from bot.core.conversation import Conversation, MessageType
from bot.core.language import Language
from bot.core.segments import Mention, SendSegment
from bot.policy.permissions import WAIT, check_reach, confirmation_text
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.runs import Asker
from frostagent.types.speech import Attachment, Face, MentionAll, Quote, Text
from frostagent.types.suspension import Suspend
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE

OTHER = Conversation(BOT, "group", 5555)
OWNER, ADMIN, MEMBER = Asker("999", is_owner=True), Asker("5", role="admin"), Asker("777", "主人")
HI, ALL = (Text("hi"),), (MentionAll(), Text("hi"))


def outcome(asker: Asker, said: tuple[SendSegment, ...], target: Conversation, *, allowed: bool) -> str:
    try:
        check_reach(asker, said, active=GROUP, target=target, allowed=allowed)
    except ToolDenied:
        return "denied"
    except Suspend:
        return "asked"
    return "said"


@each_case(
    ("asker", "said", "target", "before", "after"),
    [
        (MEMBER, HI, GROUP, "said", "said"),
        (MEMBER, HI, OTHER, "denied", "denied"),
        (MEMBER, ALL, GROUP, "denied", "denied"),
        (ADMIN, HI, GROUP, "said", "said"),
        (ADMIN, HI, OTHER, "denied", "denied"),
        (ADMIN, ALL, GROUP, "asked", "said"),
        (ADMIN, ALL, OTHER, "denied", "denied"),
        (OWNER, HI, GROUP, "said", "said"),
        (OWNER, HI, OTHER, "asked", "said"),
        (OWNER, HI, PRIVATE, "asked", "said"),
        (OWNER, ALL, GROUP, "asked", "said"),
        (OWNER, ALL, OTHER, "asked", "said"),
        (OWNER, ALL, PRIVATE, "denied", "denied"),
        (OWNER, HI, Conversation(20002, "group", 4242), "denied", "denied"),
    ],
)
def test_elsewhere_and_to_everybody_is_said_when_somebody_has_allowed_it(
    asker: Asker, said: tuple[SendSegment, ...], target: Conversation, before: str, after: str
) -> None:
    assert outcome(asker, said, target, allowed=False) == before
    assert outcome(asker, said, target, allowed=True) == after


@each_case("asker", [OWNER, MEMBER])
@each_case("kind", ["group", "private"])
def test_no_place_has_the_number_0(asker: Asker, kind: MessageType) -> None:
    with pytest.raises(InvalidArguments):
        check_reach(asker, HI, active=GROUP, target=Conversation(BOT, kind, 0), allowed=True)


def test_who_is_asked_reads_what_is_said_and_where_in_full() -> None:
    said = (
        Quote("7"),
        MentionAll(),
        Mention(5),
        Text("很长" * 5000),
        Face("14"),
        Attachment("image", "base64://aGk=", "cat.png"),
        Attachment("file", "https://a.example/b.pdf", "b.pdf"),
    )
    with pytest.raises(Suspend) as caught:
        check_reach(OWNER, said, active=GROUP, target=OTHER, allowed=False)
    assert caught.value.asks == (
        f"发到群 5555：[引用 7]@全体成员 @5 {'很长' * 5000}[表情 14][图片 cat.png][文件 https://a.example/b.pdf]"
    )
    assert caught.value.seconds == WAIT
    assert confirmation_text(said, OTHER, language=Language.ENGLISH) == (
        f"Say in group 5555: [quote 7]@all @5 {'很长' * 5000}[face 14][picture cat.png][file https://a.example/b.pdf]"
    )
    assert (confirmation_text(HI, PRIVATE), confirmation_text(HI, PRIVATE, language=Language.ENGLISH)) == (
        "发到私聊 777：hi",
        "Say to 777 in private: hi",
    )
