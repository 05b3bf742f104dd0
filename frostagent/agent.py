"""An agent: a model with tools, without settings or a store.

    agent = Agent(
        model="deepseek-v4-flash",
        base_url="https://api.deepseek.com",
        api_key=key,
        instructions="You know the weather.",
        tools=[get_weather],
    )
    result = await agent.run("How is the weather in Beijing?")
    print(result.output)

Only the model is required.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    overload,
)

from typing_extensions import TypeForm, Unpack

from frostagent.callbacks import (
    HookSpeaker,
    OnToolError,
    OnToolResult,
    PlainMedia,
    SendHook,
    Subscribers,
    speaking,
    told_results,
    worded_errors,
)
from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.budget import NO_LIMITS, Budget, Limits
from frostagent.engine.call_executor import MAX_CALLS, CallExecutor
from frostagent.engine.engine import Engine, OnLimit, RunState
from frostagent.engine.external_tools import as_tool
from frostagent.engine.server_tools import ServerTools, ToolServer, connected, is_server
from frostagent.engine.subagents import MARGIN, NamedSubagents, Subagent
from frostagent.engine.toolset import (
    ApprovalHandler,
    FunctionApprover,
    Subscriber,
    Toolset,
    as_approver,
)
from frostagent.reply import MustWait, Reply, Structured, Waiting
from frostagent.sessions import CHAT, Given, Memory, SessionRuns
from frostagent.streaming import AgentStream, StreamEvent
from frostagent.structured import Form, fill_in, fill_in_at_once, form_of
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.hooks import Hook
from frostagent.types.messages import AssistantMessage, Message, OnDelta, UserMessage
from frostagent.types.ports import Approver, ChatModel, Clock, Ids, Media, Observer, Speaker
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker, RunEvent, ToolFinished, ToolStarted
from frostagent.types.suspension import Decision
from frostagent.types.tools import Tool, ToolContext, ToolStatus, make_tool
from frostagent.types.traits import Execution, SideEffects

if TYPE_CHECKING:  # it loads the HTTP client
    from frostagent.models.connection import Endpoint

T = TypeVar("T")

MAX_STEPS = 20
DEADLINE = 300.0

ToolLike: TypeAlias = object
"""A `Tool`, a typed function, an object with name, description, parameters and execute, a
`Toolset`, or a server (`frostagent.mcp.MCPServer`).
"""


class RunOptions(TypedDict, total=False):
    """Options of one run: `history` (the messages of an earlier reply), `images` (data URLs),
    `deps` (capabilities for tools, by type), `context` (the asker), and `usage_limits`, which
    replace the agent's.
    """

    history: Sequence[Message]
    images: Sequence[str]
    deps: Mapping[type[Any], object] | None
    context: Asker | None
    usage_limits: Limits | None


class Agent:
    """A model, its tools and their environment. Any number of runs may be active at once.

        agent = Agent(model=model, tools=[get_weather])
        print((await agent.run("How is the weather in Beijing?")).output)

    Model: `model` is any `ChatModel`, or the name of a model behind `base_url` with `api_key`. By
    name, `async with agent:` keeps connections open; otherwise each run opens its own.
    `instructions` start each request.

    Limits: `max_turns` is the number of model requests with tools. After that the model must answer
    in words, or StepLimitReached is raised (`on_limit`). `usage_limits` apply to each run with
    everything inside it. At most `max_calls` calls of a turn are run. `deadline` is in seconds for
    each run.

    Tools: `tools` may be your own `Toolset`, whose hooks and approver then apply. `deps` are
    capabilities for tools, by type. `asker` is the person on whose authority tools are called,
    unless a question names another. Without `send_hook`, messages of `send_message` become its
    result.

    Callbacks: `observer` receives run events, `on_tool_result` the name and output of each call as
    soon as it has its result. Both, and `approver`, may be functions. `on_tool_error` receives what
    a call raised and may return another text for the model.

    Without `memory`, `chat` remembers nothing and `chat_with_session` keeps sessions in the
    process. `system`, `max_steps` and `ports` are old names of `instructions`, `max_turns` and
    `deps`, kept for one more release: the first use of each is a FutureWarning.

    Raises ConfigError for tools that conflict and for a model name without a URL, TypeError for
    arguments of the wrong kind.
    """

    def __init__(
        self,
        *,
        model: ChatModel | str,
        base_url: str = "",
        api_key: str = "",
        name: str = "agent",
        instructions: str = "",
        tools: Iterable[ToolLike] | Toolset = (),
        hooks: Sequence[Hook] = (),
        max_turns: int = 0,
        usage_limits: Limits = NO_LIMITS,
        max_calls: int = MAX_CALLS,
        on_limit: OnLimit = "answer",
        deadline: float = DEADLINE,
        memory: Memory | None = None,
        approver: Approver | ApprovalHandler | None = None,
        send_hook: SendHook | None = None,
        tool_execution: Literal["concurrent", "sequential"] = "concurrent",
        on_tool_result: OnToolResult | None = None,
        on_tool_error: OnToolError | None = None,
        observer: Observer | Subscriber | None = None,
        asker: Asker | None = None,
        deps: Mapping[type[Any], object] | None = None,
        configured: Collection[str] = (),
        clock: Clock | None = None,
        ids: Ids | None = None,
        system: str = "",
        max_steps: int = 0,
        ports: Mapping[type[Any], object] | None = None,
    ) -> None:
        for old, new, is_given in (
            ("system", "instructions", bool(system)),
            ("max_steps", "max_turns", bool(max_steps)),
            ("ports", "deps", ports is not None),
        ):
            if is_given:
                warn_of_old_name(old, new)
        self._endpoint = endpoint_of(model, base_url, api_key, name)
        chat_model = model if self._endpoint is None else self._endpoint
        refuse_unfit(chat_model, memory, send_hook)
        if on_limit not in get_args(OnLimit):
            raise TypeError(f"on_limit is one of {get_args(OnLimit)}, not {on_limit!r}")
        clock = clock or SystemClock()
        self.name, self._approver = name, as_approver(approver)
        tools, self._servers = part_servers(tools)
        self.tools = gather(tools, hooks=hooks, configured=configured, clock=clock)
        self._server_tools = [ServerTools(self.tools, server) for server in self._servers]
        self._ports: dict[type[Any], object] = {Media: PlainMedia(), **(deps or ports or {})}
        self._subscribers = Subscribers(observer)
        self._limits = usage_limits
        self._clock, self._deadline = clock, deadline
        self._instructions = instructions or system
        self._kept: tuple[AsyncExitStack, ChatModel | None] | None = None
        self._engine = partial(
            Engine,
            model=cast("ChatModel", chat_model),
            clock=clock,
            max_steps=max_turns or max_steps or MAX_STEPS,
            deadline=deadline,
            on_limit=on_limit,
        )
        self._executor = executor_of(
            self.tools, tool_execution, max_calls, on_tool_result, on_tool_error
        )
        observed = partial(self._engine, observer=self._subscribers)
        self._runs = SessionRuns(
            engine=observed(toolset=self.tools, executor=self._executor),
            writer=observed(toolset=self.tools.part(())),
            memory=memory,
            system=self._instructions,
            asker=asker or Asker(""),
            ids=ids or RandomIds(),
            speak=partial(HookSpeaker, send_hook, asyncio.Lock()),
            ports=self._ports_now,
        )
        self.tools.serve(name, {Speaker, *self._ports_now()})

    @staticmethod
    def new(name: str) -> Builder:
        """Begin an agent that is configured step by step."""
        return Builder(name)

    # --- approvals and observers ------------------------------------------------------------------

    @property
    def approver(self) -> Approver | None:
        """The approver of calls that need one. Without it, such calls are denied."""
        return self.tools.approver if self._approver is None else self._approver

    def set_approval_handler(self, handler: ApprovalHandler) -> None:
        """Let a function approve calls, as `Toolset.set_approval_handler` does."""
        self._approver = FunctionApprover(handler)

    def _ports_now(self) -> dict[type, object]:
        approver = self.approver
        return self._ports if approver is None else {Approver: approver, **self._ports}

    def check_availability(self) -> tuple[ToolStatus, ...]:
        """Whether each tool can be used now with `deps`, and if not, why; sorted by name."""
        return self.tools.check_availability({Speaker, *self._ports_now()})

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Send all run events to a function, in order. Returns a function that stops this."""
        return self._subscribers.add(subscriber)

    # --- running ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Keep connections open during the block. Raises RuntimeError if already entered."""
        if self._kept is not None:
            raise RuntimeError(f"agent {self.name} is entered twice: one block keeps it connected")
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(self._connected())
            self._kept = stack.pop_all(), model
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            await kept[0].__aexit__(kind, exception, traceback)

    @overload
    async def run(self, prompt: str, **options: Unpack[RunOptions]) -> Reply[str]: ...

    @overload
    async def run(
        self, prompt: str, *, output: TypeForm[T], **options: Unpack[RunOptions]
    ) -> Reply[T]: ...

    @overload
    async def run(
        self, prompt: str, *, output: Mapping[str, Any], **options: Unpack[RunOptions]
    ) -> Reply[Any]: ...

    async def run(
        self,
        prompt: str,
        *,
        output: TypeForm[T] | Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> Reply[Any]:
        """Answer a question, or return early if the run waits for an approval.

        With an `output`, the answer is a value of that type or JSON schema: one request if no tools
        are offered, else a run with tools and one request for the value. A value that does not fit
        is sent back once. `str` is the text as it is. `RunOptions` lists the `options`.

            reply = await agent.run("Where is the Louvre?", output=City)

        Raises RunFailed if there is no answer, UnfitAnswer if the value still does not fit,
        MustWait if a call of a run with an `output` needs an approval that comes later,
        UnsuitableType for an invalid schema, TypeError for an unknown option.
        """
        return await self._answer(prompt, output, options)

    async def _answer(
        self,
        prompt: str,
        output: TypeForm[T] | Mapping[str, Any] | None,
        options: RunOptions,
        *,
        on_delta: OnDelta | None = None,
        run_id: str = "",
    ) -> Reply[Any]:
        refuse_unknown(options)
        question = UserMessage(prompt, tuple(options.get("images", ())))
        asker = options.get("context")
        limits = options.get("usage_limits")
        async with self._connected() as model:
            given = Given(
                history=tuple(options.get("history", ())),
                deps=options.get("deps") or {},
                budget=Budget(self._limits if limits is None else limits),
                model=model,
                on_delta=on_delta,
                run_id=run_id,
            )
            if output is None or output is str:
                return await self._runs.ask(question, asker=asker, given=given)
            filled = await self._fill_in(form_of(output), question, asker=asker, given=given)
            return filled.reply

    @overload
    def stream(self, prompt: str, **options: Unpack[RunOptions]) -> AgentStream[str]: ...

    @overload
    def stream(
        self, prompt: str, *, output: TypeForm[T], **options: Unpack[RunOptions]
    ) -> AgentStream[T]: ...

    @overload
    def stream(
        self, prompt: str, *, output: Mapping[str, Any], **options: Unpack[RunOptions]
    ) -> AgentStream[Any]: ...

    def stream(
        self,
        prompt: str,
        *,
        output: TypeForm[T] | Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> AgentStream[Any]:
        """As `run`, but with events while the run is in progress:

            async with agent.stream("How is the weather?") as stream:
                async for text in stream.text():
                    print(text, end="")
            reply = await stream.result()

        The run begins with the block. Leaving the block early cancels the run and its request to
        the model. With an `output`, the stream covers the run with tools, and the value is in the
        result. The errors of `run` are raised where the stream is read.
        """

        refuse_unknown(options)

        async def run(tell: Callable[[StreamEvent[Any]], None]) -> Reply[Any]:
            run_id = self._runs.new_id()

            def tell_calls(event: RunEvent) -> None:
                if event.run_id == run_id and isinstance(event, ToolStarted | ToolFinished):
                    tell(event)

            unsubscribe = self._subscribers.add(tell_calls)
            try:
                return await self._answer(prompt, output, options, on_delta=tell, run_id=run_id)
            finally:
                unsubscribe()

        return AgentStream(run, ends_with_text=output is None or output is str)

    @overload
    def run_sync(self, prompt: str, **options: Unpack[RunOptions]) -> Reply[str]: ...

    @overload
    def run_sync(
        self, prompt: str, *, output: TypeForm[T], **options: Unpack[RunOptions]
    ) -> Reply[T]: ...

    @overload
    def run_sync(
        self, prompt: str, *, output: Mapping[str, Any], **options: Unpack[RunOptions]
    ) -> Reply[Any]: ...

    def run_sync(self, prompt: str, **options: Any) -> Reply[Any]:
        """As `run`, for scripts without an event loop. Raises RuntimeError if one is running."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(prompt, **options))
        raise RuntimeError("an event loop runs here: await agent.run(...) instead of run_sync")

    def as_tool(self, name: str, description: str) -> Tool[..., Any]:
        """A tool that gives this agent a task and returns its answer.

        The agent runs inside the calling run: on the same authority, within its budget, without
        history. Its calls cannot wait for approvals.
        """

        async def ask(context: ToolContext, task: str) -> ToolResult:
            async with self._connected() as model:
                engine = self._engine if model is None else partial(self._engine, model=model)
                helper = Subagent(
                    name=self.name,
                    description=description,
                    prompt=self._instructions,
                    runner=lambda observer: engine(
                        toolset=self.tools, executor=self._executor, observer=observer
                    ),
                    deadline=self._deadline,
                    ports=self._ports,
                )
                helpers = NamedSubagents([helper], clock=self._clock)
                return await helpers.ask(context, self.name, task)

        effects = [each.side_effects for each in self.tools.list()]
        if self._servers:  # whose tools are not known before they are connected
            effects.append(SideEffects.UNDECLARED)
        return make_tool(
            ask,
            name=name,
            description=description,
            timeout=self._deadline + MARGIN,
            side_effects=SideEffects.strictest(effects),
        )

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ChatModel | None]:
        """Connect endpoint and servers, unless connected. None if a `ChatModel` was given."""
        if self._kept is not None:
            yield self._kept[1]
            return
        async with AsyncExitStack() as stack:
            if self._servers:
                await stack.enter_async_context(connected(self._servers))
            if self._endpoint is None:
                yield None
            else:
                yield await stack.enter_async_context(self._endpoint.connected())

    # --- questions --------------------------------------------------------------------------------

    async def chat(
        self, text: str, *, images: Sequence[str] = (), asker: Asker | None = None
    ) -> Reply:
        """Answer a question. `images` are data URLs. With a memory, all chats share one session.

        Raises RunFailed (or its subclass StepLimitReached) if there is no answer.
        """
        question, session = UserMessage(text, tuple(images)), self._runs.of_chat
        async with self._connected() as model:
            return await self._runs.ask(question, session, asker=asker, given=self._given(model))

    async def chat_with_session(
        self, session: str, text: str, *, images: Sequence[str] = (), asker: Asker | None = None
    ) -> Reply:
        """Answer a question within a session: reads the session's history and adds to it.

        Questions of one session are answered one after another. Raises as `chat` does.
        """
        question = UserMessage(text, tuple(images))
        async with self._connected() as model:
            return await self._runs.ask(question, session, asker=asker, given=self._given(model))

    async def resume(
        self,
        waiting: Waiting,
        decisions: Mapping[str, Decision],
        *,
        deps: Mapping[type[Any], object] | None = None,
        usage_limits: Limits | None = None,
    ) -> Reply:
        """Continue a run that waits (`Reply.waiting`), even in another process.

        `decisions` are by call id; undecided calls wait further. Usage so far counts. Pass `deps`
        and `usage_limits` again if the run had its own. Raises BadSuspension if the run cannot
        continue, else as `chat` does.
        """
        limits = self._limits if usage_limits is None else usage_limits
        budget = Budget(limits, waiting.suspended.spent)
        async with self._connected() as model:
            given = Given(deps=deps or {}, budget=budget, model=model)
            return await self._runs.resume(waiting, decisions, given=given)

    def _given(self, model: ChatModel | None) -> Given:
        return Given(budget=Budget(self._limits), model=model)

    @overload
    async def run_structured(
        self, text: str, schema: TypeForm[T], *, asker: Asker | None = None
    ) -> Structured[T]: ...

    @overload
    async def run_structured(
        self, text: str, schema: Mapping[str, Any], *, asker: Asker | None = None
    ) -> Structured[Any]: ...

    async def run_structured(
        self, text: str, schema: TypeForm[T] | Mapping[str, Any], *, asker: Asker | None = None
    ) -> Structured[T] | Structured[Any]:
        """Answer a question with a value of a type (such as a pydantic model) or of a JSON schema.

        Without history. If tools are offered, a run with them, then one request for the value; else
        one request, and a second if its answer has no JSON. A value that does not fit is sent back
        once. Raises RunFailed, UnfitAnswer, MustWait (a call needs an approval that comes later),
        UnsuitableType (an invalid schema).
        """
        async with self._connected() as model:
            question, given = UserMessage(text), self._given(model)
            return await self._fill_in(form_of(schema), question, asker=asker, given=given)

    async def _fill_in(
        self, form: Form[T], question: UserMessage, *, asker: Asker | None, given: Given
    ) -> Structured[T]:
        write = partial(self._runs.write, schema=form.schema, asker=asker, given=given)
        asked = (*self._runs.system, *given.history, question)
        if not self._runs.uses_tools(asker, given):
            filled = await fill_in_at_once(form, asked, write)
            told = (AssistantMessage(filled.reply.text),)  # without the request for a value
            messages = (*given.history, question, *told)
            reply = replace(filled.reply, messages=messages, new_messages=told)
            return replace(filled, reply=reply)
        found = await self._runs.ask(question, asker=asker, heard_in=None, given=given)
        if found.waiting is not None:
            raise MustWait(
                "a call must be allowed first, and a structured run cannot wait for that"
            )
        return await fill_in(form, found, (*asked, *found.new_messages), write)

    # --- messages during a run --------------------------------------------------------------------

    def steer(self, text: str, *, session: str = CHAT) -> bool:
        """Add a message to the session's active runs; they read it after the current tool calls.

        False if none is active. The default session is that of `chat`. Runs with an `output` cannot
        be steered.
        """
        return self._say_into(session, lambda state: state.steer(UserMessage(text)))

    def follow_up(self, text: str, *, session: str = CHAT) -> bool:
        """Queue a question for after the current answer. False if no run is active."""
        return self._say_into(session, lambda state: state.follow_up(UserMessage(text)))

    def _say_into(self, session: str, say: Callable[[RunState], None]) -> bool:
        running = self._runs.in_session(session)
        for state in running:
            say(state)
        return bool(running)


OLD_NAMES_USED: set[str] = set()


def warn_of_old_name(old: str, new: str) -> None:
    """Issue a FutureWarning, once per process, for an option given by its old name."""
    if old not in OLD_NAMES_USED:
        OLD_NAMES_USED.add(old)
        message = f"Agent({old}=) is deprecated: it is called {new} now"
        warnings.warn(message, FutureWarning, stacklevel=3)


def executor_of(
    tools: Toolset,
    execution: Literal["concurrent", "sequential"],
    max_calls: int,
    on_tool_result: OnToolResult | None,
    on_tool_error: OnToolError | None,
) -> CallExecutor:
    """The executor of a step's calls. Raises TypeError for a coroutine function as callback."""
    return CallExecutor(
        tools,
        execution=Execution(execution),
        max_calls=max_calls,
        on_result=None if on_tool_result is None else told_results(on_tool_result),
        on_error=None if on_tool_error is None else worded_errors(on_tool_error),
    )


def endpoint_of(model: object, base_url: str, api_key: str, name: str) -> Endpoint | None:
    """The endpoint of a model given by name; None for a `ChatModel`. Raises ConfigError."""
    if isinstance(model, str) and base_url:
        from frostagent.models.connection import Endpoint  # noqa: PLC0415  # loads the HTTP client

        return Endpoint(base_url, model, api_key)
    if isinstance(model, str):
        raise ConfigError(
            Problem(f"agent {name}", f"model {model!r} has no base_url", "Give the vendor's url.")
        )
    if base_url or api_key:
        raise ConfigError(
            Problem(
                f"agent {name}",
                "base_url and api_key belong to a model that is given by its name",
                'Leave them out, or give model="its name".',
            )
        )
    return None


def refuse_unfit(model: object, memory: object, send_hook: object) -> None:
    """Raises TypeError for an invalid model, memory or send hook. The last two may be None."""
    wanted: list[tuple[str, object, tuple[str, ...]]] = [("a model", model, ("complete",))]
    if memory is not None:
        wanted.append(("a memory", memory, ("load", "append")))
    for what, given, methods in wanted:
        missing = [name for name in methods if not callable(getattr(given, name, None))]
        if missing:
            raise TypeError(
                f"{what} has {' and '.join(methods)}, {type(given).__name__} has no {missing[0]}"
            )
    if send_hook is not None and not callable(send_hook):
        raise TypeError(f"a send hook is a function, not {type(send_hook).__name__}")


def refuse_unknown(options: RunOptions) -> None:
    """Raises TypeError for an option that no run has, which would have no effect."""
    if unknown := options.keys() - RunOptions.__optional_keys__:
        known = ", ".join(sorted(RunOptions.__optional_keys__))
        raise TypeError(f"a run has no option {min(unknown)}: it takes output, {known}")


def part_servers(
    tools: Iterable[ToolLike] | Toolset,
) -> tuple[Iterable[ToolLike] | Toolset, tuple[ToolServer, ...]]:
    """The other tools, and the servers."""
    if isinstance(tools, Toolset):
        return tools, ()
    given = tuple(tools)
    servers = tuple(each for each in given if is_server(each))
    return [each for each in given if not is_server(each)], servers


def gather(
    tools: Iterable[ToolLike] | Toolset,
    *,
    hooks: Sequence[Hook],
    configured: Collection[str],
    clock: Clock,
) -> Toolset:
    """All tools in one `Toolset`: a single toolset itself, those in a list by their tools and
    permissions. Raises ConfigError, TypeError.
    """
    if isinstance(tools, Toolset):
        if hooks or configured:
            problem = "hooks and configured are the toolset's, where the tools are one"
            raise ConfigError(
                Problem("tools", problem, "Give them to the Toolset, or the agent a list of tools.")
            )
        for each in tools.list():
            if Speaker in each.needs:
                tools.register(speaking(each), replace=True)
        return tools
    made = map(speaking, map(as_tool, chain.from_iterable(map(tools_in, tools))))
    return Toolset(made, clock=clock, hooks=hooks, configured=configured)


def tools_in(source: ToolLike) -> Iterable[ToolLike]:
    """The tools of a toolset, or the tool itself. Raises ConfigError for a toolset with hooks."""
    if not isinstance(source, Toolset):
        return (source,)
    if source.hooks or source.approver is not None:
        problem = "a toolset with hooks or an approver stands in a list with others"
        raise ConfigError(
            Problem("tools", problem, "Give the hooks and the approver to the agent instead.")
        )
    checks = source.checks
    return [
        tool.replace(
            permission=source.permission_of(tool),
            requires=tool.requires if checks.lacks(tool, tool.needs) else (),
        )
        for tool in source
    ]


class Builder:
    """Configures an agent step by step:
    `Agent.new("weather").with_model(model).add_tool(get_weather).build()`.
    """

    def __init__(self, name: str) -> None:
        self._options: dict[str, Any] = {"name": name}
        self._tools: list[ToolLike] = []
        self._hooks: list[Hook] = []

    def with_model(self, model: ChatModel) -> Builder:
        """Set the model. Required."""
        return self._with(model=model)

    def with_system_prompt(self, system: str) -> Builder:
        """Set the agent's instructions."""
        return self._with(instructions=system)

    def with_memory(self, memory: Memory) -> Builder:
        return self._with(memory=memory)

    def with_max_steps(self, max_steps: int, *, on_limit: OnLimit = "answer") -> Builder:
        """Limit the model requests with tools per run, and choose what happens at the limit."""
        return self._with(max_turns=max_steps, on_limit=on_limit)

    def with_approver(self, approver: Approver | ApprovalHandler) -> Builder:
        """Set the approver of calls that need one."""
        return self._with(approver=approver)

    def with_send_hook(self, send_hook: SendHook) -> Builder:
        """Set the function that receives messages of `send_message` during a run."""
        return self._with(send_hook=send_hook)

    def with_options(self, **options: Any) -> Builder:
        """Set any other option of `Agent`, by name."""
        return self._with(**options)

    def add_tool(self, tool: ToolLike) -> Builder:
        self._tools.append(tool)
        return self

    def add_hooks(self, hooks: Hook) -> Builder:
        self._hooks.append(hooks)
        return self

    def build(self) -> Agent:
        """Create the agent. Raises ConfigError without a model, and as `Agent` does."""
        if "model" not in self._options:
            name = self._options["name"]
            raise ConfigError(
                Problem(f"agent {name}", "has no model", "Give it one: .with_model(model).")
            )
        return Agent(tools=self._tools, hooks=self._hooks, **self._options)

    def _with(self, **options: Any) -> Builder:
        self._options.update(options)
        return self
