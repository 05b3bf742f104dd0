from __future__ import annotations

import pytest

from bot.core.command import LONGEST_NAME, Asked, Command, command
from frostagent.types.traits import Audience
from tests.bot.commands.typed import asked
from tests.cases import each_case


async def test_a_function_becomes_a_command_that_answers_in_the_askers_language() -> None:
    @command("roll", "掷骰子", about=("掷一个骰子", "roll a die"), audience="group_admin")
    async def roll(question: Asked) -> str:
        return question.either("四", "four")

    assert isinstance(roll, Command)
    assert (roll.names, roll.audience) == (("roll", "掷骰子"), Audience.GROUP_ADMIN)
    assert await roll.answer(asked()) == "四"
    assert await roll.answer(asked(chinese=False)) == "four"


@each_case("name", ["", "two words", "/slash", "a/b", "x" * (LONGEST_NAME + 1)])
def test_a_name_that_nobody_can_type_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="one short word"):
        command(name, about=("", ""))(lambda _: answer())


def test_an_audience_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="everybody"):
        command("x", about=("", ""), audience="everybody")(lambda _: answer())


async def answer() -> str:
    return ""
