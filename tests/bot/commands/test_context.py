from __future__ import annotations

from bot.commands.context import ContextSize, context_command, measure_context
from bot.core.conversation import Conversation
from bot.memory.history import History
from frostagent.types.messages import AssistantMessage, ModelRequest, SystemMessage, ToolSpec, UserMessage
from tests.bot.commands.typed import lines
from tests.fakes import GROUP, RecordingStore, said


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


async def test_what_the_next_prompt_would_hold_is_measured_by_its_blocks() -> None:
    history = History(store=RecordingStore())
    head = ModelRequest((SystemMessage("你是狐狸。" * 20),), (ToolSpec("look", "Look." * 50, {}),))
    await history.load(GROUP)
    history.add_round(GROUP, "t1", UserMessage("问" * 300), [AssistantMessage("答" * 300)])
    history.overhear(said("chatter", at=False))
    size = await measure_context(history, GROUP, head=head, room=9000.0)
    assert 50 < size.system < 120
    assert 200 < size.tools < 400
    assert 300 < size.rounds < 600
    assert (size.summary, size.number, size.overheard, size.room) == (0, 1, 1, 9000.0)
