"""The model of a scenario: answers as its script says, and keeps every request as text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from frostagent.types.errors import ModelError, ModelOverloaded, ModelRejected, ModelStalled, ModelTransport
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, Message, ModelRequest, ToolCall, Usage
from frostagent.types.ports import ChatModel

FAILURES: dict[str, Callable[[str], ModelError]] = {
    "overloaded": ModelOverloaded,
    "refused": partial(ModelRejected, status=400),
    "rejected": ModelRejected,
    "stalled": ModelStalled,
    "unreachable": ModelTransport,
}
READ, SAID = 100, 10  # tokens of a request and of its answer


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the script, for the next request that has `when` in its last message.

    It comes `wait` seconds late, or never (`hang`); `fail` names an error in place of an answer;
    one that is `always` there is used where no other fits, again and again. It is said to have
    `read` so many tokens.
    """

    say: str = ""
    call: tuple[tuple[str, str], ...] = ()
    wait: float = 0.0
    hang: bool = False
    fail: str = ""
    when: str = ""
    always: bool = False
    read: int = READ


def read_answer(written: str | dict[str, Any]) -> Answer:
    """An answer as the script has it. Raises TypeError for a word that means nothing there."""
    if isinstance(written, str):
        return Answer(say=written)
    asked = written.get("call", ())
    calls = [asked] if isinstance(asked, dict) else asked
    made = [
        (name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for one in calls
        for name, arguments in one.items()
    ]
    return Answer(**{**written, "call": tuple(made)})


class StageModel:
    """Answers each request with the first answer of the script that fits it.

    `requests` are all it got, as text; `cancelled` those whose answer nobody waited for any more;
    `surplus` are complaints about requests that no answer was left for.
    """

    name = "scripted"

    def __init__(self, answers: Iterable[Answer], see: Callable[[str, str], None]) -> None:
        self.requests: list[ModelRequest] = []
        self.cancelled: list[int] = []
        self.surplus: list[str] = []
        self._see = see
        self.left = list(answers)
        self._ids = count(1)

    async def complete(self, request: ModelRequest) -> Completion:
        """The answer that fits. Raises what it says, and ModelRejected where there is none."""
        self.requests.append(request)
        number = len(self.requests)
        self._see("  model", f"is asked ({number}): {request.messages[-1].text}")
        answer = self._take(request)
        if answer is None:
            self.surplus.append(f"request {number} has no answer: {request.messages[-1].text!r}")
            raise ModelRejected("the script has no answer")
        try:
            await asyncio.sleep(10**9 if answer.hang else answer.wait)
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        if answer.fail:
            raise FAILURES[answer.fail]("the script says so")
        return self._completed(answer)

    def _take(self, request: ModelRequest) -> Answer | None:
        asked = request.messages[-1].text
        for index, answer in enumerate(self.left):
            if not answer.always and answer.when in asked:
                return self.left.pop(index)
        fitting = (answer for answer in self.left if answer.always and answer.when in asked)
        return next(fitting, None)

    def _completed(self, answer: Answer) -> Completion:
        calls = tuple(ToolCall(f"c{next(self._ids)}", *call) for call in answer.call)
        finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        return Completion(AssistantMessage(answer.say, calls), finish, Usage(answer.read, SAID))


@dataclass(frozen=True, slots=True)
class Named:
    """The model of a scenario by a name that its settings give to one; each request adds it to `asked`."""

    name: str
    model: ChatModel
    asked: list[str]

    async def complete(self, request: ModelRequest) -> Completion:
        """What the model answers."""
        self.asked.append(self.name)
        return await self.model.complete(request)


def as_text(messages: Iterable[Message]) -> str:
    """What a model reads, a block for each message with its role before it."""
    return "\n".join(map(_as_text, messages))


def _as_text(message: Message) -> str:
    pictures = " <picture>" * len(getattr(message, "images", ()))
    calls = [f"{call.name} {call.arguments}" for call in getattr(message, "tool_calls", ())]
    return "\n".join([f"<{message.type}> {message.text}{pictures}", *calls])
