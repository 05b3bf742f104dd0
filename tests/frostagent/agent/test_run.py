"""`Agent.run`: history, dependencies, limits, values, agents as tools, models given by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from pydantic import BaseModel

from frostagent import (
    Agent,
    Allow,
    ApprovalRequest,
    Asker,
    AssistantMessage,
    ConfigError,
    Limits,
    MustWait,
    Pending,
    RunFailed,
    ScriptedModel,
    Stop,
    SystemMessage,
    ToolContext,
    ToolMessage,
    Usage,
    UserMessage,
    call,
    tool,
)
from frostagent.agent import OLD_NAMES_USED
from frostagent.types.messages import Completion, FinishReason
from tests.cases import each_case
from tests.conformance.vendor import serving


class Order(BaseModel):
    dish: str
    count: int = 1


@tool(side_effects="none")
def double(number: int) -> int:
    """Doubles."""
    return 2 * number


class Kitchen(Protocol):
    """Where dishes are cooked."""

    def cook(self, dish: str) -> str: ...


class Paris:
    def cook(self, dish: str) -> str:
        return f"{dish} from Paris"


@tool(needs=(Kitchen,), side_effects="write")
async def cook(context: ToolContext, dish: str) -> str:
    """Cooks."""
    return f"{context.port(Kitchen).cook(dish)} for {context.asker.user_id}"


@tool(permission="approve")
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def contents(messages: tuple[Any, ...]) -> list[str]:
    return [each.content if isinstance(each, ToolMessage) else each.text for each in messages]


async def test_the_messages_of_a_result_go_on_as_history() -> None:
    with ScriptedModel("one", "two", "three") as model:
        agent = Agent(model=model, instructions="Be brief.")
        first = await agent.run("first")
        second = await agent.run("second", history=first.messages)
        third = await agent.run("third", history=second.messages)
    assert (first.output, third.output) == ("one", "three")
    assert contents(third.messages) == ["first", "one", "second", "two", "third", "three"]
    assert contents(third.new_messages) == ["three"]
    assert model.requests[1].messages == (
        SystemMessage("Be brief."),
        UserMessage("first"),
        AssistantMessage("one"),
        UserMessage("second"),
    )


async def test_dependencies_and_the_asker_are_those_of_the_run() -> None:
    with ScriptedModel(call("cook", dish="soup"), "done", "no kitchen") as model:
        agent = Agent(model=model, tools=[cook])
        result = await agent.run("go", deps={Kitchen: Paris()}, context=Asker("7"))
        await agent.run("again")
    assert contents(result.new_messages)[1] == "soup from Paris for 7"
    assert [bool(request.tools) for request in model.requests] == [True, True, False]


async def test_a_run_stays_within_its_limits() -> None:
    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    with ScriptedModel(call("look"), "that is all", "at once") as model:
        agent = Agent(model=model, tools=[look], usage_limits=Limits(requests=2))
        result = await agent.run("go")
        assert (await agent.run("go", usage_limits=Limits(requests=1))).output == "at once"
    assert (result.output, result.steps) == ("that is all", 2)
    assert [bool(request.tools) for request in model.requests] == [True, False, False]


async def test_who_asked_hears_that_the_budget_was_short() -> None:
    steps = call("double", number=1), call("double", number=2), "8"
    short = await Agent(model=ScriptedModel(*steps), tools=[double], usage_limits=Limits(requests=2)).run("go")
    enough = await Agent(model=ScriptedModel(*steps), tools=[double], usage_limits=Limits(requests=4)).run("go")
    alone = await Agent(model=ScriptedModel("8"), usage_limits=Limits(requests=1)).run("go")
    assert [(reply.text == "8", reply.limit) for reply in (short, enough, alone)] == [
        (False, True),
        (True, False),
        (True, False),
    ]


def test_an_option_that_no_run_has_is_refused() -> None:
    agent = Agent(model=ScriptedModel("hi"))
    options: dict[str, Any] = {"histroy": ()}
    for ask in (agent.run_sync, agent.stream):
        with pytest.raises(TypeError, match="no option histroy: it takes output, context, deps, history"):
            ask("hi", **options)


def test_a_limit_is_met_in_one_of_two_ways() -> None:
    wrong: Any = "raise"
    with pytest.raises(TypeError, match="'answer', 'error'"):
        Agent(model=ScriptedModel(), on_limit=wrong)


async def test_a_text_is_no_json() -> None:
    agent = Agent(model=ScriptedModel("17", "it is 17"))
    assert (await agent.run("how many?", output=str)).output == "17"
    async with agent.stream("how many?", output=str) as stream:
        assert "".join([piece async for piece in stream.text()]) == "it is 17"


async def test_an_output_is_a_value_of_its_type() -> None:
    with ScriptedModel('{"dish": "soup"}', "one soup", '{"dish": "soup", "count": 2}') as model:
        agent = Agent(model=model)
        first = await agent.run("soup, please", output=Order)
        talk = await agent.run("another one", history=first.messages)
        second = await agent.run("two", output=Order, history=talk.messages)
    order: Order = second.output
    assert (first.output, order) == (Order(dish="soup"), Order(dish="soup", count=2))
    assert contents(second.messages)[:2] == ["soup, please", '{"dish": "soup"}']


async def test_a_waiting_run_goes_on_with_its_history() -> None:
    async def later(_request: ApprovalRequest) -> Pending:
        return Pending(1e12)

    class Later:
        approve = staticmethod(later)

    with ScriptedModel(call("pay", amount=3), "paid") as model:
        agent = Agent(model=model, tools=[pay], approver=Later())
        result = await agent.run("pay", history=[UserMessage("hi"), AssistantMessage("hello")])
        assert result.waiting is not None
        assert (result.stop, result.output) == (None, "")
        (pending,) = result.waiting.suspended.pending
        ended = await agent.resume(result.waiting, {pending.call.id: Allow()})
    assert contents(ended.messages) == ["hi", "hello", "pay", "", "paid 3", "paid"]
    assert contents(model.requests[1].messages) == ["hi", "hello", "pay", "", "paid 3"]


async def test_a_value_cannot_wait_for_an_approval() -> None:
    class Later:
        async def approve(self, _request: ApprovalRequest) -> Pending:
            return Pending(1e12)

    with ScriptedModel(call("pay", amount=3)) as model, pytest.raises(MustWait):
        await Agent(model=model, tools=[pay], approver=Later()).run("pay", output=Order)


async def test_an_agent_is_a_tool_of_another() -> None:
    def usage(text: str) -> Completion:
        return Completion(AssistantMessage(text), FinishReason.STOP, Usage(100, 10))

    with (
        ScriptedModel(call("cook", dish="soup"), usage("soup is ready")) as cooks,
        ScriptedModel(call("ask_cook", task="soup"), "here you are") as waits,
    ):
        chef = Agent(model=cooks, name="chef", instructions="You cook.", tools=[cook], deps={Kitchen: Paris()})
        asked = chef.as_tool("ask_cook", "Cooks dishes.")
        result = await Agent(model=waits, tools=[asked]).run("soup", context=Asker("7"))
    assert contents(result.new_messages) == ["", "soup is ready", "here you are"]
    assert contents(cooks.requests[1].messages)[-1] == "soup from Paris for 7"
    assert contents(cooks.requests[0].messages)[0].startswith("You cook.")
    assert (asked.side_effects, asked.parameters["required"]) == ("write", ["task"])


async def test_an_inner_agent_takes_from_the_budget_of_the_outer_one() -> None:
    inner = ScriptedModel()
    with ScriptedModel(call("helper", task="go"), "alone then") as model:
        agent = Agent(
            model=model, tools=[Agent(model=inner).as_tool("helper", "Helps.")], usage_limits=Limits(requests=2)
        )
        result = await agent.run("go")
    assert result.output == "alone then"
    assert inner.requests == []


# --- a model given by its name ------------------------------------------------------------------------


async def test_a_name_a_url_and_a_key_are_enough() -> None:
    async with serving() as vendor:
        agent = Agent(model="some-model", base_url=vendor.url, api_key="sk-test")
        assert (await agent.run("hi")).output == "hello"
        assert (await agent.chat("hi")).text == "hello"
        async with agent:
            await agent.run("hi")
            with pytest.raises(RuntimeError, match="entered twice"):
                await agent.__aenter__()
        await agent.run("hi")
    assert [body["model"] for body in vendor.bodies] == ["some-model"] * 4
    assert set(vendor.keys) == {"Bearer sk-test"}


def test_a_script_needs_no_event_loop() -> None:
    with ScriptedModel("one", '{"dish": "soup"}') as model:
        agent = Agent(model=model)
        assert agent.run_sync("first").output == "one"
        assert agent.run_sync("second", output=Order).output.dish == "soup"


async def test_in_an_event_loop_a_run_is_awaited() -> None:
    with pytest.raises(RuntimeError, match=r"await agent\.run"):
        Agent(model=ScriptedModel()).run_sync("hi")


def test_a_name_without_a_url_and_a_url_without_a_name_are_refused() -> None:
    wrong: list[tuple[Callable[[], Agent], str]] = [
        (lambda: Agent(model="some-model"), "has no base_url"),
        (lambda: Agent(model=ScriptedModel(), api_key="sk"), "belong to a model that is given by its name"),
    ]
    for make, told in wrong:
        with pytest.raises(ConfigError, match=told):
            make()


async def test_a_run_that_fails_says_why_and_what_was_said() -> None:
    async with serving(lambda _body: 401) as vendor:
        with pytest.raises(RunFailed) as caught:
            await Agent(model="m", base_url=vendor.url).run("hi")
    assert (caught.value.kind, caught.value.reply.stop) == ("auth", Stop.FAILED)
    assert contents(caught.value.reply.messages) == ["hi"]


async def test_runs_go_on_side_by_side() -> None:
    with ScriptedModel("one", "two") as model:
        agent = Agent(model=model)
        results = await asyncio.gather(agent.run("a"), agent.run("b"))
    assert sorted(each.output for each in results) == ["one", "two"]


@each_case(
    ("old", "new", "value"),
    [("system", "instructions", "Be brief."), ("max_steps", "max_turns", 3), ("ports", "deps", {})],
)
async def test_an_old_name_is_warned_of_once_and_still_works(old: str, new: str, value: Any) -> None:
    OLD_NAMES_USED.discard(old)
    given: dict[str, Any] = {old: value}
    with pytest.warns(FutureWarning, match=rf"Agent\({old}=\) is deprecated: it is called {new} now") as told:
        _ = [Agent(model=ScriptedModel(), **given) for _ in range(2)]
    assert [warning.filename for warning in told] == [__file__]
    Agent(model=ScriptedModel(), **{new: value})


class Later:
    async def approve(self, request: ApprovalRequest) -> Pending:
        return Pending(3600)


@tool(permission="approve", needs=(Kitchen,), repeatable=True)
async def order(context: ToolContext, dish: str) -> str:
    """Orders."""
    return context.port(Kitchen).cook(dish)


async def test_what_a_run_took_before_it_waited_counts_when_it_goes_on() -> None:
    deps = {Kitchen: Paris()}
    with ScriptedModel(call("order", dish="soup"), "done") as model:
        agent = Agent(model=model, tools=[order], approver=Later(), usage_limits=Limits(requests=2))
        waiting = (await agent.run("Order.", deps=deps)).waiting
        assert waiting is not None
        (pending,) = waiting.suspended.pending
        reply = await agent.resume(waiting, {pending.call.id: Allow()}, deps=deps)
    assert (reply.output, contents(reply.new_messages)[1]) == ("done", "soup from Paris")
    assert [bool(request.tools) for request in model.requests] == [True, False]


async def test_a_chat_has_the_limits_of_the_agent_too() -> None:
    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    with ScriptedModel(call("look"), "done", call("look"), "done") as model:
        agent = Agent(model=model, tools=[look], usage_limits=Limits(requests=2))
        await agent.chat("go")
        await agent.chat_with_session("s", "go")
    assert [bool(request.tools) for request in model.requests] == [True, False, True, False]
