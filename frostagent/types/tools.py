"""Tools: a name, a description, a flat schema, declarations, and a body with a context.

    @tool(needs=(Web,), side_effects="read", idempotent=True)
    async def get_weather(context: ToolContext, city: str) -> str:
        \"\"\"What the model reads: when to use the tool and what it returns.

        Args:
            city: What the model reads about this parameter.
        \"\"\"

The decorated function becomes a `Tool`, which can still be called as a function. Classes, programs
and tools from elsewhere can become tools, too (`frostagent/engine/external_tools.py`).
`frostagent/engine/call_executor.py` runs calls.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, Generic, Literal, Self, TypeAlias, TypedDict, TypeVar, cast, overload

from msgspec import Struct, field, structs
from pydantic_core import to_jsonable_python
from typing_extensions import ParamSpec, Unpack
from typing_extensions import TypeVar as DefaultedTypeVar

from frostagent.types.arguments import (
    INPUT,
    Check,
    Checked,
    Shape,
    parse_by_schema,
    parse_input,
    read_arguments,
)
from frostagent.types.errors import ToolUnavailable
from frostagent.types.messages import Allowance, ToolSpec
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker, RunEvent, Terms
from frostagent.types.schema import (
    READ,
    UnsuitableType,
    read_signature,
)
from frostagent.types.traits import Audience, Execution, Permission, Rate, SideEffects, ToolType
from frostagent.words import Words, words_in_force

T = TypeVar("T")
P = ParamSpec("P", default=...)
R = DefaultedTypeVar("R", default=Any)
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
DEFAULT_TIMEOUT = 60.0
Port: TypeAlias = type
"""A capability that a tool needs, named by its protocol."""


class ToolContext(Struct, frozen=True, kw_only=True):
    """The environment of one call. `deadline` is in seconds on the clock's monotonic scale.

        async def get_weather(context: ToolContext, city: str) -> str:
            return await context.port(Web).fetch(city)

    `response_id` is the model's answer that made the call, `asked` has the ids of the asker's
    messages that the run answers. `allowed` means that this very call was approved, so it must not
    raise `Suspend`. `inner` receives the events of runs inside this call, whose usage counts
    towards it. `share` is this run's part of the question's budget; inner runs take from it.
    `terms` and `words` apply to inner runs, too.
    """

    run_id: str
    step: int
    call_id: str
    conversation: str
    asker: Asker
    deadline: float
    response_id: str = ""
    asked: tuple[str, ...] = ()
    ports: Mapping[type, object] = field(default_factory=dict)
    allowed: bool = False
    reports: Callable[[ToolResult], None] | None = None
    inner: Callable[[RunEvent], None] | None = None
    share: Allowance | None = None
    terms: Terms = Terms()
    words: Words = field(default_factory=words_in_force)

    @classmethod
    def for_test(
        cls,
        *,
        deps: Mapping[type[Any], object] | None = None,
        asker: Asker | None = None,
        allowed: bool = False,
        on_progress: Callable[[ToolResult], None] | None = None,
    ) -> Self:
        """A context for calling a tool in a test, without an agent and without a deadline:

            await price(ToolContext.for_test(deps={Menu: menu}), Order(dish="tea"))

        `deps` is what `port` finds, `on_progress` receives what the tool reports with `progress`,
        and `allowed` means that the call was approved.
        """
        return cls(
            run_id="test",
            step=1,
            call_id="call_1",
            conversation="",
            asker=asker or Asker(""),
            deadline=math.inf,
            ports=deps or {},
            allowed=allowed,
            reports=on_progress,
        )

    def port(self, kind: type[T]) -> T:
        """The capability of this kind. Raises ToolUnavailable if this run has none."""
        try:
            return cast("T", self.ports[kind])
        except KeyError:
            raise ToolUnavailable(
                f"needs {kind.__name__}, which is not there in this run"
            ) from None

    def progress(self, partial_result: object = None, **details: Any) -> None:
        """Report progress: a text, or a partial `ToolResult`. Never waits.

        It is for people who watch the run, not for the model. Ignored once the call is over.

            context.progress("downloading", percent=40)
        """
        if self.reports is not None:
            result = ToolResult() if partial_result is None else ToolResult.of(partial_result)
            if details:
                known = (
                    result.details
                    if isinstance(result.details, Mapping)
                    else {"details": result.details}
                )
                result = structs.replace(result, details={**known, **details})
            self.reports(result)


Guard: TypeAlias = Callable[[ToolContext, Mapping[str, Any]], Awaitable[None] | None]
"""A tool's own check of valid arguments. To refuse, raise ToolError or ValueError."""

Prepare: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes raw arguments before any check: for a vendor's quirk, or a default it left out."""

Recover: TypeAlias = Callable[[ToolContext, Mapping[str, Any], Exception], Any]
"""Handles an exception of the body: returns a result (or an awaitable of one), or raises."""

Available: TypeAlias = Callable[[], object]
"""Why the tool cannot be used right now; empty if it can. Called before each model request, so it
must be quick. May also return a bool, or a bool and a text.
"""


class ToolStatus(Struct, frozen=True):
    """Whether a tool can be used now, and if not, why. `description` is for people."""

    name: str
    type: str
    description: str
    available: bool
    reason: str = ""


class Tool(Struct, Generic[P, R], frozen=True, kw_only=True):
    """A tool the engine can offer. Calling it calls its function, with the same types.

    `check` turns plain arguments into the body's; `shape` is the schema used to repair them first
    (`parameters` if None). `timeout` is in seconds. `label`, `summary` and `type` (a `ToolType`, or
    any other word) are for people. `origin` is a foreign tool's original name, `server` the server
    that runs it. `alone` means that it never shares a step with other calls; `trusted_result` that
    its result is our own data, not text from people or the web; `stays_here` that its effects stay
    in the conversation, or that it asks for an approval itself if they do not. `packed` names the
    body's only parameter if the arguments are its fields. `is_method` means that the body still
    lacks its `self`. An approval is valid for one `revision` only. `untrusted_description` means
    that the description comes from outside. A tool without a `function` can be registered but not
    run.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    check: Check
    function: Callable[P, R] | None
    shape: Shape | None = None
    wants_context: bool = False
    packed: str = ""
    is_method: bool = False
    raw_input: bool = False
    type: str = ToolType.FUNCTION
    needs: tuple[Port, ...] = ()
    requires: tuple[str, ...] = ()
    timeout: float = DEFAULT_TIMEOUT
    permission: Permission = Permission.ALLOW
    audience: Audience = Audience.EVERYONE
    side_effects: SideEffects = SideEffects.UNDECLARED
    idempotent: bool = False
    repeatable: bool = False
    critical: bool = False
    alone: bool = False
    trusted_result: bool = False
    stays_here: bool = False
    execution: Execution = Execution.CONCURRENT
    rate: Rate | None = None
    replaces: bool = False
    label: str = ""
    summary: str = ""
    origin: str = ""
    server: str = ""
    revision: str = ""
    untrusted_description: bool = False
    prepare: Prepare | None = None
    guards: tuple[Guard, ...] = ()
    available: Available | None = None
    recover: Recover | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a tool's name must match {NAME.pattern}, not {self.name!r}")
        if not self.description:
            raise ValueError(
                f"tool {self.name} has no description: the model would not know when to use it"
            )

    @property
    def spec(self) -> ToolSpec:
        """The tool as the model sees it; a copy."""
        return ToolSpec(self.name, self.description, dict(self.parameters))

    @property
    def about(self) -> str:
        """One line for people: the summary, or else the description."""
        return self.summary or self.description

    @property
    def may_have_happened(self) -> bool:
        """Whether an interrupted call leaves it unknown if the effect happened."""
        return self.side_effects.may_have_happened

    @property
    def goes_beyond(self) -> bool:
        """Whether the tool declares effects beyond the conversation."""
        return self.side_effects.may_have_happened and not self.stays_here

    @property
    def may_be_retried(self) -> bool:
        """Whether a second run does no harm. Requires declared side effects."""
        return self.idempotent and self.side_effects is not SideEffects.UNDECLARED

    @property
    def is_guarded_from_repeats(self) -> bool:
        """Whether repeating the same call can only give the same result."""
        return self.idempotent and self.side_effects.is_harmless and not self.repeatable

    def read(self, raw: str) -> Checked:
        """Parse, repair and validate a call. Raises InvalidArguments, and as `prepare` does."""
        mended: tuple[str, ...] = ()
        if self.raw_input:
            given = parse_input(raw)
        else:
            given, mended = parse_by_schema(self.parameters, raw, name=self.name)
        checked = self.validate(given if self.prepare is None else self.prepare(given))
        return structs.replace(checked, coerced=(*mended, *checked.coerced)) if mended else checked

    def validate(self, given: Mapping[str, Any]) -> Checked:
        """Repair and validate plain arguments. Raises InvalidArguments."""
        shape = self.shape or Shape.of(self.parameters)
        checked = read_arguments(
            given, shape=shape, check=self.check, lenient=self.side_effects.is_harmless
        )
        properties = self.parameters.get("properties", {})
        known = (
            checked.arguments[self.packed]
            if self.packed
            else {name: value for name, value in checked.arguments.items() if name in properties}
        )
        return structs.replace(
            checked, plain=completed(checked.plain, to_jsonable_python(known, fallback=str))
        )

    def wrap(self, check: Guard) -> Tool[P, R]:
        """A copy of the tool with an additional check, which every call must pass."""
        return self.replace(guards=(*self.guards, check))

    def replace(self, **changes: Any) -> Tool[P, R]:
        """A copy of the tool with changed fields. Raises TypeError for an unknown field."""
        return structs.replace(self, **changes)

    def __repr__(self) -> str:
        return f"Tool({self.name})"  # its function and checks may hold secrets

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.function is None:
            raise TypeError(f"tool {self.name} has no body")
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: object = None) -> Tool[..., R]:
        """Bind a tool that was made from a method in a class body."""
        if instance is None or not self.is_method or self.function is None:
            return cast("Tool[..., R]", self)
        body = cast("Callable[..., R]", self.function)
        return cast(
            "Tool[..., R]",
            structs.replace(self, function=partial(body, instance), is_method=False),
        )


def completed(given: Any, checked: Any) -> Any:
    """A copy of `given`, completed at any depth with the defaults that validation added.

    Given values are kept verbatim, so that validating the copy gives the same result.
    """
    match given, checked:
        case dict(), dict():
            own = {name: completed(value, checked.get(name)) for name, value in given.items()}
            return own | {name: value for name, value in checked.items() if name not in own}
        case list(), list() if len(given) == len(checked):
            return [completed(*pair) for pair in zip(given, checked, strict=True)]
        case _:
            return deepcopy(given)


PermissionWord: TypeAlias = Literal["allow", "approve", "deny", "require_approval"] | Permission
AudienceWord: TypeAlias = Literal["everyone", "group_admin", "owner"] | Audience
SideEffectsWord: TypeAlias = (
    Literal["undeclared", "none", "read", "write", "external"] | SideEffects
)
ExecutionWord: TypeAlias = Literal["concurrent", "sequential"] | Execution


class Declarations(TypedDict, total=False):
    """What can be declared about any tool. `tool` explains each key."""

    needs: tuple[type, ...]
    requires: tuple[str, ...]
    timeout: float
    permission: PermissionWord
    audience: AudienceWord
    side_effects: SideEffectsWord
    idempotent: bool
    repeatable: bool
    critical: bool
    alone: bool
    trusted_result: bool
    stays_here: bool
    execution: ExecutionWord
    rate: Rate | str | None
    replace: bool
    label: str
    summary: str
    type: str
    prepare: Prepare | None
    check: Guard | None
    available: Available | None
    recover: Recover | None


class ForeignDeclarations(Declarations, total=False):
    """What can be declared about a tool with a JSON schema."""

    raw_input: bool


class FunctionDeclarations(ForeignDeclarations, total=False):
    """What can be declared about a tool made from a function."""

    name: str
    description: str


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    **declared: Unpack[FunctionDeclarations],
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **declared: Unpack[FunctionDeclarations]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool from a callable. Its name, docstring and annotations are what the model reads.

        @tool
        def roll_dice(sides: int = 6) -> int:
            \"\"\"Roll a die. Returns the number.

            Args:
                sides: How many sides the die has.
            \"\"\"
            return random.randint(1, sides)

    Takes a function, a method, a `functools.partial` (fixed arguments are not offered) or a
    callable object. A plain `def` runs in a thread. If the only parameter is a pydantic model or a
    dataclass, the arguments are its fields. In a class body, it makes one tool for each object:
    `Agent(tools=[desk.book])`.

    Optional declarations:

    - `name` and `description` replace the function's own.
    - `permission` is "allow", "approve" (each call needs an approval) or "deny".
    - `side_effects`, `audience` and `execution` are described in `frostagent/types/traits.py`.
    - `idempotent`: a second run does no harm. `repeatable`: the same call twice is fine.
    - `needs` lists ports, `requires` names of settings.
    - `timeout` is in seconds, `rate` is "calls/seconds".
    - `critical`: a run without this tool has failed. `alone`: it never shares a step with other
      calls.
    - `trusted_result`: it returns our own data. `stays_here`: its effects stay in the conversation.
    - `replace`: replaces a tool of the same name.
    - `label` and `summary` are for people.
    - `prepare`, `check`, `available` and `recover` are described in `frostagent/types/tools.py`.
    - `raw_input`: its one text parameter `input` also accepts text that is not JSON.

    Raises UnsuitableType for a parameter without a JSON schema, ValueError for a bad name, a
    missing description or an unknown word.
    """
    if function is None:
        return lambda each: make_tool(each, **declared)
    return make_tool(function, **declared)


def make_tool(function: Callable[P, R], /, **declared: Unpack[FunctionDeclarations]) -> Tool[P, R]:
    """The same as `@tool`, as a plain function call."""
    signature = read_signature(function, skip=ToolContext)
    raw_input = declared.pop("raw_input", False)
    fields = {key: info.annotation for key, info in signature.model.model_fields.items()}
    if raw_input and fields != {INPUT: str}:
        raise UnsuitableType(
            f"{signature.name}: a tool that takes raw input has one parameter, {INPUT}: str"
        )
    return Tool(
        name=declared.pop("name", "") or signature.name,
        description=declared.pop("description", "") or signature.description,
        parameters=signature.schema(),
        shape=Shape.of(signature.schema(READ)),
        check=signature.check,
        function=function,
        wants_context=signature.wants_context,
        packed=signature.packed,
        is_method=signature.is_method,
        raw_input=raw_input,
        **fields_of(**declared),
    )


def fields_of(
    *,
    permission: PermissionWord = Permission.ALLOW,
    audience: AudienceWord = Audience.EVERYONE,
    side_effects: SideEffectsWord = SideEffects.UNDECLARED,
    execution: ExecutionWord = Execution.CONCURRENT,
    rate: Rate | str | None = None,
    check: Guard | None = None,
    replace: bool = False,
    **others: Any,
) -> dict[str, Any]:
    """Declarations as fields of `Tool`. Raises ValueError for unknown words."""
    return {
        "permission": Permission(permission),
        "audience": Audience(audience),
        "side_effects": SideEffects(side_effects),
        "execution": Execution(execution),
        "rate": Rate.parse(rate) if isinstance(rate, str) else rate,
        "guards": () if check is None else (check,),
        "replaces": replace,
        **others,
    }
