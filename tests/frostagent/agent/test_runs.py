from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from frostagent.agent import Agent
from frostagent.reply import RunFailed
from frostagent.sessions import InMemory
from frostagent.testing.scripted_model import ScriptedModel, call
from frostagent.types.errors import BotError, ModelAuth
from frostagent.types.messages import Message, UserMessage
from frostagent.types.ports import Speaker
from frostagent.types.runs import RunEvent, RunStarted, Stop
from frostagent.types.speech import Text
from frostagent.types.tools import ToolContext, tool
from tests.fakes import until
from tests.frostagent.agent.test_agent import Gate, look


async def test_a_run_that_fails_before_anything_happened_leaves_no_trace_in_the_session() -> None:
    memory = InMemory()
    agent = Agent(model=ScriptedModel(ModelAuth("bad key")), memory=memory)
    with pytest.raises(RunFailed) as caught:
        await agent.chat("go")
    assert (caught.value.kind, caught.value.reply.stop) == ("auth", Stop.FAILED)
    assert await memory.load("") == ()


async def test_what_tools_did_in_a_run_that_failed_is_remembered() -> None:
    memory = InMemory()
    agent = Agent(model=ScriptedModel(call("look"), ModelAuth("bad key")), tools=[look], memory=memory)
    with pytest.raises(BotError, match="auth"):
        await agent.chat("go")
    assert [message.type for message in await memory.load("")] == ["user", "assistant", "tool"]


async def test_a_memory_that_breaks_is_told_to_the_caller() -> None:
    class Broken:
        async def load(self, session: str) -> Sequence[Message]:
            raise OSError("the disk is gone")

        async def append(self, session: str, messages: Sequence[Message]) -> None:
            raise AssertionError

    with pytest.raises(OSError, match="the disk is gone"):
        await Agent(model=ScriptedModel(), memory=Broken()).chat("go")


async def test_the_conversation_of_a_run_is_its_session_or_itself() -> None:
    events: list[RunEvent] = []
    agent = Agent(model=ScriptedModel("a", "b", "c"), observer=events.append)
    reply = await agent.run("go")
    await agent.chat_with_session("ann", "go")
    await agent.chat_with_session("10001:group:4242", "go")
    told = [event.conversation for event in events if isinstance(event, RunStarted)]
    assert told == [reply.run_id, "ann", "10001:group:4242"]


async def test_what_was_said_too_late_to_be_heard_is_handed_back() -> None:
    gate = Gate()
    agent = Agent(model=gate, max_steps=1)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(agent.chat("go"))
        await until(lambda: gate.requests)
        agent.steer("one more thing")
        gate.open.set()
    assert running.result().unheard == (UserMessage("one more thing"),)


async def test_an_empty_ending_is_fine_where_a_hook_heard_something() -> None:
    @tool(needs=(Speaker,))
    async def greet(context: ToolContext) -> str:
        """Greets."""
        await context.port(Speaker).say((Text("hi"),))
        return "greeted"

    with ScriptedModel(call("greet"), "") as model:
        reply = await Agent(model=model, tools=[greet], send_hook=lambda _payload: None).chat("go")
    assert (reply.text, reply.stop) == ("", Stop.SILENT)
    with ScriptedModel(call("greet"), "", "", "") as model, pytest.raises(RunFailed, match="empty"):
        await Agent(model=model, tools=[greet]).chat("go")
