from __future__ import annotations

import builtins
import collections.abc
import re
import typing
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

import frostagent
from frostagent import (
    Agent,
    Builder,
    ConfigError,
    Hook,
    Message,
    ModelError,
    RunFailed,
    ScriptedModel,
    ToolContext,
    Toolset,
    call,
    class_tool,
    command_tool,
    connect,
    foreign_tool,
    tool,
)
from tests.cases import each_case
from tests.conformance.vendor import Body, listening, serving


def test_everything_a_person_imports_is_there_once() -> None:
    assert sorted(frostagent.__all__) == sorted(set(frostagent.__all__))
    assert [name for name in frostagent.__all__ if not hasattr(frostagent, name)] == []
    assert {*frostagent.__all__} <= {*dir(frostagent)}


def test_a_name_that_is_not_there_is_an_error_to_python_and_to_a_type_checker() -> None:
    with pytest.raises(AttributeError, match="module 'frostagent' has no attribute 'Agnet'"):
        _ = frostagent.Agnet  # type: ignore[attr-defined]  # and were it accepted, this would be unused
    with pytest.raises(ImportError, match="cannot import name 'Agnet'"):
        from frostagent import Agnet  # type: ignore[attr-defined]  # noqa: F401  # the same


def test_an_old_name_works_warns_once_and_names_the_new_one() -> None:
    def use_it() -> list[object]:
        from frostagent import Hooks

        return [Hooks, frostagent.Hooks]

    vars(frostagent).pop("Hooks", None)
    with pytest.warns(FutureWarning, match=r"frostagent\.Hooks is deprecated: it is called Hook now") as told:
        used = use_it()
    assert (used, len(told)) == ([Hook, Hook], 1)
    assert told[0].filename == __file__
    assert "Hooks" not in frostagent.__all__


@each_case("suffix", ["", "/", "/v1", "/v1/chat/completions"])
async def test_a_url_a_name_and_a_key_are_a_model(suffix: str) -> None:
    async with serving() as vendor, connect(f"{vendor.url}{suffix}", "some-model", "sk-test") as model:
        assert (await Agent(model=model).chat("hi")).text == "hello"
    assert (vendor.bodies[0]["model"], vendor.keys) == ("some-model", ["Bearer sk-test"])


async def test_a_local_server_needs_no_key() -> None:
    async with serving() as vendor, connect(vendor.url, "some-model") as model:
        await Agent(model=model).chat("hi")
    assert vendor.keys == [""]


async def test_a_busy_server_is_asked_again() -> None:
    answers: list[Body | int] = [503, {"content": "hello"}]
    async with serving(lambda _body: answers.pop(0)) as vendor, connect(vendor.url, "m") as model:
        assert (await Agent(model=model).chat("hi")).text == "hello"
    assert len(vendor.bodies) == 2


async def test_a_refused_key_is_told_by_its_kind() -> None:
    async with serving(lambda _body: 401) as vendor, connect(vendor.url, "m", "sk-wrong") as model:
        with pytest.raises(RunFailed) as caught:
            await Agent(model=model).chat("hi")
        assert caught.value.kind == "auth"
        assert not isinstance(caught.value, ModelError)


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@tool
def look_up(word: str) -> str:
    """Looks it up."""
    return word


look_away = replace(look_up, available=lambda: "is away")


@each_case(
    ("tools", "answers", "offered"),
    [
        ([], ['{"city": "Paris"}'], [False]),
        ([look_away], ['{"city": "Paris"}'], [False]),
        ([], ['{"town": "Paris"}', '{"city": "Paris"}'], [False, False]),
        ([], ["It is Paris.", '{"city": "Paris"}'], [False, False]),
        ([], ["It is Paris.", "{}", '{"city": "Paris"}'], [False, False, False]),
        ([look_up], ["It is Paris.", '{"city": "Paris"}'], [True, False]),
        ([look_up], ['{"city": "Paris"}', "{}", '{"city": "Paris"}'], [True, False, False]),
    ],
)
async def test_a_value_costs_one_request_if_no_tool_is_offered(
    tools: list[Any], answers: list[str], offered: list[bool]
) -> None:
    left = list(answers)
    async with serving(lambda _body: {"content": left.pop(0)}) as vendor, connect(vendor.url, "m") as model:
        found = await Agent(model=model, tools=tools, system="Be brief.").run_structured("Where is the Louvre?", CITY)
    assert (found.value, found.reply.text, found.reply.steps) == ({"city": "Paris"}, answers[-1], len(answers))
    assert ["tools" in body for body in vendor.bodies] == offered
    first = vendor.bodies[0]["messages"]
    assert ([each["role"] for each in first], '"city"' in first[-1]["content"]) == (["system", "user"], not offered[0])


async def test_no_value_is_asked_for_without_the_tool_that_must_be_there() -> None:
    needed = replace(look_away, critical=True)
    async with serving() as vendor, connect(vendor.url, "m") as model:
        with pytest.raises(RunFailed, match="look_up is critical"):
            await Agent(model=model, tools=[needed]).run_structured("Where is the Louvre?", CITY)
    assert vendor.bodies == []


@each_case(("url", "dialect"), [("not a url", ""), ("http://127.0.0.1:9", "klingon")])
async def test_what_cannot_be_a_model_is_refused_at_once(url: str, dialect: str) -> None:
    with pytest.raises(ConfigError, match="connect: "):
        async with connect(url, "m", dialect=dialect):
            pass


def only_at(path: str) -> tuple[list[str], Any]:
    """A server that knows one path, and the ledger of those it was asked at."""
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path != path:
            return web.json_response({"detail": "Not Found"}, status=404)
        return web.json_response({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]})

    return asked, handle


@each_case(
    ("there", "given"),
    [
        ("/v1/chat/completions", ""),
        ("/chat/completions", "/v1"),
        ("/openai/v1/chat/completions", "/openai/"),
        ("/v1/chat/completions", "/v1"),
    ],
)
async def test_with_or_without_its_version_the_server_is_found(there: str, given: str) -> None:
    asked, handle = only_at(there)
    async with listening(handle) as url, connect(f"{url}{given}", "m") as model:
        agent = Agent(model=model)
        assert [(await agent.chat("hi")).text for _ in range(2)] == ["hello", "hello"]
    assert asked[1:] == [there] * (len(asked) - 1)
    assert len(asked) <= 3


async def test_where_nothing_is_there_that_is_told_by_its_kind() -> None:
    asked, handle = only_at("/elsewhere")
    async with listening(handle) as url, connect(url, "m") as model:
        with pytest.raises(RunFailed) as caught:
            await Agent(model=model).chat("hi")
    assert caught.value.kind == "model_not_found"
    assert asked == ["/chat/completions", "/v1/chat/completions"]


def test_what_programs_of_others_name_is_in_one_place() -> None:
    needed = {"ToolDenied", "InvalidArguments", "ToolFinished", "ToolProgressed", "Completion", "Approver"}
    assert needed <= set(frostagent.__all__)


PUBLIC = re.compile(r"\b[A-Z]\w+")


def test_every_type_in_a_signature_of_the_agent_and_the_registry_can_be_imported_there() -> None:
    told = [
        str(annotation)
        for kind in (Agent, Toolset, Builder, connect, foreign_tool, class_tool, command_tool)
        for member in (kind, *(vars(kind).values() if isinstance(kind, type) else ()))
        if isinstance(member, FunctionType) and not (member.__name__.startswith("_") and member.__name__ != "__init__")
        for annotation in member.__annotations__.values()
    ]
    known = {*frostagent.__all__, *vars(typing), *vars(collections.abc), *vars(builtins), "T"}
    ours = {"Mask", "Path", "TypeForm"}  # a function, and of the standard library and typing_extensions
    assert {name for text in told for name in PUBLIC.findall(text)} - known == ours


# --- what is given that is not what it should be ----------------------------------------------------


async def test_functions_may_look_on_and_allow() -> None:
    told: list[str] = []
    model = ScriptedModel(call("act"), "done")

    @tool(permission="require_approval")
    async def act() -> str:
        """Acts."""
        return "done"

    def allow(context: ToolContext, name: str, _arguments: object) -> bool:
        told.append(f"{name} {context.step}")
        return True

    agent = Agent(model=model, tools=[act], observer=lambda event: told.append(event.type), approver=allow)
    with model:
        reply = await agent.chat("go")
    assert reply.tool_failures == ()
    assert told[:4] == ["run_started", "step_finished", "tool_started", "act 1"]


class Half:
    """A memory that only remembers."""

    async def append(self, session: str, messages: Sequence[Message]) -> None: ...


async def look_on(_event: object) -> None: ...


@each_case(
    ("options", "told"),
    [
        ({"model": None}, "a model has complete, NoneType has no complete"),
        ({"memory": Half()}, "a memory has load and append, Half has no load"),
        ({"observer": 3}, "whoever looks on is a function, or an object with notice, not int"),
        ({"observer": look_on}, "look_on is told while the run goes on: make it a plain def"),
        ({"approver": 3}, "an approver is an object with approve, or a function, not int"),
        ({"hooks": [look_on]}, "look_on is no Hook"),
        ({"hooks": Hook()}, "hooks are a list, as in "),
        ({"on_tool_result": 3}, "whoever looks on is a function"),
        ({"send_hook": 3}, "a send hook is a function, not int"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(options: dict[str, Any], told: str) -> None:
    with pytest.raises(TypeError, match=re.escape(told)):
        Agent(**{"model": ScriptedModel(), **options})
