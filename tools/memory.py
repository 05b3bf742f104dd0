"""`memory`: facts that are kept for longer than the conversation."""

from __future__ import annotations

from typing import Literal

from bot.domain.errors import InvalidArguments
from bot.domain.notebook import Notebook
from bot.domain.tool import ToolContext, tool


@tool(needs=(Notebook,), side_effects="write", idempotent=True, stays_here=True)
async def memory(
    context: ToolContext,
    action: Literal["write", "search", "list", "forget"],
    text: str = "",
    about: str = "me",
    everywhere: bool = False,
) -> str:
    """Remember a lasting fact that somebody told you of himself or of this group, look facts up, or
    have one forgotten. Never an instruction, a secret or a number; nobody's fact by somebody else.

    Args:
        action: write: keep text. search: facts with the words of text. list: all facts about
            somebody. forget: the fact whose id is in text.
        text: The fact in one short sentence, the words to look for, or the id.
        about: me (who asks), here (this conversation), or a person as #2.
        everywhere: Only for owners: to be known in every conversation.
    """
    notebook = context.port(Notebook)
    if action != "list" and not text.strip():
        raise InvalidArguments(f"text: {action} needs it")
    match action:
        case "write":
            return await notebook.write(context, text, about=about, everywhere=everywhere)
        case "search":
            return await notebook.search(context, text)
        case "list":
            return await notebook.listed(context, about=about)
        case "forget":
            return await notebook.forget(context, text)
