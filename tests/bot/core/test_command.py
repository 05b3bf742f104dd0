from __future__ import annotations

import time

import pytest

from bot.core.command import LONGEST_NAME, Asked, Command, at_time, command, money, tokens
from bot.core.query_results import UsageSum
from frostagent.types.traits import Audience
from tests.bot.commands.typed import asked
from tests.cases import each_case

NOON = time.mktime((2026, 3, 2, 12, 0, 0, 0, 0, -1))


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


def test_a_time_of_another_day_is_told_with_that_day() -> None:
    assert at_time(NOON + 5400, NOON) == "13:30"
    assert at_time(NOON + 86_400, NOON) == "03-03 12:00"


def test_tokens_are_told_short() -> None:
    assert [tokens(number) for number in (0, 999, 1000, 12_345, 1_234_567)] == ["0", "999", "1.0k", "12.3k", "1.2M"]


def test_what_nobody_knows_the_price_of_is_told_so() -> None:
    assert money(UsageSum()) == "$0.0000"
    assert money(UsageSum(requests=2, cost=0.01234)) == "$0.0123"
    assert money(UsageSum(requests=2, cost=12.3456)) == "$12.35"
    assert money(UsageSum(requests=2, cost=0.5, unpriced=1)) == "$0.5000+?"
    assert money(UsageSum(requests=2, unpriced=2)) == "$?"
