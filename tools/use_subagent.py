"""`use_subagent`: asks a named helper, such as Coder."""

from __future__ import annotations

from bot.domain.errors import InvalidArguments
from bot.domain.ports import Subagents
from bot.domain.tool import ToolContext, tool


@tool(needs=(Subagents,), timeout=180)
async def use_subagent(context: ToolContext, subagent_name: str, content: str) -> str:
    """Hand a task to a named subagent and get its answer. "Coder" writes and explains code.

    It takes a while: first tell the user with send_message that you have asked it. The subagent sees nothing of this
    conversation, so put all it needs into content. Pass the essence of its answer on, code unchanged.

    Args:
        subagent_name: The name of the subagent, as "Coder".
        content: The whole task, with any code it is about.
    """
    if not content.strip():
        raise InvalidArguments("content: the task is empty", fields=("content: empty",))
    return await context.port(Subagents).ask(subagent_name, content)
