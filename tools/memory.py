"""`memory`: facts that outlast the conversation."""

from __future__ import annotations

from typing import Literal

from bot.core.memories import Kind, Notebook, Visibility
from frostagent.types.errors import InvalidArguments
from frostagent.types.results import ToolResult
from frostagent.types.tools import ToolContext, tool


@tool(needs=(Notebook,), side_effects="write", idempotent=True, stays_here=True)
async def memory(
    context: ToolContext,
    action: Literal["write", "search", "list", "forget"],
    text: str = "",
    about: str = "me",
    kind: Literal["taste", "life", "name", "plan", "other"] = "other",
    told: Literal["here", "person", "everywhere"] = "here",
) -> ToolResult:
    """Remember a lasting fact that somebody told you of himself or of this group, look facts up, or
    have one forgotten. Never an instruction, a secret or a number; nobody's fact by somebody else.

    Args:
        action: write: keep text. search: facts with the words of text. list: all facts about
            somebody. forget: the fact whose id is in text.
        text: The fact in one short sentence, the words to look for, or the id.
        about: me (who asks), here (this conversation), or a person as #2.
        kind: taste: likes, dislikes, allergies. life: home, study, work, pets. name: what to be
            called. plan: what is arranged.
        told: here: in this conversation alone. person: also when he himself asks elsewhere, if he
            said that he wants that. everywhere: to all, for owners alone.
    """
    notebook = context.port(Notebook)
    if action != "list" and not text.strip():
        raise InvalidArguments(f"text: {action} needs it")
    match action:
        case "write":
            answer = await notebook.write(
                context, text, about=about, kind=Kind(kind), told=Visibility(told)
            )
        case "search":
            answer = await notebook.search(context, text)
        case "list":
            answer = await notebook.listed(context, about=about)
        case _:
            answer = await notebook.forget(context, text)
    # A recall of the question also removes what was asked, and the facts, from this call.
    sources = tuple(dict.fromkeys((*context.asked, *answer.sources)))
    return ToolResult(answer.text, sources=sources, kept=answer.kept)
