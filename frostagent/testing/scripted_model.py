"""A model that says what it is told to: tools and agents are tested with it, without a network and
without a key.

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
"""One step of the model when it is asked: say words, make a call or several, give a whole answer,
fail, or whatever a coroutine function of the request gives."""

Answering: TypeAlias = Callable[[ModelRequest], Awaitable[Completion]]


def call(name: str, /, raw: str | None = None, **arguments: Any) -> ToolCall:
    """A call of this tool with these arguments, or with this raw text for them. The model gives it
    an id.
    """
    return ToolCall("", name, json.dumps(arguments, ensure_ascii=False) if raw is None else raw)


WORD = re.compile(r"\s*(?:[\u2e80-\u9fff]|[^\s\u2e80-\u9fff]+)")
"""A word with the blanks before it; of Chinese, a character."""


async def stream_words(message: AssistantMessage, tell: OnDelta) -> None:
    """Tell thoughts and text word by word, with a turn of the event loop between two."""
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

    Raises AssertionError when it is asked more than it was told, and, used as a context manager,
    when steps were left. Raises TypeError for what is no step.
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
        """The next step as an answer, which is streamed word by word to whoever listens. Raises it
        where it is an error.
        """
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
