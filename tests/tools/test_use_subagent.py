from __future__ import annotations

import pytest

from bot.domain.errors import InvalidArguments, ToolFailed
from bot.domain.ports import Subagents
from tests.fakes import tool_context
from tools.use_subagent import use_subagent


class Staff:
    """Helpers that say what they were asked; Sleeper never answers."""

    names = ("Coder", "Sleeper")

    async def ask(self, name: str, content: str) -> str:
        if name == "Sleeper":
            raise ToolFailed("Sleeper did not answer within 120 s. Say so.")
        return f"{name}: {content}"


async def use(**arguments: object) -> object:
    return await use_subagent.run(tool_context({Subagents: Staff()}), use_subagent.check(arguments))


async def test_the_whole_task_goes_to_the_named_helper_and_its_words_come_back() -> None:
    assert await use(subagent_name="Coder", content=" print\none ") == "Coder:  print\none "


@pytest.mark.parametrize("content", ["", " \n"])
async def test_an_empty_task_is_not_handed_on(content: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        await use(subagent_name="Sleeper", content=content)
    assert caught.value.fields == ("content: empty",)


async def test_what_went_wrong_there_is_told_here() -> None:
    with pytest.raises(ToolFailed, match="Sleeper did not answer"):
        await use(subagent_name="Sleeper", content="task")


async def test_both_arguments_are_needed() -> None:
    with pytest.raises(InvalidArguments) as caught:
        await use(name="Coder")
    assert caught.value.fields == (
        "subagent_name: required",
        "content: required",
        "name: no such field, leave it out",
    )


def test_the_model_is_told_to_say_first_that_it_asks() -> None:
    assert "first tell the user with send_message" in use_subagent.description
    assert use_subagent.needs == (Subagents,)
    assert use_subagent.timeout > 120  # longer than a helper has, so that its own words about a time-out arrive
    assert list(use_subagent.parameters["properties"]) == ["subagent_name", "content"]
