"""A tool's own code as the engine runs it: its body, and its word on whether it can be used."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from bot.domain.cancellation import BROKEN, isolate
from bot.domain.errors import ToolUnavailable
from bot.domain.tool import Tool, ToolContext
from bot.engine.letting_go import settled
from bot.engine.threads import THREADS

logger = logging.getLogger(__name__)


async def run_body(tool: Tool, context: ToolContext, arguments: dict[str, Any]) -> object:
    """Run the body with checked arguments: a coroutine on the loop, a plain `def` in a thread. A
    coroutine that does not end when it is cancelled is left as it stands.
    """
    if tool.function is None:
        raise ToolUnavailable(f"{tool.name} has no body, so it cannot run. Do without it.")
    given = (context,) if tool.wants_context else ()
    if inspect.iscoroutinefunction(tool.function):
        result = tool.function(*given, **arguments)
    else:
        result = await THREADS.run(tool.function, *given, **arguments)
    return await settled(result, name=f"tool {tool.name}")


def why_not(tool: Tool) -> str:
    """Why the tool cannot be used right now, by its own word; empty where it can. Never raises."""
    if tool.function is None:
        return "has no body"
    if tool.available is None:
        return ""
    try:
        return reason_of(tool.available())
    except BROKEN as broken:
        isolate(broken)
        logger.exception("tool %s cannot say whether it is available", tool.name)
        return f"cannot say whether it is available ({type(broken).__name__})"


def reason_of(answer: object) -> str:
    """Why not, from what `available` answered: a bool, a text, or both (seeds/004)."""
    match answer:
        case (bool(is_there), str(reason)):
            return "" if is_there else reason or "is not available"
        case True | None:
            return ""
        case False:
            return "is not available"
        case _:
            return str(answer)
