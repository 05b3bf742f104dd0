"""What was raised reaches those who look on, and whoever asked; `on_tool_error` words it for the model."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import frostagent
from frostagent import (
    AfterCall,
    Agent,
    Hook,
    InvalidArguments,
    ModelAuth,
    ModelError,
    RunFailed,
    ScriptedModel,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolNotFound,
    ToolTimeout,
    ToolUnavailable,
    call,
    tool,
)
from tests.cases import each_case
from tests.conformance.weather import Told, results
from tests.frostagent.toolbox import dawdle


@tool(side_effects="none")
async def find(word: str) -> str:
    """Finds."""
    known: dict[str, str] = {}
    return known[word]


@tool
async def say(word: str) -> str:
    """Says it."""
    return word


@tool(permission="deny")
async def forbidden() -> str:
    """Is forbidden."""
    return "never"


@each_case(
    ("made", "raised"),
    [
        (call("find", word="a"), KeyError),
        (call("find"), InvalidArguments),
        (call("fnid", word="a"), ToolNotFound),
        (call("forbidden"), ToolDenied),
        (call("dawdle"), ToolTimeout),
    ],
)
async def test_what_was_raised_is_told_to_hooks_and_observers(made: Any, raised: type[BaseException]) -> None:
    after: list[AfterCall] = []
    with ScriptedModel(made, "sorry") as model:
        agent = Agent(model=model, tools=[find, forbidden, dawdle], hooks=[Hook(after_call=after.append)])
        told = Told(agent)
        await agent.run("go")
    (finished,) = told.finished
    assert type(finished.exception) is raised
    for event in after:
        assert event.exception is finished.exception
    assert (len(after) == 1) == (raised in {KeyError, ToolDenied, ToolTimeout})


async def test_a_call_that_worked_raised_nothing() -> None:
    with ScriptedModel(call("say", word="a"), call("say", word="b"), "done") as model:
        agent = Agent(model=model, tools=[say])
        told = Told(agent)
        await agent.run("go")
    assert [event.exception for event in told.finished] == [None, None]


async def test_a_time_limit_is_chained_to_what_it_was() -> None:
    with ScriptedModel(call("dawdle"), "sorry") as model:
        agent = Agent(model=model, tools=[dawdle])
        told = Told(agent)
        await agent.run("go")
    assert told.finished[0].exception is not None
    assert isinstance(told.finished[0].exception.__cause__, TimeoutError)


async def test_an_exception_is_never_written_down() -> None:
    with ScriptedModel(call("find", word="a"), "sorry") as model:
        agent = Agent(model=model, tools=[find])
        told = Told(agent)
        await agent.run("go")
    with pytest.raises(TypeError, match="KeyError"):
        msgspec.json.encode(told.finished[0])


# --- what the model is told -----------------------------------------------------------------------


@each_case(
    ("words", "told"),
    [
        ("Ask for another word.", "error: Ask for another word. [TOOL_EXECUTION_FAILED]"),
        (None, "error: the tool broke (KeyError). Do not repeat the call; say that it did not work."),
    ],
)
async def test_an_agent_words_what_its_tools_raise(words: str | None, told: str) -> None:
    asked: list[Exception] = []
    heard: list[str] = []

    def word(error: Exception) -> str | None:
        asked.append(error)
        return words

    with ScriptedModel(call("find", word="a"), "sorry") as model:
        agent = Agent(
            model=model, tools=[find], on_tool_error=word, on_tool_result=lambda _name, output: heard.append(output)
        )
        reply = await agent.run("go")
    (result,) = results(reply)
    assert result.content.startswith(told)
    assert heard == [result.content]
    assert (result.is_error, result.code) == (True, "TOOL_EXECUTION_FAILED")
    assert [type(each) for each in asked] == [KeyError]


async def test_a_refusal_may_be_worded_too_and_keeps_its_code() -> None:
    with ScriptedModel([call("forbidden"), call("nothing")], "sorry") as model:
        agent = Agent(model=model, tools=[forbidden], on_tool_error=lambda error: type(error).__name__)
        reply = await agent.run("go")
    assert [each.content for each in results(reply)] == [
        "error: ToolDenied [TOOL_DENIED]",
        "error: ToolNotFound [TOOL_NOT_FOUND]",
    ]


async def test_words_that_break_leave_the_failure_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    def word(_: Exception) -> str:
        raise LookupError

    with ScriptedModel(call("find", word="a"), "sorry") as model:
        reply = await Agent(model=model, tools=[find], on_tool_error=word).run("go")
    assert results(reply)[0].content.startswith("error: the tool broke (KeyError)")
    assert "on_tool_error broke on KeyError" in caplog.text


async def test_words_that_must_be_awaited_are_refused() -> None:
    async def word(_: Exception) -> str:
        return ""

    wrong: Any = word
    with pytest.raises(TypeError, match="make it a plain def"):
        Agent(model=ScriptedModel(), on_tool_error=wrong)


async def test_an_agent_as_a_tool_words_its_own_failures() -> None:
    with ScriptedModel(call("find", word="a"), "It is not there.") as inner:
        helper = Agent(model=inner, name="Finder", tools=[find], on_tool_error=lambda _error: "not there")
        with ScriptedModel(call("ask", task="find a"), "done") as model:
            await Agent(model=model, tools=[helper.as_tool("ask", "Finds.")]).run("go")
    assert inner.requests[1].messages[-1].type == "tool"
    assert inner.requests[1].messages[-1].content == "error: not there [TOOL_EXECUTION_FAILED]"


# --- what ended the run ---------------------------------------------------------------------------


async def test_a_run_that_failed_says_which_model_error_it_was() -> None:
    error = ModelAuth("the key is wrong", status=401)
    with ScriptedModel(error) as model, pytest.raises(RunFailed) as caught:
        await Agent(model=model).run("go")
    assert caught.value.__cause__ is error
    assert caught.value.kind == "auth"


async def test_a_run_that_took_too_long_is_chained_to_its_time_limit() -> None:
    with ScriptedModel(call("dawdle")) as model, pytest.raises(RunFailed) as caught:
        await Agent(model=model, tools=[dawdle.replace(timeout=30)], deadline=0.01).run("go")
    assert caught.value.kind == "deadline"
    assert isinstance(caught.value.__cause__, TimeoutError)


async def test_a_critical_tool_that_breaks_ends_the_run_with_its_exception() -> None:
    up = [""]

    @tool(critical=True, available=lambda: up[0])
    async def connect() -> str:
        """Connects."""
        up[0] = "is down"
        raise ConnectionError("no route")

    with ScriptedModel(call("connect")) as model, pytest.raises(RunFailed) as caught:
        await Agent(model=model, tools=[connect]).run("go")
    assert isinstance(caught.value.__cause__, ConnectionError)
    with ScriptedModel() as model, pytest.raises(RunFailed) as caught:
        await Agent(model=model, tools=[connect]).run("go")
    assert isinstance(caught.value.__cause__, ToolUnavailable)


async def test_a_helper_that_fails_is_chained_to_why() -> None:
    error = ModelAuth("the key is wrong")
    with ScriptedModel(error) as inner, ScriptedModel(call("ask", task="find a"), "sorry") as model:
        agent = Agent(model=model, tools=[Agent(model=inner, name="Finder").as_tool("ask", "Finds.")])
        told = Told(agent)
        await agent.run("go")
    (finished,) = told.finished
    assert isinstance(finished.exception, ToolFailed)
    assert finished.exception.__cause__ is error


def test_every_error_of_models_and_tools_can_be_imported() -> None:
    def below(kind: type[Exception]) -> set[str]:
        kinds = [each for each in kind.__subclasses__() if each.__module__.startswith("frostagent.")]
        return {name for each in kinds for name in (each.__name__, *below(each))}

    ours = {name for name in below(ModelError) | below(ToolError) if not name.startswith("_")}
    assert len(ours) > 20
    assert ours <= set(frostagent.__all__)
