from __future__ import annotations

from bot.commands.context import ContextSize, context_command
from bot.domain.events import Conversation
from tests.bot.commands.typed import lines
from tests.fakes import GROUP


async def measured(where: Conversation) -> ContextSize:
    assert where == GROUP
    return ContextSize(600, 1500, 0, 3200, 7, 12, 12_000)


async def test_the_blocks_of_the_next_prompt_are_told_with_their_tokens() -> None:
    assert await lines(context_command(measured)) == [
        "人设和规则: 600",
        "工具说明: 1.5k",
        "摘要: 0",
        "对话 7 轮: 3.2k",
        "旁听未读 12 行",
        "合计约 5.3k token；对话最多留 12.0k",
    ]
    assert (await lines(context_command(measured), chinese=False))[3] == "7 rounds: 3.2k"
