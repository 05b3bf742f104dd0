"""Servers that never say why an answer ended, and cut answers of those that do."""

from __future__ import annotations

import logging
from collections.abc import Callable

import aiohttp
import pytest

from frostagent.models.openai.client import OpenAIModel
from frostagent.types.errors import ModelError, ModelOverloaded, ModelTransport
from frostagent.types.messages import FinishReason, ModelRequest, ToolSpec, Usage, UserMessage
from tests.frostagent.openai.conftest import Vendor

QUESTION = ModelRequest((UserMessage("hi"),))


def event(text: str, finish: str = "null") -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n' % (
        text.encode(),
        finish.encode(),
    )


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = (event("hel"), event("lo", '"stop"'), USAGE, DONE)
UNEXPLAINED = (event("hel"), event("lo"), DONE)
CALLING = b'data: {"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}\n\n'

Make = Callable[[], OpenAIModel]


@pytest.fixture
def make(vendor: Vendor, session: aiohttp.ClientSession) -> Make:
    """A model at the vendor."""
    return lambda: OpenAIModel(session=session, base_url=vendor.url, api_key="", model="m")


async def test_2_2_a_server_that_never_says_why_it_ends_is_learned_after_one_more_try(
    vendor: Vendor, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.say(*UNEXPLAINED)
    model = make()
    for asked in (2, 3, 4):
        completion = await model.complete(QUESTION)
        assert (completion.message.text, completion.finish) == ("hello", FinishReason.UNKNOWN)
        assert len(vendor.asked) == asked
        assert completion.asked_twice == (asked == 2)
    [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert model.name in warning.getMessage()


async def test_where_it_is_refused_to_say_it_once_more_the_first_time_has_taken_something(
    vendor: Vendor, make: Make
) -> None:
    vendor.say(*UNEXPLAINED)
    vendor.say(b'{"error":{"message":"busy"}}', status=503)
    with pytest.raises(ModelOverloaded) as caught:
        await make().complete(QUESTION)
    assert (caught.value.took, caught.value.asked_twice) == (Usage(), False)


@pytest.mark.parametrize(
    ("second", "took", "asked_twice"),
    [
        ((event("hel"),), Usage(), True),
        ((event("", '"who knows"'), USAGE, DONE), Usage(3, 1), True),
        ((DONE,), Usage(), False),
    ],
)
async def test_where_it_fails_when_it_says_it_once_more_both_times_have_taken_something(
    vendor: Vendor, make: Make, second: tuple[bytes, ...], took: Usage, asked_twice: bool
) -> None:
    vendor.say(*UNEXPLAINED)
    vendor.say(*second)
    with pytest.raises(ModelError) as caught:
        await make().complete(QUESTION)
    assert len(vendor.asked) == 2
    assert (caught.value.took, caught.value.asked_twice) == (took, asked_twice)


@pytest.mark.parametrize("known", [STREAM, (event("hel"), USAGE)])
async def test_2_2_where_a_reason_is_the_rule_an_answer_without_one_was_cut(
    vendor: Vendor, make: Make, known: tuple[bytes, ...]
) -> None:
    for pieces in (UNEXPLAINED, known, UNEXPLAINED, UNEXPLAINED):
        vendor.say(*pieces)
    model = make()
    await model.complete(QUESTION)
    for asked in (3, 4):
        with pytest.raises(ModelTransport, match="cut"):
            await model.complete(QUESTION)
        assert len(vendor.asked) == asked


async def test_2_2_who_has_learned_to_say_why_is_believed_no_more_without(vendor: Vendor, make: Make) -> None:
    for pieces in (UNEXPLAINED, UNEXPLAINED, STREAM, UNEXPLAINED):
        vendor.say(*pieces)
    model = make()
    await model.complete(QUESTION)
    await model.complete(QUESTION)
    with pytest.raises(ModelTransport, match="cut"):
        await model.complete(QUESTION)


@pytest.mark.parametrize(
    "pieces",
    [UNEXPLAINED[:2], (DONE,), (CALLING, DONE), (event("hello"), CALLING, DONE), (event("hi", "null")[:-9], DONE)],
)
async def test_2_2_only_words_with_an_end_marker_are_an_unexplained_end(
    vendor: Vendor, make: Make, pieces: tuple[bytes, ...]
) -> None:
    """What calls something needs a stream that is known to be whole, also where this server never says so."""
    vendor.say(*UNEXPLAINED)
    vendor.say(*UNEXPLAINED)
    vendor.say(*pieces)
    model = make()
    await model.complete(QUESTION)
    with pytest.raises(ModelTransport):
        await model.complete(QUESTION)
    assert len(vendor.asked) == 3


async def test_4_2_a_call_in_the_words_of_an_unexplained_end_is_not_made(vendor: Vendor, make: Make) -> None:
    call = r"a <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"
    vendor.say(event(call), DONE)
    tool = ToolSpec("f", "Does it.", {"type": "object", "properties": {}})
    completion = await make().complete(ModelRequest(QUESTION.messages, (tool,)))
    assert (completion.message.text, completion.message.tool_calls) == ("a", ())
