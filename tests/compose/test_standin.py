"""The stand-in model reads the prompts of the bot as it is, which no engine is needed for.

It takes the last word of a question. A prompt that puts something new behind the question must not become its word.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from frostagent.models.openai.dialects import named_dialect
from frostagent.models.openai.wire import write_request
from frostagent.types.messages import Completion, ModelRequest
from tests.bot.chat.test_turn import living
from tests.cases import each_case
from tests.compose.checks import says
from tests.compose.standin.model import question, think
from tests.fakes import calls, said, words
from tests.frostagent.openai.test_wire import ORIGIN

Json = dict[str, Any]


def standing_in(asked: list[list[Json]]) -> Callable[[ModelRequest], Awaitable[Completion]]:
    """The stand-in as a model, which gets what the bot writes on the wire; `asked` keeps that."""

    async def answer(request: ModelRequest) -> Completion:
        messages = on_the_wire(request)
        asked.append(messages)
        thought = think(messages)
        made = [(call.name, json.dumps(call.arguments)) for call in thought.calls]
        return calls(*made) if made else words(thought.text)

    return answer


def on_the_wire(request: ModelRequest) -> list[Json]:
    body = write_request(request, origin=ORIGIN, dialect=named_dialect("plain"), stream_options=False)
    messages: list[Json] = json.loads(body)["messages"]
    return messages


@each_case("name", ["Demo", "小明"])  # the prompt is in English, and in Chinese
async def test_it_answers_by_the_last_word_of_a_real_prompt(name: str) -> None:
    asked: list[list[Json]] = []
    async with living(*[standing_in(asked)] * 3) as house:
        for word in ("hello", "slow", "你好"):
            await house.turns.answer(said(word, name=name))
    assert house.transport.texts == ["A:hello", "A:slow", "A:你好"]
    assert says(asked[1][-1], "slow")
    assert any(says(message, "hello") for message in asked[2][:-1])
    assert not any(says(message, "hello") for message in asked[2][-1:])


async def test_it_sends_its_picture_and_then_says_nothing_new() -> None:
    asked: list[list[Json]] = []
    async with living(*[standing_in(asked)] * 2) as house:
        await house.turns.answer(said("picture"))
    assert [question(messages) for messages in asked] == ["picture", "picture"]
    assert house.transport.texts == ["S:picture"]
