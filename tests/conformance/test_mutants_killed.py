"""What a mutated engine got away with: a registration that fails half way, approvals all at once, an answer that is
only truthy, a session that a hook never hears of.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

import tools
from frostagent import (
    Agent,
    Allow,
    ApprovalRequest,
    ConfigError,
    Decision,
    Deny,
    Pending,
    ScriptedModel,
    ToolContext,
    Toolset,
    call,
)
from tests.cases import each_case
from tests.conformance.weather import counted, echo, result_of, results

BUILT_IN = {tool.name: tool for tool in tools.discover()}


async def test_a_refused_registration_leaves_the_first_tool_in_its_place() -> None:
    registry = Toolset([echo])
    told = registry.definitions()

    def other(text: str) -> str:
        """Another one of that name."""
        return f"other {text}"

    with pytest.raises(ConfigError, match="registered twice"):
        registry.register(echo.replace(function=other, description="Another one."))
    assert registry.get("echo") is echo
    assert registry.list() == (echo,)
    assert registry.definitions() is told
    assert (await registry.execute("echo", {"text": "hi"})).content == "hi"


@each_case("wrong", [object(), 3, "echo", None])
async def test_what_is_no_tool_is_refused_and_nothing_of_it_is_kept(wrong: object) -> None:
    registry = Toolset([echo])
    with pytest.raises((TypeError, ValueError)):
        registry.register(wrong)
    assert registry.list() == registry.list() == (echo,)
    assert [spec.name for spec in registry.definitions()] == ["echo"]


# --- approvals ------------------------------------------------------------------------------------


async def test_a_person_is_asked_about_one_call_after_the_other() -> None:
    look, ran = counted(permission="require_approval", side_effects="read")
    asked: list[str] = []
    asking = threading.Semaphore(1)
    at_once: list[bool] = []

    def approve(_name: str, arguments: Mapping[str, Any]) -> bool:
        at_once.append(not asking.acquire(blocking=False))
        asked.append(arguments["text"])
        threading.Event().wait(0.05)  # a person reads
        asking.release()
        return True

    with ScriptedModel([call("look", text=text) for text in "abc"], "done") as model:
        agent = Agent(model=model, tools=[look], approver=approve)
        await agent.run("go")
    assert at_once == [False] * 3
    assert sorted(asked) == ["a", "b", "c"]
    assert sorted(ran) == ["a", "b", "c"]


async def test_three_calls_that_wait_are_each_decided_by_their_own_word() -> None:
    class Later:
        async def approve(self, request: ApprovalRequest) -> Pending:
            return Pending(3600)

    look, ran = counted(permission="require_approval", side_effects="read")
    with ScriptedModel([call("look", text=text) for text in "abc"], "done") as model:
        agent = Agent(model=model, tools=[look], approver=Later())
        waiting = (await agent.run("go")).waiting
        assert waiting is not None
        first, second, third = (each.call.id for each in waiting.suspended.pending)
        still = (await agent.resume(waiting, {second: Deny("no")})).waiting
        assert still is not None
        assert ([each.call.id for each in still.suspended.pending], ran) == ([first, third], [])
        decisions: dict[str, Decision] = {first: Allow(), third: Allow()}
        reply = await agent.resume(still, decisions)
    assert ran == ["a", "c"]
    assert [(each.call_id, each.is_error) for each in results(reply)] == [
        (first, False),
        (second, True),
        (third, False),
    ]


@each_case("answer", [1, "yes", "no", [True], {"allowed": True}, 1.0, object(), None, False, 0])
@each_case("waits", [False, True])
async def test_nothing_but_true_allows_a_call(answer: object, waits: bool) -> None:
    look, ran = counted(permission="require_approval")

    async def think(_name: str, _arguments: Mapping[str, Any]) -> Any:
        return answer

    def say(_name: str, _arguments: Mapping[str, Any]) -> Any:
        return answer

    model = ScriptedModel(call("look", text="a"), "I may not")
    agent = Agent(model=model, tools=[look])
    agent.set_approval_handler(think if waits else say)
    assert (await result_of(agent, model)).endswith("[TOOL_DENIED]")
    assert ran == []


async def test_a_handler_with_a_context_is_held_to_true_as_well() -> None:
    look, ran = counted(permission="require_approval")

    def say(_context: ToolContext, _name: str, _arguments: Mapping[str, Any]) -> Any:
        return "sure"

    registry = Toolset([look], approver=say)
    assert (await registry.execute("look", {"text": "a"})).code == "TOOL_DENIED"
    assert ran == []


# --- the send hook --------------------------------------------------------------------------------


@each_case("session", ["", "1:private:42", "1:group:7"])
async def test_the_session_a_model_names_reaches_the_hook(session: str) -> None:
    said: list[Mapping[str, Any]] = []
    messages = [{"type": "plain", "text": "hello"}]
    arguments: dict[str, Any] = {"messages": messages, **({"session": session} if session else {})}
    with ScriptedModel(call("send_message", **arguments), "done") as model:
        await Agent(model=model, tools=[BUILT_IN["send_message"]], send_hook=said.append).run("go")
    assert said == [arguments]
