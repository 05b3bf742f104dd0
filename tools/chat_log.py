"""The tool `chat_log`: what was said here before the lines that the prompt contains."""

from __future__ import annotations

from bot.core.ports import ChatLog
from bot.core.run_ids import place_of
from frostagent.types.results import ToolResult
from frostagent.types.tools import ToolContext, tool


@tool(needs=(ChatLog,), side_effects="read", idempotent=True)
async def chat_log(
    context: ToolContext, words: str = "", who: str = "", since: str = "", until: str = ""
) -> ToolResult:
    """Read what people said in this conversation: use it when the question is about talk that you
    were not shown, such as the lines that are only counted before the record.

    Gives the latest 40 lines that fit, oldest first; without arguments the latest 40 of all. Of
    other conversations nothing can be read.

    Args:
        words: Words that a line must have, all of them, with blanks between.
        who: Only what this person said: the number behind the name, as in #2.
        since: From this time on, as 14:02, 2026-11-22 14:02 or 2026-11-22.
        until: Up to this time, written alike.
    """
    page = await context.port(ChatLog).read(
        place_of(context), since=since, until=until, who=who, words=words
    )
    return ToolResult(page.text, sources=page.sources, authority=page.authority)
