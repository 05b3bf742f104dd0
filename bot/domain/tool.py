"""What a tool is: a name, a description, a flat schema, and a body that runs with a context of its own.

    @tool(needs=(Web,))
    async def get_weather(context: ToolContext, city: str) -> str:
        \"\"\"What the model reads: when to use it and what it gives.

        Args:
            city: What the model reads about this parameter.
        \"\"\"

The decorated function becomes a `Tool`; calling it calls the function as before.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast, overload

from bot.domain.chat import ToolSpec
from bot.domain.errors import ToolUnavailable
from bot.domain.events import Conversation
from bot.domain.run import Asker
from bot.domain.schema import check_arguments, describe_function, flat_schema, model_of

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
DEFAULT_TIMEOUT = 60.0

P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """One call's surroundings. `deadline` is on the clock's monotonic scale, in seconds.

    `allowed` says that somebody has allowed this very call: a tool that raises `Suspend` does so only without it.
    """

    run_id: str
    step: int
    call_id: str
    conversation: Conversation
    asker: Asker
    deadline: float
    ports: Mapping[type, object] = field(default_factory=dict)
    allowed: bool = False

    def port(self, kind: type[P]) -> P:
        """The capability of this kind. Raises ToolUnavailable where this run has none."""
        try:
            return cast("P", self.ports[kind])
        except KeyError:
            raise ToolUnavailable(f"needs {kind.__name__}, which is not there in this run") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool the engine can offer. `check` turns raw arguments into the function's; `timeout` is in seconds.

    `may_have_happened` marks a tool with effects outside: when it is cancelled, nobody knows whether it was done.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(repr=False)
    check: Callable[[dict[str, Any]], dict[str, Any]] = field(repr=False)
    function: Callable[..., Any] = field(repr=False)
    wants_context: bool = False
    needs: tuple[type, ...] = ()
    timeout: float = DEFAULT_TIMEOUT
    may_have_happened: bool = False

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a tool's name must match {NAME.pattern}, not {self.name!r}")
        if not self.description:
            raise ValueError(f"tool {self.name} has no description: the model would not know when to use it")

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> object:
        """Run the body with checked arguments: a coroutine on the loop, a plain `def` in a thread."""
        given = (context,) if self.wants_context else ()
        if inspect.iscoroutinefunction(self.function):
            return await self.function(*given, **arguments)
        return await asyncio.to_thread(self.function, *given, **arguments)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, dict(self.parameters))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Decorator(Protocol):
    def __call__(self, function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, needs: tuple[type, ...] = ..., timeout: float = ..., may_have_happened: bool = ..., name: str = ...
) -> Decorator: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    needs: tuple[type, ...] = (),
    timeout: float = DEFAULT_TIMEOUT,
    may_have_happened: bool = False,
    name: str = "",
) -> Tool | Decorator:
    """Make a tool of a typed function; its name, docstring and annotations say all the model needs.

    A plain `def` runs in a thread. Raises UnsuitableType for a parameter that has no flat schema, ValueError for a
    bad name or a missing description.
    """

    def make(function: Callable[..., Any], /) -> Tool:
        model = model_of(function, skip=ToolContext)
        wants_context = len(model.model_fields) < len(inspect.signature(function).parameters)
        description, _ = describe_function(function)
        return Tool(
            name=name or function.__name__,
            description=description,
            parameters=flat_schema(model),
            check=lambda arguments: check_arguments(model, arguments),
            function=function,
            wants_context=wants_context,
            needs=needs,
            timeout=timeout,
            may_have_happened=may_have_happened,
        )

    return make if function is None else make(function)
