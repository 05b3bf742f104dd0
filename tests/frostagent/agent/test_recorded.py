"""Exchanges with a real model, recorded over HTTP and played back without it."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from frostagent import Agent, ModelAuth, ModelOverloaded, RunFailed, ScriptedModel, TextDelta, call, connect, tool
from frostagent.testing import RecordingModel, ReplayModel
from tests.conformance.vendor import Body, serving

KEY = "sk-test-0123456789abcdef"


class Order(BaseModel):
    dish: str
    count: int


@tool(side_effects="read")
async def look(city: str) -> str:
    """The weather.

    Args:
        city: Where.
    """
    return f"{city}: sunny, token=abc123"


def answer(body: Body) -> Body:
    if "tools" not in body:
        return {"content": '{"dish": "tea", "count": 2}'}
    if body["messages"][-1]["role"] == "tool":
        return {"content": f"Sunny. Your key is {KEY}."}
    called = {"name": "look", "arguments": '{"city": "北京"}'}
    return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": called}]}


async def record(path: Path) -> str:
    """A recording of a run; the answer."""
    async with serving(answer) as vendor, connect(vendor.url, "m", KEY) as real:
        with RecordingModel(real, path, secrets=["my-pass-word"]) as model:
            assert model.name == real.name
            agent = Agent(model=model, instructions="The password is my-pass-word.", tools=[look])
            result = await agent.run("How is the weather?")
            await Agent(model=model).run("Two teas.", output=Order)
    assert vendor.keys == [f"Bearer {KEY}"] * 3
    return result.output


def weather(model: ReplayModel, **changed: Any) -> Agent:
    options: dict[str, Any] = {"instructions": "The password is my-pass-word.", "tools": [look]}
    return Agent(model=model, **options | changed)


async def test_a_recorded_run_is_played_back_without_a_network(tmp_path: Path) -> None:
    path = tmp_path / "new" / "weather.jsonl"
    said = await record(path)
    with ReplayModel(path, secrets=["my-pass-word"]) as model:
        agent = weather(model)
        async with agent.stream("How is the weather?") as stream:
            text = "".join([event.text async for event in stream if isinstance(event, TextDelta)])
        assert text == (await stream.result()).output == said.replace(KEY, "***")
        ordered = await Agent(model=model).run("Two teas.", output=Order)
    assert ordered.output == Order(dish="tea", count=2)
    assert len(model.requests) == 3


async def test_no_secret_is_recorded(tmp_path: Path) -> None:
    await record(tmp_path / "a.jsonl")
    text = (tmp_path / "a.jsonl").read_text("utf-8")
    assert len(text.splitlines()) == 3
    assert all(json.loads(line)["request"] for line in text.splitlines())
    assert "北京" in text
    for secret in (KEY, "my-pass-word", "abc123", "Bearer", "127.0.0.1"):
        assert secret not in text, secret


@pytest.mark.parametrize(
    ("changed", "prompt", "difference"),
    [
        ({}, "Why?", r"request.messages\[1\].text: recorded 'How is the weather\?', now 'Why\?'"),
        ({"instructions": "Be brief."}, "How is the weather?", r"messages\[0\].text: recorded 'The password is \*"),
        ({"instructions": ""}, "How is the weather?", "request.messages: 2 recorded, now 1"),
        ({"tools": []}, "How is the weather?", "request.tools: recorded .*look.*, now missing"),
        ({"tools": [look.replace(description="Looks.")]}, "How is the weather?",
         "request.tools.look.description: recorded 'The weather.', now 'Looks.'"),
    ],
)  # fmt: skip
async def test_a_request_that_differs_says_in_what(
    tmp_path: Path, changed: dict[str, Any], prompt: str, difference: str
) -> None:
    await record(tmp_path / "a.jsonl")
    model = ReplayModel(tmp_path / "a.jsonl", secrets=["my-pass-word"])
    with pytest.raises(AssertionError, match=r"request 1 is not in .*a.jsonl; the next one there differs in") as caught:
        await weather(model, **changed).run(prompt)
    assert re.search(difference, str(caught.value)), caught.value


async def test_a_difference_far_within_a_long_text_is_shown(tmp_path: Path) -> None:
    with RecordingModel(ScriptedModel("yes"), tmp_path / "a.jsonl") as recording:
        await Agent(model=recording).run("x" * 5000 + " one " + "y" * 5000)
    with pytest.raises(AssertionError) as caught:
        await Agent(model=ReplayModel(tmp_path / "a.jsonl")).run("x" * 5000 + " two " + "y" * 5000)
    assert re.search(r"recorded '…x+ one y+…', now '…x+ two y+…'", str(caught.value))
    assert len(str(caught.value)) < 500


async def test_errors_are_recorded_with_what_they_say(tmp_path: Path) -> None:
    busy, refused = ModelOverloaded("busy", status=503, retry_after=2.0), ModelAuth(f"bad key {KEY}", status=401)
    with RecordingModel(ScriptedModel(busy, refused), tmp_path / "a.jsonl") as recording:
        for _ in range(2):
            with pytest.raises(RunFailed):
                await Agent(model=recording).run("Hi.")
    with ReplayModel(tmp_path / "a.jsonl") as model:
        with pytest.raises(RunFailed) as caught:
            await Agent(model=model).run("Hi.")
        assert isinstance(cause := caught.value.__cause__, ModelOverloaded)
        assert (cause.status, cause.retry_after) == (503, 2.0)
        with pytest.raises(RunFailed, match=r"auth: bad key \*\*\*"):
            await Agent(model=model).run("Hi.")


async def test_runs_side_by_side_get_their_own_answers(tmp_path: Path) -> None:
    with RecordingModel(ScriptedModel("one", "two", "three"), tmp_path / "a.jsonl") as recording:
        for prompt in "aba":
            await Agent(model=recording).run(prompt)
    with ReplayModel(tmp_path / "a.jsonl") as model:
        answers = [(await Agent(model=model).run(prompt)).output for prompt in "baa"]
    assert answers == ["two", "one", "three"]
    with pytest.raises(AssertionError, match=r"all that was recorded is answered. Record it again."):
        await Agent(model=model).run("a")


async def test_what_was_never_asked_for_fails_the_test(tmp_path: Path) -> None:
    await record(tmp_path / "a.jsonl")
    with (
        pytest.raises(AssertionError, match=r"1 exchanges of .*a.jsonl were never asked for"),
        ReplayModel(tmp_path / "a.jsonl", secrets=["my-pass-word"]) as model,
    ):
        await weather(model).run("How is the weather?")


async def fail_after(run: Awaitable[Any]) -> None:
    await run
    raise RuntimeError("the test failed")


async def test_a_block_that_fails_leaves_the_older_recording(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("older\n", "utf-8")
    with pytest.raises(RuntimeError), RecordingModel(ScriptedModel("one"), path) as recording:
        await fail_after(Agent(model=recording).run("Hi."))
    assert path.read_text("utf-8") == "older\n"
    with pytest.raises(ValueError, match=r"a.jsonl, line 1: no recorded exchange"):
        ReplayModel(path)
    path.write_text('{"request": {}, "error": {"type": "Problem", "message": ""}}\n', "utf-8")
    with pytest.raises(ValueError, match="Problem is no error of a model"):
        ReplayModel(path)


async def test_a_call_is_played_back_as_it_was_made(tmp_path: Path) -> None:
    with RecordingModel(ScriptedModel(call("look", city="Rome"), "ok"), tmp_path / "a.jsonl") as recording:
        made = await Agent(model=recording, tools=[look]).run("Look.")
    with ReplayModel(tmp_path / "a.jsonl") as model:
        assert (await Agent(model=model, tools=[look]).run("Look.")).messages == made.messages
