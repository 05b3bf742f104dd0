from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from frostagent.reply import Reply, UnfitAnswer, ended_reply
from frostagent.structured import fill_in, find_json, form_of
from frostagent.types.messages import AssistantMessage, Message, Usage, UserMessage
from frostagent.types.runs import Outcome, Stop
from frostagent.types.schema import UnsuitableType
from tests.cases import each_case


class Day(BaseModel):
    """A day."""

    model_config = ConfigDict(strict=True)

    when: date
    city: str = "北京"


@dataclass
class Pair:
    left: int
    right: int


def test_a_value_is_of_the_type_that_was_asked_for() -> None:
    assert form_of(Day).read('{"when": "2026-01-31"}') == Day(when=date(2026, 1, 31))
    assert form_of(Pair).read('{"left": 1, "right": 2}') == Pair(1, 2)
    assert form_of(list[int]).read("[1, 2]") == [1, 2]
    assert form_of(Day).schema["required"] == ["when"]


def test_a_json_schema_gives_plain_data_with_its_defaults() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"default": "x"}}, "required": ["a"]}
    assert form_of(schema).read('{"a": 1}') == {"a": 1, "b": "x"}


def test_a_schema_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(UnsuitableType, match="the schema of the answer: not a JSON schema"):
        form_of({"type": "nothing"})


def test_a_schema_that_refers_to_a_file_is_none() -> None:
    with pytest.raises(UnsuitableType, match="the schema of the answer: the schema refers to file:///etc/hostname"):
        form_of({"$ref": "file:///etc/hostname"})


@each_case(
    ("schema", "text", "problem"),
    [
        (Day, "tomorrow", "it is not JSON"),
        (Day, "{}", "when: Field required, got {}"),
        (Pair, '{"left": "x", "right": 2}', "left: Input should be a valid integer"),
        (int, '"x"', "answer: Input should be a valid integer"),
        ({"required": ["a"]}, "{}", "a: required"),
        ({"properties": {"a": {"type": "integer"}}}, '{"a": "x"}', "a: 'x' is not of type 'integer'"),
        (list[int], json.dumps(["y" * 500]), "..."),
    ],
)
def test_each_misfit_is_told(schema: Any, text: str, problem: str) -> None:
    with pytest.raises(UnfitAnswer) as caught:
        form_of(schema).read(text)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 300
    assert caught.value.text == text


@each_case(
    "text",
    [
        '{"a": [1]}',
        ' \n{"a": [1]}\n',
        'Here you are:\n```json\n{"a": [1]}\n```\nAnything else?',
        '```\n{"a": [1]}\n```',
        'The answer is {"a": [1]}.',
    ],
)
def test_json_is_found_in_what_models_put_around_it(text: str) -> None:
    assert find_json(text) == {"a": [1]}


def test_deep_nesting_is_no_json() -> None:
    with pytest.raises(UnfitAnswer, match="not JSON"):
        form_of(int).read("[" * 100_000)


def a_reply(text: str, usage: Usage | None = None) -> Reply:
    messages = (AssistantMessage(text),)
    return ended_reply("t1", Outcome(Stop.ANSWERED, text, messages, usage or Usage(1, 1), 1))


async def test_one_answer_that_fits_needs_one_request() -> None:
    asked: list[tuple[Message, ...]] = []

    async def write(transcript: tuple[Message, ...]) -> Reply:
        asked.append(transcript)
        return a_reply("[1]")

    found = await fill_in(form_of(list[int]), a_reply("words"), (UserMessage("go"),), write)
    assert found.value == [1]
    assert (found.reply.usage, found.reply.steps, found.reply.text) == (Usage(2, 2), 2, "[1]")
    (transcript,) = asked
    (question,) = transcript
    assert isinstance(question, UserMessage)
    assert question.text.startswith("go\n\nNow give what you have found as one JSON value")
    assert '"integer"' in question.text


async def test_a_misfit_is_sent_back_once_with_its_problems() -> None:
    answers = ["[x]", "[2]"]
    asked: list[tuple[Message, ...]] = []

    async def write(transcript: tuple[Message, ...]) -> Reply:
        asked.append(transcript)
        return a_reply(answers[len(asked) - 1])

    found = await fill_in(form_of(list[int]), a_reply("words"), (UserMessage("go"), AssistantMessage("words")), write)
    assert (found.value, found.reply.usage, found.reply.steps) == ([2], Usage(3, 3), 3)
    assert asked[1][-2] == AssistantMessage("[x]")
    assert "it is not JSON" in str(asked[1][-1])


async def test_a_second_misfit_is_the_end() -> None:
    async def write(_transcript: tuple[Message, ...]) -> Reply:
        return a_reply("sorry")

    with pytest.raises(UnfitAnswer, match="it is not JSON"):
        await fill_in(form_of(list[int]), a_reply("words"), (UserMessage("go"),), write)
