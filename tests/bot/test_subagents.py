from __future__ import annotations

import asyncio

import pytest

from bot.domain.chat import Completion, ModelRequest, SystemMessage, UserMessage
from bot.domain.errors import InvalidArguments, ModelAuth, ToolFailed
from bot.subagents import CODER_PROMPT, NamedSubagents, Subagent
from tests.fakes import ScriptedModel, Step, words


def coder(*steps: Step, deadline: float = 5.0) -> tuple[NamedSubagents, ScriptedModel]:
    model = ScriptedModel(*steps)
    return NamedSubagents([Subagent("Coder", model, CODER_PROMPT, deadline)]), model


@pytest.mark.parametrize("name", ["Coder", "coder", " CODER\n"])
async def test_a_helper_is_asked_by_name_whatever_its_case(name: str) -> None:
    subagents, model = coder(words(" print(1)\n"))
    with model:
        assert await subagents.ask(name, "print one") == "print(1)"


async def test_it_sees_its_own_prompt_and_the_task_and_no_tools() -> None:
    subagents, model = coder(words("ok"))
    with model:
        await subagents.ask("Coder", "print one")
    assert model.requests == [ModelRequest((SystemMessage(CODER_PROMPT), UserMessage("print one")))]


async def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    subagents = NamedSubagents([Subagent(name, ScriptedModel(), "") for name in ("Painter", "Coder")])
    assert subagents.names == ("Coder", "Painter")
    with pytest.raises(InvalidArguments) as caught:
        await subagents.ask("x" * 1000, "task")
    assert str(caught.value) == f'subagent_name: there is no "{"x" * 64}"; known: Coder, Painter'
    assert caught.value.fields == (str(caught.value),)


async def test_a_refusal_in_words_is_an_answer() -> None:
    subagents, model = coder(words("", refusal="I will not write that."))
    with model:
        assert await subagents.ask("Coder", "virus") == "I will not write that."


@pytest.mark.parametrize("text", ["", " \n"])
async def test_an_empty_answer_is_told_as_a_failure(text: str) -> None:
    subagents, model = coder(words(text))
    with model, pytest.raises(ToolFailed, match="Coder gave an empty answer"):
        await subagents.ask("Coder", "task")


async def test_a_model_that_fails_is_told_by_its_kind_and_never_in_its_own_words() -> None:
    subagents, model = coder(ModelAuth("bad key sk-secret"))
    with model, pytest.raises(ToolFailed) as caught:
        await subagents.ask("Coder", "task")
    assert str(caught.value) == "Coder could not be reached (auth). Say so, politely."


async def wait_for_ever(request: ModelRequest) -> Completion:
    await asyncio.Event().wait()
    return words("never")


async def test_a_helper_that_takes_too_long_is_given_up() -> None:
    subagents, model = coder(wait_for_ever, deadline=0.01)
    with model, pytest.raises(ToolFailed, match=r"Coder did not answer within 0\.01 s"):
        await subagents.ask("Coder", "task")


async def test_a_deadline_of_somebody_else_stays_theirs() -> None:
    subagents, model = coder(wait_for_ever)
    with model, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await subagents.ask("Coder", "task")


async def test_a_bug_in_a_model_is_not_taken_for_the_deadline() -> None:
    async def broken(request: ModelRequest) -> Completion:
        raise TimeoutError("mine")

    subagents, model = coder(broken)
    with model, pytest.raises(TimeoutError, match="mine"):
        await subagents.ask("Coder", "task")
