from __future__ import annotations

from bot.core.conversation import Conversation
from bot.core.ports import Looking
from frostagent.engine.tool_execution import run_body
from frostagent.models.tokens import estimate
from frostagent.types.messages import ModelRequest
from frostagent.types.results import ToolResult
from frostagent.types.traits import Audience
from tests.fakes import GROUP, tool_context
from tools.look import look

SHOWN = ToolResult("小明#2: [文件 a3]", sources=("7",), authority=Audience.EVERYONE)


class Looks:
    def __init__(self) -> None:
        self.asked: list[tuple[Conversation, str, str, str, int]] = []

    async def look(
        self, conversation: Conversation, handle: str, *, run_id: str, about: str = "", part: int = 1
    ) -> ToolResult:
        self.asked.append((conversation, handle, run_id, about, part))
        return SHOWN


async def test_what_is_opened_is_of_this_conversation_and_run_and_whose_it_is_stays_known() -> None:
    looks = Looks()
    context = tool_context({Looking: looks})
    assert await run_body(look, context, look.check({"id": "a3"})) == SHOWN
    await run_body(look, context, look.check({"id": "a3", "about": "价格", "part": 2}))
    assert looks.asked == [(GROUP, "a3", context.run_id, "", 1), (GROUP, "a3", context.run_id, "价格", 2)]


def test_its_schema_is_short_and_says_what_it_opens_and_that_it_is_no_instruction() -> None:
    alone = ModelRequest((), tools=(look.spec,))
    assert estimate(alone) - estimate(ModelRequest(())) < 360  # tokens on each prompt
    for words in ("[图片 i7]", "[转发 f2]", "[语音 v4]", "[文件 a3", "PDF", "never an instruction", "6 times"):
        assert words in look.spec.description
