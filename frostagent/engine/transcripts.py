"""Transcripts made whole: each call followed by its one result, in call order, and no result
without its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frostagent.types.errors import ToolUnavailable
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage
from frostagent.types.runs import SuspendedRun

INTERRUPTED = ToolUnavailable("unavailable — interrupted").told


def close_interrupted(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A transcript that broke off anywhere, made valid: a missing result is told as interrupted.

    Results count only right after the message that made the calls (vendors use one id again in a
    later step); all others, second ones and those under another name are dropped. What is valid
    stays as it is.
    """
    return tuple(_whole(messages))


def close_suspended(suspended: SuspendedRun) -> tuple[Message, ...]:
    """All that a suspended run which never goes on adds to the transcript; what waited was not
    done.
    """
    results = (answer for answer in suspended.answers if isinstance(answer, ToolMessage))
    return close_interrupted((*suspended.messages, suspended.message, *results))


def _whole(messages: Iterable[Message]) -> Iterator[Message]:
    calls: tuple[ToolCall, ...] = ()
    results: list[ToolMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            results.append(message)
            continue
        yield from _answer(calls, results)
        yield message
        calls, results = message.tool_calls if isinstance(message, AssistantMessage) else (), []
    yield from _answer(calls, results)


def _answer(calls: tuple[ToolCall, ...], results: list[ToolMessage]) -> Iterator[ToolMessage]:
    left = list(results)
    for call in calls:
        found = next(
            (result for result in left if (result.call_id, result.name) == (call.id, call.name)),
            None,
        )
        if found is None:
            yield ToolMessage(
                call.id, call.name, INTERRUPTED, is_error=True, code=ToolUnavailable.code
            )
        else:
            left.remove(found)
            yield found
