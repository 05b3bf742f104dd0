"""Document 003, or/agent: schemas from types, validation, results, failure, progress, order."""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated, Any, Literal

from pydantic import Field

from frostagent import (
    AfterCall,
    Agent,
    BeforeCall,
    Block,
    Hook,
    Image,
    RunEvent,
    ScriptedModel,
    Stop,
    SystemClock,
    Tool,
    ToolContext,
    ToolFailed,
    ToolResult,
    Toolset,
    call,
    foreign_tool,
    tool,
)
from frostagent.types.messages import ToolMessage
from frostagent.types.runs import ToolProgressed
from tests.cases import each_case
from tests.conformance.weather import Told, counted, crash, echo, result_of, results

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPgPAAEDAQF3uj6jAAAAAElFTkSuQmCC")


@tool(side_effects="read", idempotent=True)
async def search_docs(
    query: Annotated[str, Field(min_length=1)],
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    order: Literal["new", "old"] = "new",
    code: Annotated[str, Field(pattern="^[A-Z]*$", max_length=3)] = "",
) -> str:
    """Search the documentation.

    Args:
        query: Search query
        limit: Max results
    """
    return f"{query}:{limit}:{order}:{code}"


def one(*calls: Any, tools: list[Any], **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(list(calls), "done")
    return Agent(model=model, tools=tools, **options), model


# --- schema and arguments ---------------------------------------------------------------------------


def test_the_schema_is_derived_from_the_type_with_its_constraints() -> None:
    properties = search_docs.spec.parameters["properties"]
    assert properties["query"] == {"type": "string", "minLength": 1, "description": "Search query"}
    limit = properties["limit"]
    assert (limit["minimum"], limit["maximum"], limit["description"]) == (1, 50, "Max results")
    assert properties["order"]["enum"] == ["new", "old"]
    assert (properties["code"]["pattern"], properties["code"]["maxLength"]) == ("^[A-Z]*$", 3)
    assert search_docs.spec.parameters["required"] == ["query"]


@each_case(
    "arguments",
    [{"query": ""}, {"query": "x", "limit": 51}, {"query": "x", "order": "odd"}, {"query": "x", "code": "a"}],
)
async def test_the_same_constraints_are_validated(arguments: dict[str, Any]) -> None:
    result = await Toolset([search_docs], clock=SystemClock()).execute("search_docs", arguments)
    assert result.content.endswith("[TOOL_INVALID_ARGUMENTS]")


async def test_a_text_for_a_number_is_coerced_toward_the_schema() -> None:
    agent, model = one(call("search_docs", query="x", limit="3"), tools=[search_docs])
    told = Told(agent)
    assert await result_of(agent, model) == "x:3:new:"
    assert told.finished[0].coerced == ("limit: text -> integer",)


async def test_wrong_arguments_never_run_the_tool_and_the_result_says_which_fields() -> None:
    ran: list[str] = []

    @tool
    def note(text: str, times: int) -> None:
        """Notes."""
        ran.append(text)

    agent, model = one(call("note", times="many"), tools=[note])
    told = Told(agent)
    result = await result_of(agent, model)
    assert ran == []
    assert result.startswith("error: text: required; times: ")
    assert result.endswith("[TOOL_INVALID_ARGUMENTS]")
    assert len(told.finished[0].details["fields"]) == 2


async def test_arguments_are_prepared_before_they_are_validated() -> None:
    def fill(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"limit": 10, **arguments}

    @tool(prepare=fill)
    def search(limit: int) -> int:
        """Searches."""
        return limit

    agent, model = one(call("search"), tools=[search])
    assert await result_of(agent, model) == "10"


async def test_a_body_gets_the_call_id_and_its_validated_arguments() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    def execute(context: ToolContext, arguments: dict[str, Any]) -> None:
        seen.append((context.call_id, arguments))

    schema = {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": ["limit"]}
    agent, model = one(call("search", limit="3"), tools=[foreign_tool("search", "Searches.", schema, execute)])
    with model:
        reply = await agent.chat("go")
    assert seen == [(results(reply)[0].call_id, {"limit": 3})]


async def test_a_label_does_not_affect_execution() -> None:
    async def run(**declared: Any) -> tuple[object, ...]:
        look, ran = counted(**declared)
        agent, model = one(call("look", text="here"), tools=[look])
        told = Told(agent)
        result = await result_of(agent, model)
        return result, ran, model.requests[0].tools, told.types, told.finished[0].arguments

    labelled, plain = await run(label="搜索文档", summary="for operators"), await run()
    assert labelled == plain
    assert labelled[:2] == ("look 1", ["here"])


# --- results ------------------------------------------------------------------------------------------


async def test_a_result_has_content_for_the_model_and_details_it_never_sees() -> None:
    @tool
    def search() -> ToolResult:
        """Searches."""
        return ToolResult("2 hits", details={"took": 12, "secret": "internal"})

    agent, model = one(call("search"), tools=[search])
    told = Told(agent)
    assert await result_of(agent, model) == "2 hits"
    assert told.finished[0].details == {"took": 12, "secret": "internal"}
    assert "internal" not in repr(model.requests)


async def test_a_result_may_hold_images_for_models_that_see() -> None:
    @tool
    def draw() -> ToolResult:
        """Draws."""
        return ToolResult("a pixel", images=(Image.of(PIXEL),))

    agent, model = one(call("draw"), tools=[draw])
    with model:
        await agent.chat("go")
    message = model.requests[1].messages[-1]
    assert isinstance(message, ToolMessage)
    assert message.images == (Image.of(PIXEL).url,)
    assert message.content.startswith("a pixel")


@each_case(("wishes", "steps"), [((True, True), 1), ((True, False), 2)])
async def test_a_batch_ends_the_run_only_if_every_result_terminates(wishes: tuple[bool, ...], steps: int) -> None:
    @tool
    def finish(end: bool) -> ToolResult:
        """Ends, or not."""
        return ToolResult("over", terminate=end)

    model = ScriptedModel([call("finish", end=wish) for wish in wishes], "done")
    reply = await Agent(model=model, tools=[finish]).chat("go")
    assert reply.steps == len(model.requests) == steps
    assert reply.stop is Stop.ANSWERED


# --- failure ------------------------------------------------------------------------------------------


async def test_a_failing_tool_becomes_an_error_result_and_the_loop_goes_on() -> None:
    @tool
    def fail() -> str:
        """Fails."""
        raise ToolFailed("no paper")

    agent, model = one(call("fail"), tools=[fail])
    with model:
        reply = await agent.chat("go")
    assert results(reply)[0].is_error
    assert (reply.text, reply.stop) == ("done", Stop.ANSWERED)
    assert [(failure.name, failure.code) for failure in reply.tool_failures] == [("fail", "TOOL_EXECUTION_FAILED")]


async def test_a_panic_becomes_an_error_result_without_its_own_words() -> None:
    agent, model = one(call("crash"), tools=[crash])
    result = await result_of(agent, model)
    assert result.startswith("error: ")
    assert "secret detail" not in result


async def test_failure_holds_for_tools_that_run_concurrently() -> None:
    @tool
    def panic() -> str:
        """Breaks in a thread."""
        raise RuntimeError

    @tool
    async def leave() -> str:
        """Asks the interpreter to go."""
        raise SystemExit(1)

    agent, model = one(
        call("panic"), call("echo", text="a"), call("leave"), call("crash"), tools=[panic, echo, leave, crash]
    )
    with model:
        reply = await agent.chat("go")
    assert [(message.name, message.is_error) for message in results(reply)] == [
        ("panic", True),
        ("echo", False),
        ("leave", True),
        ("crash", True),
    ]


async def test_an_unknown_tool_one_without_a_body_and_a_blocked_call_are_error_results() -> None:
    empty = foreign_tool("plan_trip", "Has no body.", {}, None)
    look, ran = counted()
    hooks = Hook(before_call=lambda event: Block("not today") if event.name == "look" else None)
    agent, model = one(call("fly"), call("plan_trip"), call("look", text="a"), tools=[look, empty], hooks=[hooks])
    with model:
        reply = await agent.chat("go")
    assert ran == []
    codes = [message.content.rpartition(" ")[2] for message in results(reply)]
    assert codes == ["[TOOL_NOT_FOUND]", "[TOOL_UNAVAILABLE]", "[TOOL_DENIED]"]
    assert "not today" in results(reply)[2].content


# --- progress -----------------------------------------------------------------------------------------


async def test_progress_is_told_while_the_tool_runs_and_never_after() -> None:
    kept: list[ToolContext] = []

    @tool
    async def query(context: ToolContext) -> str:
        """Queries."""
        context.progress("connecting")
        kept.append(context)
        context.progress(ToolResult("half", details={"rows": 5}))
        return "10 rows"

    agent, model = one(call("query"), tools=[query])
    told = Told(agent)
    with model:
        await agent.chat("go")
    kept[0].progress("too late")
    partial = [event.partial for event in told.events if isinstance(event, ToolProgressed)]
    assert partial == [ToolResult("connecting"), ToolResult("half", details={"rows": 5})]
    assert told.types.index("tool_progressed") < told.types.index("tool_finished")


# --- order --------------------------------------------------------------------------------------------


class Meeting:
    """Tools that say how many of them run at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self.log: list[str] = []

    def tool(self, name: str, **declared: Any) -> Tool:
        @tool(name=name, **declared)
        async def meet() -> str:
            """Comes in and goes out."""
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.log.append(name)
            for _ in range(5):
                await asyncio.sleep(0)
            self.inside -= 1
            return name

        return meet


async def test_calls_of_a_step_run_concurrently_by_default() -> None:
    meeting = Meeting()
    agent, model = one(call("one"), call("two"), tools=[meeting.tool("one"), meeting.tool("two")])
    with model:
        await agent.chat("go")
    assert meeting.most == 2


async def test_the_whole_loop_can_run_its_tools_one_at_a_time() -> None:
    meeting = Meeting()
    tools = [meeting.tool("one"), meeting.tool("two")]
    agent, model = one(call("two"), call("one"), tools=tools, tool_execution="sequential")
    with model:
        await agent.chat("go")
    assert (meeting.most, meeting.log) == (1, ["two", "one"])


async def test_one_sequential_tool_makes_its_whole_batch_sequential() -> None:
    meeting = Meeting()
    tools = [meeting.tool("one"), meeting.tool("two"), meeting.tool("alone", execution="sequential")]
    agent, model = one(call("one"), call("two"), call("alone"), tools=tools)
    with model:
        await agent.chat("go")
    assert (meeting.most, meeting.log) == (1, ["one", "two", "alone"])


async def test_starts_and_before_hooks_come_first_and_after_hooks_and_results_last_in_source_order() -> None:
    log: list[str] = []
    gate = asyncio.Event()

    @tool
    async def slow() -> str:
        """Ends second."""
        await gate.wait()
        log.append("body slow")
        return "slow"

    @tool
    async def fast() -> str:
        """Ends first."""
        log.append("body fast")
        gate.set()
        return "fast"

    async def before(event: BeforeCall) -> None:
        log.append(f"before {event.name}")
        await asyncio.sleep(0)

    async def after(event: AfterCall) -> None:
        log.append(f"after {event.name}")
        await asyncio.sleep(0)

    agent, model = one(
        call("slow"), call("fast"), tools=[slow, fast], hooks=[Hook(before_call=before, after_call=after)]
    )

    def watch(event: RunEvent) -> None:
        if event.type in {"tool_started", "tool_finished"}:
            log.append(f"{event.type} {event.call.name}")

    agent.subscribe(watch)
    with model:
        reply = await agent.chat("go")
    assert log == [
        "tool_started slow", "tool_started fast", "before slow", "before fast",
        "body fast", "body slow",
        "after slow", "after fast", "tool_finished slow", "tool_finished fast",
    ]  # fmt: skip
    assert [message.name for message in results(reply)] == ["slow", "fast"]


async def test_hooks_are_never_called_concurrently() -> None:
    inside, most = 0, 0

    async def hook(_event: object) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    calls = [call("echo", text=str(number)) for number in range(5)]
    agent, model = one(*calls, tools=[echo], hooks=[Hook(before_call=hook, after_call=hook)])
    with model:
        await agent.chat("go")
    assert most == 1
