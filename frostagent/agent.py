"""The engine as a library: an agent with a model and tools, without QQ, settings or a store.

    agent = Agent(model=model, tools=[get_weather], system="You know the weather.")
    reply = await agent.chat("How is the weather in Beijing?")
    print(reply.text)

Everything around it may be left out. `frostagent` has `connect`, which makes the model of a
url, a name and a key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, overload

from frostagent.callbacks import (
    HookSpeaker,
    OnToolResult,
    PlainMedia,
    SendHook,
    Subscriber,
    Subscribers,
    speaking,
    told_results,
)
from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.call_executor import MAX_CALLS, CallExecutor
from frostagent.engine.engine import Engine, OnLimit, RunState
from frostagent.engine.external_tools import as_tool
from frostagent.engine.toolset import ApprovalHandler, FunctionApprover, Toolset, as_approver
from frostagent.reply import MustWait, Reply, Structured, Waiting
from frostagent.sessions import CHAT, Memory, SessionRuns
from frostagent.structured import fill_in, fill_in_at_once, form_of
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.hooks import Hooks
from frostagent.types.messages import UserMessage
from frostagent.types.ports import Approver, ChatModel, Clock, Ids, Media, Observer, Speaker
from frostagent.types.runs import Asker
from frostagent.types.suspension import Decision
from frostagent.types.traits import Execution

T = TypeVar("T")

MAX_STEPS = 20
DEADLINE = 300.0

ToolLike: TypeAlias = object
"""A `Tool`, a typed function, or an object with name, description, parameters and execute."""


class Agent:
    """A model, tools, and what stands around them; any number of runs may go on at once, one in
    each session.

    `tools` may be a `Toolset` of one's own (then its hooks and approver count). `max_steps` are
    model requests with tools, 0 for the default; beyond them the model must answer in words, or
    StepLimitReached is raised (`on_limit`). Of the calls of one step `max_calls` are run.
    `observer` is told what runs tell, `on_tool_result` name and output of a call as soon as it has
    its result; both, and the `approver`, may be functions. `deadline` is in seconds for a run.
    Without `memory`, `chat` remembers nothing and `chat_with_session` keeps its sessions in the
    process. Without `send_hook`, what `send_message` would say is its result. `asker` is on whose
    authority tools are called where a question names nobody else. `ports` are capabilities for
    tools that need them.

    Raises ConfigError for tools that cannot be together, TypeError for what is no model, tool, hook
    and so on.
    """

    def __init__(
        self,
        *,
        model: ChatModel,
        name: str = "agent",
        tools: Iterable[ToolLike] | Toolset = (),
        system: str = "",
        max_steps: int = MAX_STEPS,
        max_calls: int = MAX_CALLS,
        on_limit: OnLimit = "answer",
        deadline: float = DEADLINE,
        memory: Memory | None = None,
        hooks: Sequence[Hooks] = (),
        approver: Approver | ApprovalHandler | None = None,
        send_hook: SendHook | None = None,
        tool_execution: Literal["concurrent", "sequential"] = "concurrent",
        on_tool_result: OnToolResult | None = None,
        observer: Observer | Subscriber | None = None,
        asker: Asker | None = None,
        ports: Mapping[type, object] | None = None,
        configured: Collection[str] = (),
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        refuse_unfit(model, memory, send_hook)
        clock = clock or SystemClock()
        self.name, self._approver = name, as_approver(approver)
        self.tools = gather(tools, hooks=hooks, configured=configured, clock=clock)
        self._ports = {Media: PlainMedia(), **(ports or {})}
        self._subscribers = Subscribers(observer)
        engine = partial(
            Engine,
            model=model,
            clock=clock,
            observer=self._subscribers,
            max_steps=max_steps or MAX_STEPS,
            deadline=deadline,
            on_limit=on_limit,
        )
        executor = executor_of(self.tools, tool_execution, max_calls, on_tool_result)
        self._runs = SessionRuns(
            engine=engine(toolset=self.tools, executor=executor),
            writer=engine(toolset=self.tools.part(())),
            memory=memory,
            system=system,
            asker=asker or Asker(0),
            ids=ids or RandomIds(),
            speak=partial(HookSpeaker, send_hook, asyncio.Lock()),
            ports=self._ports_now,
        )

    @staticmethod
    def new(name: str) -> Builder:
        """Begin an agent that is put together step by step."""
        return Builder(name)

    # --- who is asked, who looks on ---------------------------------------------------------------

    @property
    def approver(self) -> Approver | None:
        """Who is asked about calls that need somebody's word; without one they are denied."""
        return self.tools.approver if self._approver is None else self._approver

    def set_approval_handler(self, handler: ApprovalHandler) -> None:
        """As `Toolset.set_approval_handler`: let a function say whether a call may run."""
        self._approver = FunctionApprover(handler)

    def _ports_now(self) -> dict[type, object]:
        approver = self.approver
        return self._ports if approver is None else {Approver: approver, **self._ports}

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Be told all run events, in order, while they happen. What this returns ends that."""
        return self._subscribers.add(subscriber)

    # --- asking -----------------------------------------------------------------------------------

    async def chat(
        self, text: str, *, images: Sequence[str] = (), asker: Asker | None = None
    ) -> Reply:
        """Ask, and run to the end. `images` are data urls. With a memory, all chats are one session
        of it.

        Raises RunFailed where there is no answer, StepLimitReached among it.
        """
        question = UserMessage(text, tuple(images))
        return await self._runs.ask(question, self._runs.of_chat, asker=asker)

    async def chat_with_session(
        self, session: str, text: str, *, images: Sequence[str] = (), asker: Asker | None = None
    ) -> Reply:
        """Ask within a session: what was said there before is read, and this is added. One question
        after the other.

        Raises as `chat` does.
        """
        return await self._runs.ask(UserMessage(text, tuple(images)), session, asker=asker)

    async def resume(self, waiting: Waiting, decisions: Mapping[str, Decision]) -> Reply:
        """Go on with a run that waits (`Reply.waiting`), in another process too; `decisions` are by
        call id.

        Raises BadSuspension where that cannot be, else as `chat` does. What is undecided is waited
        for further.
        """
        return await self._runs.resume(waiting, decisions)

    @overload
    async def run_structured(
        self, text: str, schema: type[T], *, asker: Asker | None = None
    ) -> Structured[T]: ...

    @overload
    async def run_structured(
        self, text: str, schema: Mapping[str, Any], *, asker: Asker | None = None
    ) -> Structured[Any]: ...

    async def run_structured(
        self, text: str, schema: type[T] | Mapping[str, Any], *, asker: Asker | None = None
    ) -> Structured[T] | Structured[Any]:
        """Find out with tools, then say it as a value: of a type (a pydantic model, say), or of a
        JSON schema.

        A fresh loop, without any history. If tools are offered, a run with them, then one request
        for the value; else one request in all, and a second if its answer has no JSON. A value that
        does not fit is sent back once: one more request. Raises RunFailed, UnfitAnswer, MustWait (a
        call needs somebody's word that comes later), UnsuitableType (a schema that is none).
        """
        form = form_of(schema)
        question = UserMessage(text)
        write = partial(self._runs.write, asker=asker)
        if not self._runs.uses_tools(asker):
            return await fill_in_at_once(form, (*self._runs.system, question), write)
        found = await self._runs.ask(question, asker=asker, heard_in=None)
        if found.waiting is not None:
            raise MustWait(
                "a call must be allowed first, and a structured run cannot wait for that"
            )

        transcript = (*self._runs.system, question, *found.messages)
        return await fill_in(form, found, transcript, write)

    # --- saying something into a run --------------------------------------------------------------

    def steer(self, text: str, *, session: str = CHAT) -> bool:
        """Say something into the runs of a session that go on: read after the tool calls under way.

        False where none goes on. The session of `chat` is the default; a structured run has none.
        """
        return self._say_into(session, lambda state: state.steer(UserMessage(text)))

    def follow_up(self, text: str, *, session: str = CHAT) -> bool:
        """Ask something more, once what the runs of the session are asked now is answered; False
        where none goes on.
        """
        return self._say_into(session, lambda state: state.follow_up(UserMessage(text)))

    def _say_into(self, session: str, say: Callable[[RunState], None]) -> bool:
        running = self._runs.in_session(session)
        for state in running:
            say(state)
        return bool(running)


def executor_of(
    tools: Toolset,
    execution: Literal["concurrent", "sequential"],
    max_calls: int,
    on_tool_result: OnToolResult | None,
) -> CallExecutor:
    """How the calls of a step are run. Raises TypeError for a function that must be awaited."""
    return CallExecutor(
        tools,
        execution=Execution(execution),
        max_calls=max_calls,
        on_result=None if on_tool_result is None else told_results(on_tool_result),
    )


def refuse_unfit(model: object, memory: object, send_hook: object) -> None:
    """Raises TypeError for what is no model, no memory, no function; the last two may be None."""
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


def gather(
    tools: Iterable[ToolLike] | Toolset,
    *,
    hooks: Sequence[Hooks],
    configured: Collection[str],
    clock: Clock,
) -> Toolset:
    """The tools as a registry. Raises ConfigError, TypeError."""
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
    made = map(speaking, map(as_tool, tools))
    return Toolset(made, clock=clock, hooks=hooks, configured=configured)


class Builder:
    """An agent, put together step by step:
    `Agent.new("weather").with_model(model).add_tool(get_weather).build()`.
    """

    def __init__(self, name: str) -> None:
        self._options: dict[str, Any] = {"name": name}
        self._tools: list[ToolLike] = []
        self._hooks: list[Hooks] = []

    def with_model(self, model: ChatModel) -> Builder:
        """The model that answers; the one thing that must be said."""
        return self._with(model=model)

    def with_system_prompt(self, system: str) -> Builder:
        """Who the agent is, and what it is to do."""
        return self._with(system=system)

    def with_memory(self, memory: Memory) -> Builder:
        """The memory of its sessions."""
        return self._with(memory=memory)

    def with_max_steps(self, max_steps: int, *, on_limit: OnLimit = "answer") -> Builder:
        """How many model requests with tools a run may take, and what happens then."""
        return self._with(max_steps=max_steps, on_limit=on_limit)

    def with_approver(self, approver: Approver | ApprovalHandler) -> Builder:
        """Who is asked about calls that need somebody's word."""
        return self._with(approver=approver)

    def with_send_hook(self, send_hook: SendHook) -> Builder:
        """Who hears what `send_message` says, while the run goes on."""
        return self._with(send_hook=send_hook)

    def with_options(self, **options: Any) -> Builder:
        """Anything else that `Agent` takes, by its name."""
        return self._with(**options)

    def add_tool(self, tool: ToolLike) -> Builder:
        """One more tool."""
        self._tools.append(tool)
        return self

    def add_hooks(self, hooks: Hooks) -> Builder:
        """One more party that has a say in its runs."""
        self._hooks.append(hooks)
        return self

    def build(self) -> Agent:
        """The agent. Raises ConfigError without a model, and as `Agent` does."""
        if "model" not in self._options:
            name = self._options["name"]
            raise ConfigError(
                Problem(f"agent {name}", "has no model", "Give it one: .with_model(model).")
            )
        return Agent(tools=self._tools, hooks=self._hooks, **self._options)

    def _with(self, **options: Any) -> Builder:
        self._options.update(options)
        return self
