"""A tool's own code as the engine runs it: its body, its availability, its errors."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

from frostagent.cancellation import BROKEN, isolate
from frostagent.engine.call_state import CallStage, CallState
from frostagent.engine.forced_cancel import await_settled
from frostagent.engine.threads import THREADS
from frostagent.text.language import Bilingual, Phrase
from frostagent.text.masking import one_line
from frostagent.types.errors import (
    InvalidArguments,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolUnavailable,
)
from frostagent.types.tools import Tool, ToolContext

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
    return await await_settled(result, name=f"tool {tool.name}")


NO_BODY: Final = Phrase("没有实现", "has no body")
NOT_AVAILABLE: Final = Phrase("没说原因", "is not available")
CANNOT_SAY: Final = Phrase(
    "检查能不能用时出错（{error}）", "cannot say whether it is available ({error})"
)


def unavailable_reason(tool: Tool) -> str:
    """Why the tool cannot be used right now, by its own word; empty where it can. Never raises."""
    if tool.function is None:
        return NO_BODY.fill()
    if tool.available is None:
        return ""
    try:
        return read_availability(tool.available())
    except BROKEN as broken:
        isolate(broken)
        logger.exception("tool %s cannot say whether it is available", tool.name)
        return CANNOT_SAY.fill(error=type(broken).__name__)


def read_availability(answer: object) -> str:
    """Why not, from what `available` answered: a bool, a text, or both (seeds/004)."""
    match answer:
        case (bool(is_there), str(reason)):
            return "" if is_there else reason or NOT_AVAILABLE.fill()
        case True | None:
            return ""
        case False:
            return NOT_AVAILABLE.fill()
        case Bilingual():
            return answer
        case _:
            return str(answer)


LONGEST = 300  # characters of a tool's own words on what was wrong

Mask = Callable[[str], str]


def record_failure(flow: CallState, error: BaseException, *, mask: Mask = str) -> None:
    """Make what was raised the flow's result. Raises what is none of the call's business again.

    A ToolError, and the ValueError of a tool's own code, are told in their words: that is how a
    tool says what was wrong. Anything else is a bug, whose words are for the log. `mask` takes the
    secrets out of what is told.
    """
    isolate(error)
    told = _told(flow, error, mask)
    if (
        flow.ran
        and type(told) is ToolFailed
        and flow.tool is not None
        and (reason := unavailable_reason(flow.tool))
    ):
        told = ToolUnavailable(f"{flow.tool.name} cannot be used now: it {reason}. Do without it.")
    flow.refuse(told)


def error_text(error: ValueError, mask: Mask = str) -> str:
    """The tool's own words on what was wrong, on one line and without secrets; empty where it says
    nothing.
    """
    return mask(one_line(mask(str(error)), LONGEST))


def _told(flow: CallState, error: BaseException, mask: Mask) -> ToolError:
    match error:
        case ToolError():
            return error
        case asyncio.CancelledError():
            return ToolFailed(f"{flow.doing} gave up on itself. Try something else.")
        case ValueError() if flow.doing is CallStage.PREPARING and (
            words := error_text(error, mask)
        ):
            return InvalidArguments(words, fields=(words,))
        case ValueError() if flow.doing is CallStage.RUNNING and (words := error_text(error, mask)):
            logger.warning(
                "tool %s refused in run %s", flow.call.name, flow.context.run_id, exc_info=error
            )
            return ToolFailed(words)
    logger.error(
        "tool %s: %s broke in run %s",
        flow.call.name,
        flow.doing,
        flow.context.run_id,
        exc_info=error,
    )
    if flow.doing is CallStage.ASKING:
        return ToolDenied(
            f"nobody could be asked to allow it ({type(error).__name__}). Do without it."
        )
    text = f"{flow.doing} broke ({type(error).__name__})."
    return ToolFailed(f"{text} Do not repeat the call; say that it did not work.")
