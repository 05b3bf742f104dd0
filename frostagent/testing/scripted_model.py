"""A model that follows a script, for testing tools and agents without a network or a key.

with ScriptedModel(call("get_weather", city="Beijing"), "It is sunny in Beijing.") as model:
    reply = await Agent(model=model, tools=[get_weather]).chat("How is the weather in Beijing?")
assert "sunny" in model.requests[1].messages[-1].content
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Self, TypeAlias

from msgspec.structs import replace

from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    OnDelta,
    ReasoningDelta,
    TextDelta,
    ToolCall,
)

Step: TypeAlias = (
    "str | ToolCall | list[ToolCall] | tuple[ToolCall, ...] | Completion | Exception | Answering"
)
"""One answer: text, calls, a whole completion, an error, or a coroutine function."""

Answering: TypeAlias = Callable[[ModelRequest], Awaitable[Completion]]


def call(name: str, /, raw: str | None = None, **arguments: Any) -> ToolCall:
    """A call of this tool with these arguments, or with `raw` as their text. The model assigns the
    id.

        ScriptedModel(call("get_weather", city="Beijing"), "It is sunny.")
    """
    return ToolCall("", name, json.dumps(arguments, ensure_ascii=False) if raw is None else raw)


WORD = re.compile(r"\s*(?:[\u2e80-\u9fff]|[^\s\u2e80-\u9fff]+)")
"""A word with the whitespace before it; in Chinese, a character."""


async def stream_words(message: AssistantMessage, tell: OnDelta) -> None:
    """Send reasoning and text word by word, yielding to the event loop after each."""
    if message.reasoning is not None:
        for word in WORD.findall(message.reasoning.text):
            tell(ReasoningDelta(word))
            await asyncio.sleep(0)  # noqa: TID251  # no time passes
    for word in WORD.findall(message.text.strip()):
        tell(TextDelta(word))
        await asyncio.sleep(0)  # noqa: TID251  # no time passes


STEPS = (str, ToolCall, list, tuple, Completion, Exception)


class ScriptedModel:
    """Answers with the next step of its script and keeps every request in `requests`.

    Raises AssertionError for more requests than steps, and, as a context manager, if steps were
    left; TypeError for a step of another type. The module's docstring has an example.
    """

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        for step in steps:
            if isinstance(step, type) or not (isinstance(step, STEPS) or callable(step)):
                raise TypeError(f"a step is words, calls, an answer or an error, not {step!r}")
        self._steps = list(steps)
        self._ids = count(1)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> Completion:
        """The next step as an answer, streamed if `on_delta` is set. Raises an error step."""
        self.requests.append(request)
        if not self._steps:
            raise AssertionError(
                f"an unexpected model request, number {len(self.requests)}: {request.messages[-1]}"
            )
        step = self._steps.pop(0)
        match step:
            case str():
                completion = Completion(AssistantMessage(step), FinishReason.STOP)
            case ToolCall():
                return self._calling([step])
            case Completion():
                completion = step
            case Exception():
                raise step
            case list() | tuple():
                return self._calling(step)
            case _:
                return await step(request)
        if request.on_delta is not None:
            await stream_words(completion.message, request.on_delta)
        return completion

    def _calling(self, calls: Sequence[ToolCall]) -> Completion:
        made = tuple(
            each if each.id else replace(each, id=f"call_{next(self._ids)}") for each in calls
        )
        return Completion(AssistantMessage(tool_calls=made), FinishReason.TOOL_CALLS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._steps:
            raise AssertionError(f"{len(self._steps)} scripted model steps were never asked for")
