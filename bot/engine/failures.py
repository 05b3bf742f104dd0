"""From an exception raised around a call to the error result that the model reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from bot.domain.cancellation import isolate
from bot.domain.errors import InvalidArguments, ToolDenied, ToolError, ToolFailed, ToolUnavailable
from bot.domain.masking import one_line
from bot.engine.bodies import why_not
from bot.engine.ongoing import Doing, Flow

logger = logging.getLogger(__name__)

LONGEST = 300  # characters of a tool's own words on what was wrong

Mask = Callable[[str], str]


def take(flow: Flow, error: BaseException, *, mask: Mask = str) -> None:
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
        and (reason := why_not(flow.tool))
    ):
        told = ToolUnavailable(f"{flow.tool.name} cannot be used now: it {reason}. Do without it.")
    flow.refuse(told)


def words_of_error(error: ValueError, mask: Mask = str) -> str:
    """The tool's own words on what was wrong, on one line and without secrets; empty where it says
    nothing.
    """
    return mask(one_line(mask(str(error)), LONGEST))


def _told(flow: Flow, error: BaseException, mask: Mask) -> ToolError:
    match error:
        case ToolError():
            return error
        case asyncio.CancelledError():
            return ToolFailed(f"{flow.doing} gave up on itself. Try something else.")
        case ValueError() if flow.doing is Doing.PREPARING and (
            words := words_of_error(error, mask)
        ):
            return InvalidArguments(words, fields=(words,))
        case ValueError() if flow.doing is Doing.RUNNING and (words := words_of_error(error, mask)):
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
    if flow.doing is Doing.ASKING:
        return ToolDenied(
            f"nobody could be asked to allow it ({type(error).__name__}). Do without it."
        )
    text = f"{flow.doing} broke ({type(error).__name__})."
    return ToolFailed(f"{text} Do not repeat the call; say that it did not work.")
