"""Models behind one another, each a script, to see who is asked for what in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from frostagent.models.failover import ATTEMPTS, Failover
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import ModelError
from frostagent.types.messages import (
    Allowance,
    AssistantMessage,
    Attempt,
    Completion,
    Message,
    ModelRequest,
    SystemMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests.fakes import CountingIds, ManualClock, ScriptedModel, Step

SYSTEM = SystemMessage("be kind")
QUESTION = UserMessage("three")
REQUEST = ModelRequest((QUESTION,))
PICTURE = "data:image/png;base64,AAAA"
TOOLS = (ToolSpec("f", "Does it.", {"type": "object", "properties": {}}),)
EARLIER: tuple[Message, ...] = (UserMessage("one"), AssistantMessage("two"))


class Named(ScriptedModel):
    """A scripted model of that name, which notes in `asked` that it was asked."""

    def __init__(self, name: str, steps: Sequence[Step], asked: list[str]) -> None:
        super().__init__(*steps)
        self.name = name
        self._asked = asked

    async def complete(self, request: ModelRequest) -> Completion:
        self._asked.append(self.name)
        return await super().complete(request)


class AttemptCounter:
    """A meter that only counts attempts: it reserves and charges nothing."""

    def __init__(self, count: Callable[[Attempt], None]) -> None:
        self.count = count

    async def reserve(self, _model: str, _estimate: Callable[[], Usage], _allowance: Allowance | None = None) -> int:
        return 0

    def release(self, number: int) -> None:
        pass

    def charge(self, model: str, usage: Usage, allowance: Allowance | None = None) -> None:
        pass


class Bench:
    """Models behind one another, each a tuple of scripts, one for each of its keys; `asked` is who was, in order."""

    def __init__(
        self,
        *upstreams: tuple[Sequence[Step], ...],
        attempts: int = ATTEMPTS,
        patience: float = 60.0,
        vision: Sequence[Step] | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.asked: list[str] = []
        self.told: list[str] = []
        self.attempts: list[Attempt] = []
        self.models = [
            [Named(f"{letter}{number}", steps, self.asked) for number, steps in enumerate(keys, 1)]
            for letter, keys in zip("abc", upstreams, strict=False)
        ]
        seeing = [] if vision is None else [Upstream(Named("v", vision, self.asked))]
        self.upstreams = [Upstream(*models) for models in self.models]
        self.model = Failover(
            self.upstreams,
            vision=[*seeing, *self.upstreams] if seeing else (),
            clock=self.clock,
            ids=CountingIds(),
            tell=self.told.append,
            meter=AttemptCounter(self.attempts.append),
            attempts=attempts,
            patience=patience,
        )

    async def ask(self, request: ModelRequest = REQUEST) -> str:
        """The words of the answer, or the error."""
        try:
            return (await self.model.complete(request)).message.text
        except ModelError as error:
            return f"{error.kind}: {error}"

    def requests(self, upstream: int = 0) -> list[ModelRequest]:
        """What the first key of an upstream was asked."""
        return self.models[upstream][0].requests


def one(*steps: Step, attempts: int = ATTEMPTS, patience: float = 60.0) -> Bench:
    """One model with one key."""
    return Bench((steps,), attempts=attempts, patience=patience)
