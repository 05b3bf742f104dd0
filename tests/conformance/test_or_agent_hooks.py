"""Document 003, or/agent, II: lifecycle hooks, steering, follow-up, subscribers."""

from __future__ import annotations

from typing import Any

from frostagent import (
    AfterCall,
    Agent,
    BeforeCall,
    Change,
    ChatModel,
    Hook,
    RequestEvent,
    Reshape,
    Rewrite,
    ScriptedModel,
    StepEvent,
    Stop,
    StopRun,
    ToolResult,
    call,
    tool,
)
from frostagent.types.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from tests.conformance.weather import counted, echo, result_of, results


def one(*calls: Any, tools: list[Any], **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(list(calls), "done")
    return Agent(model=model, tools=tools, **options), model


# --- lifecycle hooks ----------------------------------------------------------------------------------


async def test_a_before_hook_can_change_the_arguments_which_are_validated_again() -> None:
    def change(event: BeforeCall) -> Change:
        return Change({"text": "changed"} if event.input["text"] == "a" else {"wrong": 1})

    agent, model = one(call("echo", text="a"), call("echo", text="b"), tools=[echo], hooks=[Hook(before_call=change)])
    with model:
        reply = await agent.chat("go")
    first, second = results(reply)
    assert first.content == "changed"
    assert second.content.endswith("[TOOL_INVALID_ARGUMENTS]")


async def test_an_after_hook_can_rewrite_the_result() -> None:
    hooks = Hook(after_call=lambda event: Rewrite(ToolResult(event.output.content.upper())))
    agent, model = one(call("echo", text="quiet"), tools=[echo], hooks=[hooks])
    assert await result_of(agent, model) == "QUIET"


async def test_a_hook_can_stop_the_run_after_a_step() -> None:
    seen: list[StepEvent] = []

    def stop(event: StepEvent) -> StopRun:
        seen.append(event)
        return StopRun("enough")

    model = ScriptedModel(call("echo", text="a"))
    with model:
        reply = await Agent(model=model, tools=[echo], hooks=[Hook(after_step=stop)]).chat("go")
    assert (reply.stop, reply.error) == (Stop.STOPPED, "hook: enough")
    assert [message.content for message in seen[0].results] == ["a"]


async def test_a_hook_can_stop_the_run_before_a_call_and_none_of_the_step_is_run() -> None:
    look, ran = counted()
    asked: list[str] = []

    def stop(event: BeforeCall) -> StopRun | None:
        asked.append(f"before {event.input['text']}")
        return StopRun("enough") if event.input["text"] == "b" else None

    def after(event: AfterCall) -> None:
        asked.append(f"after {event.input['text']}")

    model = ScriptedModel([call("look", text=text) for text in "abc"])
    with model:
        reply = await Agent(model=model, tools=[look], hooks=[Hook(before_call=stop, after_call=after)]).chat("go")
    assert (reply.stop, reply.error, ran) == (Stop.STOPPED, "hook: enough", [])
    assert [result.code for result in results(reply)] == ["TOOL_CANCELLED"] * 3
    assert asked == ["before a", "before b", "after a", "after b"]


async def test_a_hook_can_stop_the_run_after_a_call_and_the_results_stay() -> None:
    look, ran = counted()
    asked: list[str] = []

    def stop(event: AfterCall) -> StopRun | None:
        asked.append(event.input["text"])
        return StopRun("enough") if event.input["text"] == "a" else None

    model = ScriptedModel([call("look", text="a"), call("look", text="b")])
    with model:
        reply = await Agent(model=model, tools=[look], hooks=[Hook(after_call=stop)]).chat("go")
    assert (reply.stop, reply.error) == (Stop.STOPPED, "hook: enough")
    assert [result.content for result in results(reply)] == ["look 1", "look 2"]
    assert ran == asked == ["a", "b"]


async def test_a_hook_can_switch_the_model_between_steps() -> None:
    cheap = ScriptedModel(call("echo", text="a"))
    strong: ChatModel = ScriptedModel("from the strong one")

    def switch(event: RequestEvent) -> Reshape | None:
        return Reshape(model=strong) if event.metadata["step"] == 2 else None

    agent = Agent(model=cheap, tools=[echo], hooks=[Hook(before_request=switch)])
    with cheap:
        assert (await agent.chat("go")).text == "from the strong one"


async def test_a_hook_can_reshape_the_context_of_each_request_and_the_transcript_stays() -> None:
    def reshape(event: RequestEvent) -> Reshape:
        return Reshape(messages=(SystemMessage("short"), *event.messages[-1:]))

    model = ScriptedModel("one", "two")
    agent = Agent(model=model, system="long", hooks=[Hook(before_request=reshape)])
    with model:
        await agent.chat_with_session("s", "first")
        await agent.chat_with_session("s", "second")
    assert model.requests[1].messages == (SystemMessage("short"), UserMessage("second"))


# --- steering and follow-up ---------------------------------------------------------------------------


async def test_a_steering_message_comes_after_the_batch_never_between_call_and_result() -> None:
    model = ScriptedModel([call("nudge"), call("echo", text="a")], "done")

    @tool
    async def nudge() -> str:
        """Lets somebody interrupt."""
        assert agent.steer("Be brief.")
        return "nudged"

    agent = Agent(model=model, tools=[nudge, echo])
    with model:
        await agent.chat("go")
    kinds = [type(message) for message in model.requests[1].messages]
    assert kinds == [UserMessage, AssistantMessage, ToolMessage, ToolMessage, UserMessage]
    assert model.requests[1].messages[-1] == UserMessage("Be brief.")


async def test_a_follow_up_message_comes_at_the_end() -> None:
    model = ScriptedModel(call("ask_more"), "first answer", "second answer")

    @tool
    async def ask_more() -> str:
        """Lets somebody ask more."""
        assert agent.follow_up("And Osaka?", session="s")
        return "asked"

    agent = Agent(model=model, tools=[ask_more])
    with model:
        reply = await agent.chat_with_session("s", "Tokyo?")
    assert reply.text == "second answer"
    assert model.requests[2].messages[-2:] == (AssistantMessage("first answer"), UserMessage("And Osaka?"))
    assert not agent.steer("too late", session="s")


async def test_a_subscriber_is_told_everything_until_it_leaves() -> None:
    model = ScriptedModel(call("echo", text="a"), "done", "again")
    agent = Agent(model=model, tools=[echo])
    types: list[str] = []
    leave = agent.subscribe(lambda event: types.append(event.type))
    with model:
        await agent.chat("go")
        leave()
        await agent.chat("go")
    assert types == ["run_started", "step_finished", "tool_started", "tool_finished", "step_finished", "run_finished"]
