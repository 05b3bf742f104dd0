"""A tool: a name, a description, a flat schema, declarations about itself, a body with a context.

    @tool(needs=(Web,), side_effects="read", idempotent=True)
    async def get_weather(context: ToolContext, city: str) -> str:
        \"\"\"What the model reads: when to use it and what it gives.

        Args:
            city: What the model reads about this parameter.
        \"\"\"

The decorated function becomes a `Tool`; calling it calls the function as before. Tools from
outside, classes and programs become one too (`frostagent/engine/external_tools.py`). Nothing here
runs a call: that is `frostagent/engine/call_executor.py`.
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
"""A capability a tool needs, named by its protocol."""


class ToolContext(Struct, frozen=True, kw_only=True):
    """One call's surroundings; `deadline` is on the clock's monotonic scale, in seconds.

    `response_id` is the model's answer that made the call, `asked` the ids of its asker's messages
    that the run answers. `allowed`: somebody has allowed this very call, so it raises no `Suspend`.
    `inner` is told what a run inside this call does: what its model takes is counted to this one.
    `share` is this run's of its question's budget, where the inner one has its part. `terms` hold
    in both, and so do the library's own `words`.
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
        """A context to call a tool with in a test, without an agent:
        `await price(ToolContext.for_test(deps={Menu: menu}), Order(dish="tea"))`.

        `deps` are what the tool finds with `port`, `on_progress` is told what it says with
        `progress`; `allowed`: somebody has allowed the call. There is no deadline.
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
        """The capability of this kind. Raises ToolUnavailable where this run has none."""
        try:
            return cast("T", self.ports[kind])
        except KeyError:
            raise ToolUnavailable(
                f"needs {kind.__name__}, which is not there in this run"
            ) from None

    def progress(self, partial_result: object = None, **details: Any) -> None:
        """Tell how far the call is: words, or a whole partial `ToolResult`. Nobody hears it once
        the call is over.

        The model does not read it; it is for people who look on. Never waits.
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
"""A tool's own check of a call whose arguments fit its schema. It refuses by raising: a `ToolError`
of its choice, or ValueError, which is told as wrong arguments."""

Prepare: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Raw arguments -> raw arguments, before anything is checked: for a vendor's quirk, or a default
it left out."""

Recover: TypeAlias = Callable[[ToolContext, Mapping[str, Any], Exception], Any]
"""Deals with what a body raised: gives a result in its place (or an awaitable of one), or
raises.
"""

Available: TypeAlias = Callable[[], object]
"""Why the tool cannot be used right now; empty where it can. Asked before each model request, so it
must be quick.

A bool, or a bool and a text, are understood as well (`frostagent/engine/tool_execution.py`)."""


class ToolStatus(Struct, frozen=True):
    """Whether a tool can be used now, and if not, why. `description` is for people: its summary, if
    it has one.
    """

    name: str
    type: str
    description: str
    available: bool
    reason: str = ""


class Tool(Struct, Generic[P, R], frozen=True, kw_only=True):
    """A tool the engine can offer: what the model is told (`spec`), what it declares, and the body,
    whose parameters and result type it keeps: calling it calls the body.

    `check` turns plain arguments into the body's; `shape` is that by which they are mended first
    (by `parameters` where it is left out). `timeout` is in seconds. `label` and `summary` are for
    people, and so is `type`: a word of `ToolType`, or one that a foreign tool has for itself.
    `origin` is the name a foreign tool has at home, `server` that of the server that runs it.
    `alone`: it runs in no step with other calls. `trusted_result`: it tells our own data, nobody's
    words. `stays_here`: its effects stay in the conversation, or it asks by itself for what goes
    beyond. `packed` names the body's only parameter, if the arguments are the fields of it.
    `is_method`: the body still lacks its `self`. An approval of a call holds for one `revision`
    only. `untrusted_description`: its description is words from outside.
    A tool without a `function` can be registered, but not run.
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
        """A line for people: its summary, or else its description."""
        return self.summary or self.description

    @property
    def may_have_happened(self) -> bool:
        """Whether nobody knows if it was done, when it is broken off in the middle."""
        return self.side_effects.may_have_happened

    @property
    def goes_beyond(self) -> bool:
        """Whether it says of itself that it changes something beyond the conversation."""
        return self.side_effects.may_have_happened and not self.stays_here

    @property
    def may_be_retried(self) -> bool:
        """Whether a second run does no harm; what declares no side effects is not believed."""
        return self.idempotent and self.side_effects is not SideEffects.UNDECLARED

    @property
    def is_guarded_from_repeats(self) -> bool:
        """Whether the same call again can only give the same."""
        return self.idempotent and self.side_effects.is_harmless and not self.repeatable

    def read(self, raw: str) -> Checked:
        """The raw text of a call -> arguments that fit. Raises InvalidArguments, and whatever
        `prepare` raises.
        """
        mended: tuple[str, ...] = ()
        if self.raw_input:
            given = parse_input(raw)
        else:
            given, mended = parse_by_schema(self.parameters, raw, name=self.name)
        checked = self.validate(given if self.prepare is None else self.prepare(given))
        return structs.replace(checked, coerced=(*mended, *checked.coerced)) if mended else checked

    def validate(self, given: Mapping[str, Any]) -> Checked:
        """Plain arguments, mended and checked. Raises InvalidArguments."""
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
        """The same tool, guarded: no call runs unless this check passes as well (seeds/004's
        sandbox, as code).
        """
        return self.replace(guards=(*self.guards, check))

    def replace(self, **changes: Any) -> Tool[P, R]:
        """The same tool with other fields. Raises TypeError for a field it does not have."""
        return structs.replace(self, **changes)

    def __repr__(self) -> str:
        return f"Tool({self.name})"  # its function and checks may hold what nobody is to read

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.function is None:
            raise TypeError(f"tool {self.name} has no body")
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: object = None) -> Tool[..., R]:
        """The tool of an object, if it was made of a method in the body of a class."""
        if instance is None or not self.is_method or self.function is None:
            return cast("Tool[..., R]", self)
        body = cast("Callable[..., R]", self.function)
        return cast(
            "Tool[..., R]",
            structs.replace(self, function=partial(body, instance), is_method=False),
        )


def completed(given: Any, checked: Any) -> Any:
    """A copy of what was given, with what checking it has put in besides: the defaults, at any
    depth.

    What was given stays in its own words, so that checking the whole once more gives the same.
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
    """What may be declared about a tool, whatever it is made of; `tool` says what each means."""

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
    """What may be declared about a tool of a JSON schema."""

    raw_input: bool


class FunctionDeclarations(ForeignDeclarations, total=False):
    """What may be declared about a tool made of a function."""

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
    """Make a tool of something that can be called: its name, docstring and annotations say all the
    model needs. Its types stay: calling the tool calls the function.

    A function, a method, a `functools.partial` (what it fixes is not offered) or an object with
    `__call__`; a plain `def` runs in a thread. If its only parameter is a pydantic model or a
    dataclass, the arguments are the fields of it. In the body of a class it makes the tool of each
    object: `Agent(tools=[desk.book])`.

    What may be declared (all of it optional): `name` and `description` in place of the function's
    own; `permission` ("allow", "approve": somebody must allow each call, "deny"), `side_effects`,
    `audience`, `execution` (the words of `frostagent/types/traits.py`); `idempotent` (a second run
    does no harm); `needs` (ports) and `requires` (names of settings); `timeout` in seconds; `rate`
    as "calls/seconds"; `repeatable` (the same call twice is fine); `critical` (a run without it has
    failed); `alone` (it runs in no step with other calls); `trusted_result` (it tells our own
    data); `stays_here` (its effects do); `replace` (on purpose a second one of that name); `label`
    and `summary` for people; `prepare`, `check`, `available`, `recover` as described above;
    `raw_input` (its one text parameter `input` also takes what is no JSON).

    Raises UnsuitableType for a parameter that has no JSON schema, ValueError for a bad name, a
    missing description or a word that says nothing.
    """
    if function is None:
        return lambda each: make_tool(each, **declared)
    return make_tool(function, **declared)


def make_tool(function: Callable[P, R], /, **declared: Unpack[FunctionDeclarations]) -> Tool[P, R]:
    """The same as `@tool`, as a function of the function."""
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
    """A person's declarations -> the fields of `Tool`; words become members. Raises ValueError for
    unknown ones.
    """
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
