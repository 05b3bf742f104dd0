from __future__ import annotations

from typing import Any

import pytest

from bot.core.conversation import Conversation
from bot.core.ports import Members
from frostagent.engine.tool_execution import run_body
from frostagent.types.errors import InvalidArguments
from frostagent.types.ports import Media, Speaker
from frostagent.types.speech import Confirmed, Mention, SendSegment
from tests.cases import each_case
from tests.fakes import tool_context
from tests.tools.test_send_message import Mouth, Shelf
from tools.send_message import send_message


class Here:
    """Somebody has the number 2."""

    def number(self, conversation: Conversation, user_id: int) -> int:
        raise AssertionError((conversation, user_id))

    def user_id(self, conversation: Conversation, number: int, name: str = "") -> int | None:
        return 3_000_000_001 if number == 2 else None


async def said_here(part: dict[str, Any], **more: Any) -> list[tuple[tuple[SendSegment, ...], str]]:
    mouth = Mouth(Confirmed("1"))
    context = tool_context({Speaker: mouth, Media: Shelf(), Members: Here()})
    await run_body(send_message, context, send_message.check({"messages": [part], **more}))
    return mouth.said


@each_case("id_", ["2", 2, "#2", "＃2", "小明#2", "3000000001"])
async def test_somebody_is_mentioned_by_the_number_behind_the_name_or_by_what_can_only_be_an_account(id_: Any) -> None:
    said = await said_here({"type": "mention_user", "mention_user_id": id_})
    assert said == [((Mention("3000000001"),), "")]


@each_case("id_", ["3", "9999", "#3000000001", "小明#10000"])
async def test_a_number_that_nobody_has_here_mentions_nobody(id_: str) -> None:
    with pytest.raises(InvalidArguments, match=r"messages\.0: nobody has the number \d+ here"):
        await said_here({"type": "mention_user", "mention_user_id": id_})


@each_case(
    ("session", "place"),
    [
        ("private:#2", "10001:private:3000000001"),
        ("#2", "10001:private:3000000001"),
        ("group:5555", "10001:group:5555"),
        ("10001:private:7", "10001:private:7"),
        ("private:2", "private:2"),
    ],
)
async def test_another_place_is_named_without_anybodys_account(session: str, place: str) -> None:
    assert (await said_here({"type": "plain", "text": "hi"}, session=session))[0][1] == place
