from __future__ import annotations

from bot.core.conversation import Conversation
from bot.core.ports import ChatLog, LogPage
from frostagent.engine.tool_execution import run_body
from frostagent.types.results import ToolResult
from frostagent.types.traits import Audience
from tests.fakes import GROUP, tool_context
from tools.chat_log import chat_log


class Log:
    def __init__(self) -> None:
        self.asked: list[tuple[Conversation, dict[str, str]]] = []

    async def read(self, conversation: Conversation, **asked: str) -> LogPage:
        self.asked.append((conversation, asked))
        return LogPage("14:02 小明#2: 早", ("7",), Audience.GROUP_ADMIN)


async def test_only_this_conversation_is_read_and_whose_words_they_are_is_known() -> None:
    log = Log()
    asked = chat_log.check({"words": "早", "who": "#2"})
    result = await run_body(chat_log, tool_context({ChatLog: log}), asked)
    assert result == ToolResult("14:02 小明#2: 早", sources=("7",), authority=Audience.GROUP_ADMIN)
    assert log.asked == [(GROUP, {"since": "", "until": "", "who": "#2", "words": "早"})]
