"""`run(output=)` against real HTTP: how each service is made to answer in JSON, and what follows where it refuses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from aiohttp import web
from pydantic import BaseModel, Field

from frostagent import Agent, UnfitAnswer, tool
from frostagent.models.connection import connect
from frostagent.models.openai.dialects import DIALECTS
from tests.cases import each_case
from tests.conformance.vendor import Body, listening


class Order(BaseModel):
    """What somebody wants."""

    dish: str
    count: int = Field(default=1, ge=1)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


TEA = '{"dish": "tea", "count": 2}'
STRICT = {
    "type": "object",
    "properties": {"dish": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["dish", "count"],
    "additionalProperties": False,
    "description": "What somebody wants.",
}


@tool(side_effects="read")
async def menu() -> str:
    """What there is."""
    return "tea, cake"


@dataclass
class Service:
    """What a server on the loopback was asked; it plays what it is told: words, calls, or a refusal."""

    plays: list[Any]
    url: str = ""
    bodies: list[Body] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        play = self.plays.pop(0)
        if callable(play):
            play = play(body)
        if isinstance(play, tuple):
            status, refusal = play
            return web.json_response(refusal, status=status)
        message = {"content": play} if isinstance(play, str) else {"content": None, "tool_calls": [play]}
        finish = "stop" if isinstance(play, str) else "tool_calls"
        said = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
        return web.json_response(said)

    @property
    def formats(self) -> list[str]:
        """How each request asked for JSON."""
        return [asked_by(body) for body in self.bodies]


def asked_by(body: Body) -> str:
    if "response_format" in body:
        return str(body["response_format"]["type"])
    names = [one["function"]["name"] for one in body.get("tools", ())]
    return "tool" if names == ["give_answer"] else ",".join(names) or "words"


@asynccontextmanager
async def serving(*plays: Any) -> AsyncIterator[Service]:
    service = Service(list(plays))
    async with listening(service.handle) as service.url:
        yield service
    assert service.plays == []


def calling(name: str, arguments: str) -> Body:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


# --- by the service's own means -------------------------------------------------------------------

SCHEMA = {row.name for row in DIALECTS if row.answers == "json_schema"}


@each_case("dialect", sorted({row.name for row in DIALECTS}))
async def test_each_service_is_asked_once_by_the_means_it_has(dialect: str) -> None:
    async with serving(TEA) as service, connect(service.url, "m", dialect=dialect) as model:
        result = await Agent(model=model).run("Two teas.", output=Order)
    assert (result.output, result.steps) == (Order(dish="tea", count=2), 1)
    (body,) = service.bodies
    if dialect in SCHEMA:
        described = {"name": "answer", "strict": True, "schema": STRICT}
        assert body["response_format"] == {"type": "json_schema", "json_schema": described}
    else:
        assert body["response_format"] == {"type": "json_object"}
    assert "JSON" in body["messages"][-1]["content"]  # without that word JSON mode is refused
    assert '"ge"' not in str(body)
    assert "tools" not in body


async def test_a_model_is_asked_by_the_means_of_its_family_behind_any_address() -> None:
    async with serving(TEA, TEA) as service:
        await Agent(model="deepseek-chat", base_url=service.url).run("Two teas.", output=Order)
        await Agent(model="gpt-5", base_url=service.url).run("Two teas.", output=Order)
    assert service.formats == ["json_object", "json_schema"]


async def test_a_run_with_tools_asks_for_json_once_they_are_done() -> None:
    async with serving(calling("menu", "{}"), "There is tea.", TEA) as service:
        agent = Agent(model="m", base_url=service.url, tools=[menu])
        result = await agent.run("Order something.", output=Order)
    assert (result.output, result.steps) == (Order(dish="tea", count=2), 3)
    assert service.formats == ["menu", "menu", "json_schema"]
    assert "tools" not in service.bodies[-1]


async def test_words_alone_are_asked_for_without_a_format() -> None:
    async with serving("hello") as service:
        await Agent(model="m", base_url=service.url).run("Hi.")
    assert service.formats == ["words"]


# --- where it refuses -----------------------------------------------------------------------------

REFUSALS = [
    (400, {"error": {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}}),
    (422, {"error": {"message": "Failed to deserialize the JSON body into the target type: response_format: "
                     "response_format.type `json_schema` is unavailable now at line 1 column 1193"}}),
    (400, {"error": {"code": "InvalidParameter", "param": "response_format.type", "type": "BadRequest",
                     "message": "The parameter `response_format.type` specified in the request are not valid: invalid "
                     "value: `json_schema`, supported values are: `json_object` and `text`."}}),
    (400, {"error": {"message": "This model does not support response format `json_schema`. See supported models."}}),
    (400, {"error": {"message": "Json mode response is not supported when enable_thinking is true"}}),
    (400, {"code": "Client specified an invalid argument",
           "error": "The response_format parameter is unsupported at the moment. Leave it unset."}),
    (400, {"error": {"message": "Unsupported parameter", "type": "invalid_request_error", "param": "response_format"}}),
    (400, {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]}),
]  # fmt: skip
NO_TOOLS = (400, {"error": {"message": "m does not support tools"}})


def number(refusal: tuple[int, Any]) -> str:
    return f"refusal {REFUSALS.index(refusal)}"


@pytest.mark.parametrize("refusal", REFUSALS, ids=number)
async def test_a_refusal_falls_back_and_is_remembered_as_long_as_the_client(refusal: tuple[int, Any]) -> None:
    async with serving(refusal, TEA, TEA, TEA) as service:
        agent = Agent(model="m", base_url=service.url)
        async with agent:
            results = [await agent.run("Two teas.", output=Order) for _ in range(2)]
        results.append(await agent.run("Two teas.", output=Order))  # over another connection
    assert [result.output.count for result in results] == [2, 2, 2]
    assert service.formats == ["json_schema", "json_object", "json_object", "json_object"]


async def test_a_server_that_knows_no_format_is_given_a_tool_and_without_tools_it_is_asked_in_words() -> None:
    no_format = REFUSALS[5]
    given = calling("give_answer", TEA)
    async with serving(no_format, no_format, given, TEA, NO_TOOLS, TEA, TEA) as service:
        agent = Agent(model="m", base_url=service.url)
        results = [await agent.run("Two teas.", output=Order) for _ in range(4)]
    assert {result.output.count for result in results} == {2}
    assert service.formats == ["json_schema", "json_object", "tool", "tool", "tool", "words", "words"]
    (offered,) = service.bodies[2]["tools"]
    assert offered["function"]["parameters"]["properties"]["dish"] == {"title": "Dish", "type": "string"}
    assert results[0].messages[-1].text == TEA


async def test_json_mode_alone_may_be_refused() -> None:
    refusal = (400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
    async with serving(refusal, TEA) as service:
        await Agent(model="deepseek-v3.2", base_url=service.url).run("Two teas.", output=Order)
    assert service.formats == ["json_object", "json_schema"]


@pytest.mark.parametrize(
    "words",
    [
        "Invalid schema for response_format 'answer': In context=('properties', 'dish')",
        "Invalid JSON schema for response_format: 'answer': /properties/dish",
        "response_format.json_schema.strict: Input should be True",
        "The provided JSON schema contains features not supported by the backend.",
        "Failed to initialize samplers: failed to parse grammar",
    ],
)
async def test_a_schema_that_is_refused_says_nothing_of_others(words: str) -> None:
    async with serving((400, {"error": {"message": words}}), TEA, TEA, '{"answer": 3}') as service:
        agent = Agent(model="m", base_url=service.url)
        for _ in range(2):
            await agent.run("Two teas.", output=Order)
        assert (await agent.run("How many?", output=int)).output == 3
    assert service.formats == ["json_schema", "json_object", "json_object", "json_schema"]


async def test_an_answer_that_the_server_threw_away_is_asked_for_in_another_form_this_once() -> None:
    lost = {"error": {"message": "Failed to generate JSON. Please adjust your prompt.", "code": "json_validate_failed"}}
    async with serving((400, lost), TEA, TEA) as service:
        agent = Agent(model="m", base_url=service.url)
        for _ in range(2):
            await agent.run("Two teas.", output=Order)
    assert service.formats == ["json_schema", "json_object", "json_schema"]


async def test_another_refusal_is_no_matter_of_the_format() -> None:
    async with serving((401, {"error": {"message": "Invalid API key"}})) as service:
        with pytest.raises(Exception, match="Invalid API key"):
            await Agent(model="m", base_url=service.url).run("Two teas.", output=Order)
    assert service.formats == ["json_schema"]


@each_case("dialect", sorted({row.name for row in DIALECTS}))
async def test_each_service_may_refuse_behind_tools_and_have_its_answer_repaired(dialect: str) -> None:
    first, then = ("json_schema", "json_object") if dialect in SCHEMA else ("json_object", "json_schema")
    plays = (calling("menu", "{}"), "There is tea.", REFUSALS[1], '{"dish": "tea",', TEA, TEA)
    async with serving(*plays) as service, connect(service.url, "m", "k", dialect=dialect) as model:
        agent = Agent(model=model, tools=[menu])
        result = await agent.run("Order something.", output=Order)
        assert (await Agent(model=model).run("Two teas.", output=Order)).output == result.output
    assert result.output == Order(dish="tea", count=2)
    assert service.formats == ["menu", "menu", first, then, then, then]
    asked, repaired = service.bodies[3:5]
    assert "Now give what you have found" in asked["messages"][-1]["content"]
    assert "it is not JSON" in repaired["messages"][-1]["content"]
    assert [body.get("tool_choice", "auto") for body in (asked, repaired) if "tools" in body] in ([], ["none"] * 2)


async def test_a_streamed_answer_and_a_refusal_of_the_model_s_own_are_read() -> None:
    def piece(**delta: str) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"

    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    refusal = piece(refusal="I cannot help ") + piece(refusal="with that.") + end
    bodies = [
        b"".join(piece(content=one) for one in ('{"dish"', ': "te', 'a", "coun', 't": 2}')) + end,
        *[refusal] * 3,
    ]

    async def handle(request: web.Request) -> web.Response:
        assert (await request.json())["stream"] is True
        return web.Response(body=bodies.pop(0), content_type="text/event-stream")

    async with listening(handle) as url:
        agent = Agent(model="m", base_url=url)
        assert (await agent.run("Two teas.", output=Order)).output == Order(dish="tea", count=2)
        with pytest.raises(UnfitAnswer, match="it is not JSON") as caught:
            await agent.run("Two bombs.", output=Order)
    assert caught.value.text == "I cannot help with that."


# --- answers that do not fit ----------------------------------------------------------------------


@each_case("wrong", ['{"dish": "tea", "count": 0}', "Two teas, of course.", '{"dish": "tea", "count": 2'])
async def test_what_does_not_fit_is_sent_back_once_in_the_same_form(wrong: str) -> None:
    async with serving(wrong, TEA) as service:
        result = await Agent(model="m", base_url=service.url).run("Two teas.", output=Order)
    assert result.output == Order(dish="tea", count=2)
    assert service.formats == ["json_schema"] * 2
    (question, *rest) = service.bodies[1]["messages"]
    assert (question["role"], rest[0]["content"]) == ("user", wrong)


async def test_the_error_names_the_field() -> None:
    async with serving('{"dish": "tea", "count": "many"}', '{"dish": "tea", "count": 0}') as service:
        with pytest.raises(UnfitAnswer, match="count: Input should be greater than or equal to 1, got 0"):
            await Agent(model="m", base_url=service.url).run("Teas.", output=Order)
    assert "count: Input should be a valid integer" in service.bodies[1]["messages"][-1]["content"]


async def test_blanks_in_the_place_of_json_are_asked_for_anew() -> None:
    async with serving("   ", TEA) as service:
        result = await Agent(model="deepseek-chat", base_url=service.url).run("Two teas.", output=Order)
    assert result.output.count == 2
    assert "was empty. Answer now, with the JSON alone" in service.bodies[1]["messages"][-1]["content"]


class Quoted(BaseModel):
    name: str
    arguments: dict[str, str]


async def test_the_texts_in_a_value_are_as_the_model_wrote_them() -> None:
    marks = "<think>a</think> b <|im_end|> c 【3†source】 </think>"
    value = json.dumps({"name": "menu", "arguments": {"html": marks}})
    async with serving(
        value, calling("menu", "{}"), "There is tea.", value, f"<think>\n{{}}\n</think>\n{TEA}"
    ) as service:
        alone = await Agent(model="m", base_url=service.url).run("What?", output=Quoted)
        after = await Agent(model="m", base_url=service.url, tools=[menu]).run("What?", output=Quoted)
        thought = await Agent(model="m", base_url=service.url).run("What?", output=Order)
    assert alone.output == after.output == Quoted(name="menu", arguments={"html": marks})
    assert thought.output.count == 2


# --- values that are no object --------------------------------------------------------------------


def answer(schema: Any) -> Any:
    return {
        "type": "object", "properties": {"answer": schema}, "required": ["answer"], "additionalProperties": False,
    }  # fmt: skip


TEXTS = {"type": "array", "items": {"type": "string"}}
PETS = [
    {
        "type": "object",
        "properties": {"kind": {"type": "string", "enum": [name]}, key: schema},
        "required": ["kind", key],
        "additionalProperties": False,
    }
    for name, key, schema in (("cat", "lives", {"type": "integer"}), ("dog", "tricks", TEXTS))
]  # fmt: skip


@each_case(
    ("output", "said", "value", "schema"),
    [
        (list[str], '{"answer": ["a"]}', ["a"], answer(TEXTS)),
        (list[str], '["a"]', ["a"], answer(TEXTS)),
        (int, '{"answer": 3}', 3, answer({"type": "integer"})),
        (int, "3", 3, answer({"type": "integer"})),
        (bool, '{"answer": true}', True, answer({"type": "boolean"})),
        (Cat | Dog, '{"answer": {"kind": "dog", "tricks": []}}', Dog(kind="dog", tricks=[]), answer({"anyOf": PETS})),
        (Cat | Dog, '{"kind": "cat", "lives": 9}', Cat(kind="cat", lives=9), answer({"anyOf": PETS})),
        (Cat | None, '{"answer": null}', None, answer({"anyOf": [PETS[0], {"type": "null"}]})),
        (Literal["yes", "no"], '{"answer": "yes"}', "yes", answer({"type": "string", "enum": ["yes", "no"]})),
        (int | str, '{"answer": "x"}', "x", answer({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
        ({"type": "array", "items": {"type": "string"}}, '{"answer": ["a"]}', ["a"], answer(TEXTS)),
    ],
)
async def test_a_value_that_is_no_object_is_asked_for_in_one(output: Any, said: str, value: Any, schema: Any) -> None:
    async with serving(said) as service:
        result = await Agent(model="m", base_url=service.url).run("What?", output=output)
    assert result.output == value
    (body,) = service.bodies
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert '"answer"' in body["messages"][-1]["content"]


@each_case(
    ("output", "said", "problem"),
    [
        (list[int], '{"answer": [1, "x"]}', "answer.1: Input should be a valid integer"),
        (int, '{"answer": "x"}', "answer: Input should be a valid integer"),
        (Cat | Dog, '{"answer": {"kind": "cat"}}', "answer.Cat.lives: Field required"),
        ({"type": "array", "items": {"type": "string"}}, '{"answer": [1]}', "answer.0: 1 is not of type 'string'"),
        ({"type": "string"}, '{"answer": 1}', "answer: 1 is not of type 'string'"),
    ],
)
async def test_the_error_names_the_place_within_the_answer(output: Any, said: str, problem: str) -> None:
    async with serving(said, said) as service:
        with pytest.raises(UnfitAnswer) as caught:
            await Agent(model="m", base_url=service.url).run("What?", output=output)
    assert problem in str(caught.value)


@each_case(
    ("output", "said", "value"),
    [
        (Tree, '{"name": "a", "children": [{"name": "b"}]}', Tree(name="a", children=[Tree(name="b")])),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (list[Any], '{"answer": [1, "a"]}', [1, "a"]),
        (tuple[int, str], '{"answer": [1, "a"]}', (1, "a")),
    ],
)
async def test_what_no_strict_schema_can_say_is_asked_for_in_json_mode(output: Any, said: str, value: Any) -> None:
    async with serving(said) as service:
        result = await Agent(model="m", base_url=service.url).run("What?", output=output)
    assert result.output == value
    assert service.formats == ["json_object"]
