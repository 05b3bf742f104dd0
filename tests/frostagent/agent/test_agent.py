"""What tests/conformance does not show of the agent: sessions, failures, what stands around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest
from msgspec.structs import replace
from pydantic import BaseModel

from frostagent.agent import Agent
from frostagent.engine.external_tools import as_tool
from frostagent.engine.toolset import Toolset
from frostagent.reply import MustWait, Reply, RunFailed, StepLimitReached
from frostagent.sessions import InMemory
from frostagent.testing.scripted_model import ScriptedModel, call
from frostagent.types.errors import ConfigError, ModelAuth
from frostagent.types.hooks import BeforeCall, Hook
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
)
from frostagent.types.runs import Asker
from frostagent.types.suspension import Allow, ApprovalRequest, BadSuspension, Pending
from frostagent.types.tools import ToolContext, tool
from frostagent.types.traits import Permission
from tests.fakes import CountingIds, ManualClock, RecordingObserver, until


@tool
async def look() -> str:
    """Looks."""
    return "seen"


class Gate:
    """A model that answers when it is let, and counts who waits."""

    name = "gate"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.open = asyncio.Event()

    async def complete(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        await self.open.wait()
        return Completion(AssistantMessage("done"), FinishReason.STOP, Usage(1, 1))


# --- sessions -----------------------------------------------------------------------------------------


async def test_questions_of_one_session_wait_for_each_other_those_of_others_do_not() -> None:
    gate = Gate()
    agent = Agent(model=gate)
    async with asyncio.TaskGroup() as tasks:
        for session in ("a", "a", "b"):
            tasks.create_task(agent.chat_with_session(session, f"from {session}"))
        tasks.create_task(agent.chat("alone"))
        tasks.create_task(agent.chat("alone too"))
        await until(lambda: len(gate.requests) == 4)
        await asyncio.sleep(0)
        assert len(gate.requests) == 4
        gate.open.set()
    assert len(gate.requests[4].messages) == 3


async def test_with_a_memory_all_chats_are_one_session_of_it() -> None:
    memory = InMemory()
    with ScriptedModel("one", "two") as model:
        agent = Agent(model=model, memory=memory, system="Be brief.")
        await agent.chat("first")
        await agent.chat("second")
    assert model.requests[1].messages == (
        SystemMessage("Be brief."),
        UserMessage("first"),
        AssistantMessage("one"),
        UserMessage("second"),
    )
    assert len(await memory.load("")) == 4


async def test_pictures_are_shown_to_the_model() -> None:
    url = "data:image/png;base64,AAAA"
    with ScriptedModel("a cat") as model:
        await Agent(model=model).chat("what is this?", images=[url])
    assert model.requests[0].messages == (UserMessage("what is this?", (url,)),)


# --- saying something into a run ----------------------------------------------------------------------


async def test_a_message_reaches_only_runs_of_its_session() -> None:
    gate = Gate()
    agent = Agent(model=gate)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(agent.chat_with_session("a", "go"))
        await until(lambda: gate.requests)
        assert not agent.steer("hello?", session="b")
        assert not agent.follow_up("hello?")
        assert agent.follow_up("and then?", session="a")
        gate.open.set()
    assert (await running).text == "done"
    assert gate.requests[1].messages[-1] == UserMessage("and then?")
    assert not agent.follow_up("too late", session="a")


async def test_nothing_is_said_into_a_structured_run() -> None:
    gate = Gate()
    agent = Agent(model=gate)
    heard: list[bool] = []
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(agent.run_structured("go", {"type": "string"}))
        await until(lambda: gate.requests)
        heard += [agent.steer("barge in"), agent.follow_up("and then?")]
        running.cancel()
    assert heard == [False, False]


# --- tools --------------------------------------------------------------------------------------------


def test_tools_may_be_tools_functions_and_objects() -> None:
    def add(left: int, right: int) -> int:
        """Adds."""
        return left + right

    class Dice:
        name, description = "roll_dice", "Rolls."

        def parameters(self) -> dict[str, Any]:
            return {"properties": {}}

        def execute(self) -> str:
            """Rolls, in its own words."""
            return "6"

    assert as_tool(look) is look
    assert as_tool(add).description == "Adds."
    assert as_tool(Dice()).name == "roll_dice"
    assert as_tool(Dice().execute).name == "execute"
    agent = Agent(model=ScriptedModel(), tools=[look, add, Dice()])
    assert [each.name for each in agent.tools.list()] == ["add", "look", "roll_dice"]


def test_hooks_for_a_toolset_of_ones_own_belong_to_it() -> None:
    registry = Toolset([look], clock=ManualClock())
    with pytest.raises(ConfigError, match="hooks and configured are the toolset's"):
        Agent(model=ScriptedModel(), tools=registry, hooks=[Hook()])


async def test_the_approver_of_a_toolset_is_asked_unless_the_agent_has_one_of_its_own() -> None:
    asked: list[str] = []

    def asking(name: str) -> Callable[[str, Mapping[str, Any]], bool]:
        def allow(_tool: str, _arguments: Mapping[str, Any]) -> bool:
            asked.append(name)
            return True

        return allow

    guarded = replace(look, permission=Permission.REQUIRE_APPROVAL)
    registry = Toolset([guarded], clock=ManualClock(), approver=asking("the toolset's"))
    model = ScriptedModel(call("look"), "1", call("look"), "2", call("look"), "3")
    own = Agent(model=model, tools=registry, approver=asking("the agent's"))
    borrowed = Agent(model=model, tools=registry)
    assert borrowed.approver is registry.approver is not own.approver
    with model:
        for agent in (own, borrowed):
            assert (await agent.chat("go")).tool_failures == ()
        borrowed.set_approval_handler(asking("set later"))
        assert (await borrowed.chat("go")).tool_failures == ()
    assert asked == ["the agent's", "the toolset's", "set later"]


class Telescope(Protocol):
    """A port."""


async def test_ports_and_what_is_configured_reach_the_tools() -> None:
    @tool(needs=(Telescope,), requires=("sky",))
    async def gaze(context: ToolContext) -> str:
        """Gazes."""
        return str(context.port(Telescope))

    with ScriptedModel(call("gaze"), "done") as model:
        agent = Agent(model=model, tools=[gaze], ports={Telescope: "the moon"}, configured=["sky"])
        reply = await agent.chat("go")
    assert reply.tool_failures == ()
    assert "the moon" in str(model.requests[1].messages[-1])


async def test_the_asker_is_on_whose_authority_tools_are_called() -> None:
    seen: list[str] = []

    @tool
    async def who(context: ToolContext) -> None:
        """Says who asks."""
        seen.append(context.asker.user_id)

    with ScriptedModel(call("who"), "done", call("who"), "done") as model:
        agent = Agent(model=model, tools=[who], asker=Asker("7"))
        await agent.chat("go")
        await agent.chat("go", asker=Asker("8"))
    assert seen == ["7", "8"]


# --- runs ---------------------------------------------------------------------------------------------


async def test_clock_ids_and_observer_may_be_given() -> None:
    observer = RecordingObserver()
    with ScriptedModel("hi") as model:
        reply = await Agent(model=model, clock=ManualClock(), ids=CountingIds(), observer=observer).chat("go")
    assert reply.run_id == "t1"
    assert [event.type for event in observer.events] == ["run_started", "step_finished", "run_finished"]


async def test_a_run_that_takes_too_long_fails() -> None:
    with pytest.raises(RunFailed) as caught:
        await Agent(model=Gate(), deadline=0.01).chat("go")
    assert caught.value.kind == "deadline"
    assert not isinstance(caught.value, StepLimitReached)


async def test_a_structured_run_does_not_wait_for_a_word_that_comes_later() -> None:
    class Later:
        async def approve(self, request: ApprovalRequest) -> Pending:
            return Pending(60)

    guarded = tool(name="look", permission="require_approval")(look.function or print)
    agent = Agent(model=ScriptedModel(call("look")), tools=[guarded], approver=Later())
    with pytest.raises(MustWait, match="must be allowed first"):
        await agent.run_structured("go", dict)
    waiting = (await Agent(model=ScriptedModel(call("look")), tools=[guarded], approver=Later()).chat("go")).waiting
    assert waiting is not None
    with pytest.raises(BadSuspension):
        await agent.resume(waiting, {"another call": Allow()})


class Found(BaseModel):
    """What was found."""

    city: str


async def test_a_structured_run_that_fails_raises_as_any_other() -> None:
    with pytest.raises(RunFailed, match="auth"):
        await Agent(model=ScriptedModel("Beijing", ModelAuth("bad key"))).run_structured("Which city?", Found)


async def test_hooks_see_the_requests_of_both_phases() -> None:
    seen: list[int] = []
    hooks = Hook(before_request=lambda event: seen.append(len(event.messages)))
    with ScriptedModel("Beijing", '{"city": "Beijing"}') as model:
        found = await Agent(model=model, hooks=[hooks]).run_structured("Which city?", Found)
    assert (found.value, seen) == (Found(city="Beijing"), [1, 3])


# --- builder ------------------------------------------------------------------------------------------


async def test_a_builder_knows_everything_an_agent_takes() -> None:
    before: list[BeforeCall] = []
    sent: list[Any] = []
    memory = InMemory()

    class Yes:
        async def approve(self, request: ApprovalRequest) -> Allow:
            return Allow()

    model = ScriptedModel(call("look"), "enough")
    agent = (
        Agent.new("looker")
        .with_model(model)
        .with_system_prompt("Look.")
        .with_memory(memory)
        .with_max_steps(1, on_limit="answer")
        .with_approver(Yes())
        .with_send_hook(sent.append)
        .with_options(deadline=5, asker=Asker("7"))
        .add_tool(look)
        .add_hooks(Hook(before_call=before.append))
        .build()
    )
    with model:
        reply: Reply = await agent.chat("go")
    assert (agent.name, reply.text, reply.limit) == ("looker", "enough", True)
    assert before[0].metadata["asker"] == "7"
    assert isinstance(agent.approver, Yes)
    stored = await memory.load("")
    assert isinstance(stored[2], ToolMessage)
