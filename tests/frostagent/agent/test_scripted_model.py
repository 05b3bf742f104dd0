from __future__ import annotations

from typing import Any

import pytest

from frostagent.testing.scripted_model import ScriptedModel, call
from frostagent.types.errors import ModelAuth
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    ToolCall,
    Usage,
    UserMessage,
)

ASKED = ModelRequest((UserMessage("hi"),))


async def test_words_are_an_answer_and_requests_are_kept() -> None:
    with ScriptedModel("hello") as model:
        assert await model.complete(ASKED) == Completion(AssistantMessage("hello"), FinishReason.STOP)
    assert model.requests == [ASKED]


async def test_one_call_and_several_get_ids_of_their_own() -> None:
    with ScriptedModel(call("look", city="北京"), [call("look"), ToolCall("mine", "look", "{}")]) as model:
        first, second = await model.complete(ASKED), await model.complete(ASKED)
    assert first.finish is FinishReason.TOOL_CALLS
    assert first.message.tool_calls == (ToolCall("call_1", "look", '{"city": "北京"}'),)
    assert [each.id for each in second.message.tool_calls] == ["call_2", "mine"]


def test_a_call_may_have_raw_arguments() -> None:
    assert call("look", "not json").arguments == "not json"
    assert call("look", "").arguments == ""
    assert call("look", name="a field called name").arguments == '{"name": "a field called name"}'


async def test_a_whole_answer_is_given_as_it_is() -> None:
    whole = Completion(AssistantMessage("hi"), FinishReason.LENGTH, Usage(1, 2))
    with ScriptedModel(whole) as model:
        assert await model.complete(ASKED) is whole


async def test_an_error_is_raised() -> None:
    with ScriptedModel(ModelAuth("bad key")) as model, pytest.raises(ModelAuth, match="bad key"):
        await model.complete(ASKED)


async def test_any_error_is_raised_and_what_is_no_step_is_refused() -> None:
    with ScriptedModel(OSError("away")) as model, pytest.raises(OSError, match="away"):
        await model.complete(ASKED)
    wrong: list[Any] = [3, None, ValueError]
    for step in wrong:
        with pytest.raises(TypeError, match="a step is words, calls, an answer or an error"):
            ScriptedModel("hi", step)


async def test_a_function_answers_the_request() -> None:
    async def echo(request: ModelRequest) -> Completion:
        return Completion(AssistantMessage(f"{len(request.messages)} messages"), FinishReason.STOP)

    with ScriptedModel(echo) as model:
        assert (await model.complete(ASKED)).message.text == "1 messages"


async def test_more_requests_than_steps_fail_loudly() -> None:
    model = ScriptedModel()
    with pytest.raises(AssertionError, match=r"an unexpected model request, number 1: .*hi"):
        await model.complete(ASKED)


def test_steps_left_over_fail_loudly_unless_the_test_has_failed_already() -> None:
    with pytest.raises(AssertionError, match="1 scripted model steps were never asked for"), ScriptedModel("left"):
        pass
    with pytest.raises(LookupError), ScriptedModel("left"):
        raise LookupError
