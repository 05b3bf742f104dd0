"""The tool `remind`: reminders and tasks for later."""

from __future__ import annotations

from typing import Literal

from bot.core.jobs import JobKind, Reminders
from frostagent.types.results import ToolResult
from frostagent.types.tools import ToolContext, tool


@tool(needs=(Reminders,), side_effects="write", stays_here=True, trusted_result=True)
async def remind(
    context: ToolContext,
    action: Literal["create", "list", "cancel", "move"],
    words: str = "",
    when: str = "",
    rule: str = "",
    kind: Literal["text", "run"] = "text",
    number: str = "",
) -> ToolResult:
    """Set, list, cancel or move a reminder of whoever asks, or a task for later. Tell them the
    moment that comes back, so that they can correct it.

    Args:
        action: create needs words, and when or rule; cancel needs number; move number, and when or
            rule.
        words: What is said then, as it is to be read; of a run the task.
        when: Local time as 2026-11-29T08:00, or +90m from now.
        rule: To repeat: five fields of cron, or every 30 minutes.
        kind: text is said as it is. run: you answer the words as a question then, with your tools.
        number: Which one, as J7.
    """
    book = context.port(Reminders)
    match action:
        case "create":
            return await book.create(context, words, when=when, rule=rule, kind=JobKind(kind))
        case "list":
            return await book.listed(context)
        case "cancel":
            return await book.cancel(context, number)
        case _:
            return await book.move(context, number, when=when, rule=rule)
