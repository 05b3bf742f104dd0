from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import pytest
from msgspec.structs import replace

from frostagent.engine.engine import ask_before_request, completion_words, request_tokens
from frostagent.engine.run_state import drain
from frostagent.engine.step_calls import ask_after_step
from frostagent.engine.tool_execution import consult
from frostagent.models.request_repairs import with_notice
from frostagent.models.tokens import estimate, estimate_message
from frostagent.types.hooks import Hook, RequestEvent, Reshape, StepEvent, StopRun
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    SystemMessage,
    Usage,
    UserMessage,
)
from tests.cases import each_case
from tests.fakes import ScriptedModel, words
from tests.frostagent.toolbox import Stubborn, cancelled

QUESTION = (SystemMessage("be nice"), UserMessage("hi", ("data:image/png;base64,x",)))


def test_a_notice_joins_the_user_message_that_stands_last_or_becomes_one() -> None:
    assert with_notice(QUESTION, "") == QUESTION
    assert with_notice(QUESTION, "Hurry.")[1] == UserMessage("hi\n\nHurry.", QUESTION[1].images)
    answered = (*QUESTION, AssistantMessage("well"))
    assert with_notice(answered, "Hurry.") == (*answered, UserMessage("Hurry."))


@each_case(
    ("completion", "text"),
    [
        (words(" hi "), "hi"),
        (words("", refusal="No."), "No."),
        (words("once", finish=FinishReason.LENGTH), "once…"),
        (words("", finish=FinishReason.LENGTH), ""),
    ],
)
def test_what_is_said_is_the_text_or_the_refusal_marked_where_it_was_cut(completion: Any, text: str) -> None:
    assert completion_words(completion) == text


def test_what_waits_is_taken_as_one_message() -> None:
    queue = deque([UserMessage("a", ("x",)), UserMessage("b", ("y",))])
    assert drain(queue) == UserMessage("a\nb", ("x", "y"))
    assert drain(queue) is None
    assert drain(deque([QUESTION[1]])) is QUESTION[1]


async def test_each_hook_sees_the_request_as_those_before_it_made_it() -> None:
    one, other = ScriptedModel(), ScriptedModel()
    seen: list[RequestEvent] = []

    async def switch(event: RequestEvent) -> Reshape:
        return Reshape(messages=event.messages[1:], model=other)

    def look(event: RequestEvent) -> None:
        seen.append(event)

    hooks = [Hook(before_request=switch), Hook(), Hook(before_request=look)]
    request, model = await ask_before_request(hooks, ModelRequest(QUESTION), one, {"run": "t1"})
    assert (request, model) == (ModelRequest(QUESTION[1:]), other)
    assert (seen[0].messages, seen[0].model, seen[0].metadata) == (QUESTION[1:], other, {"run": "t1"})


async def test_every_hook_hears_of_a_step_and_the_first_that_wants_the_end_is_heard() -> None:
    heard: list[str] = []

    def stop(reason: str | None) -> Hook:
        def hook(event: StepEvent) -> StopRun | None:
            heard.append(event.message.text)
            return StopRun(reason) if reason else None

        return Hook(after_step=hook)

    event = StepEvent(message=AssistantMessage("well"), results=(), metadata={})
    assert await ask_after_step([stop(None), stop("enough"), stop("too much")], event) == StopRun("enough")
    assert heard == ["well"] * 3
    assert await ask_after_step([], event) is None


@each_case("error", [LookupError(), SystemExit(1), BaseException(), asyncio.CancelledError()])
async def test_a_hook_that_breaks_says_nothing(error: BaseException) -> None:
    def broken(event: str) -> str | None:
        raise error

    assert await consult(broken, "event") is None


async def test_a_cancellation_from_outside_gets_through_a_hook() -> None:
    started = asyncio.Event()

    async def wait(event: str) -> None:
        started.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(consult(wait, "event"))
        await started.wait()
        task.cancel()
    assert task.cancelled()


async def test_a_hook_that_catches_its_cancellation_is_left_as_it_stands(caplog: pytest.LogCaptureFixture) -> None:
    stubborn = Stubborn()
    assert (await cancelled(lambda: consult(stubborn, "event"))).cancelled()
    assert "a hook on str does not end when it is cancelled" in caplog.text
    stubborn.released = True


def test_what_a_request_took_is_what_the_vendor_says_or_an_estimate_of_both() -> None:
    request = ModelRequest((UserMessage("how long is this?"),))
    answer = Completion(AssistantMessage("so long"), FinishReason.STOP, usage=Usage(30, 12))
    assert request_tokens(request, answer) == 42
    unknown = request_tokens(request, replace(answer, usage=None))
    assert unknown == estimate(request) + estimate_message(answer.message) > 0
