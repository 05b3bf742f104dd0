from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as msgspec_replace

from bot.budget.limits import LimitLevel
from bot.budget.spending import Spending
from bot.budget.turn_budget import TurnBudget, shorten_history, shows_pictures
from bot.core.ports import Looking
from frostagent.engine.budget import Room
from frostagent.engine.engine import Run
from frostagent.types.messages import AssistantMessage, UserMessage
from frostagent.types.ports import Subagents
from frostagent.types.runs import Asker, Terms
from frostagent.types.tools import tool
from tests.bot.budget.till import unlimited
from tests.fakes import GROUP, ScriptedModel

ROUNDS = tuple(
    message for number in range(4) for message in (UserMessage(f"q{number}"), AssistantMessage(f"a{number}"))
)


@tool(needs=(Looking,))
def look() -> str:
    """Look."""
    return ""


@tool(needs=(Subagents,))
def ask() -> str:
    """Ask."""
    return ""


@tool
def weather() -> str:
    """Say."""
    return ""


class At(Spending):
    """The turn t1 is on this rung."""

    def __init__(self, rung: LimitLevel) -> None:
        self._level = rung

    def rung_of(self, turn_id: str) -> LimitLevel:
        assert turn_id == "t1"
        return self._level


def test_a_run_has_less_from_rung_to_rung_and_at_the_end_its_last_words() -> None:
    cheap = ScriptedModel()
    turn_budget = TurnBudget(unlimited(), cheap=cheap, tools=lambda: (look, ask, weather))
    run = Run(id="t1", conversation=str(GROUP), asker=Asker("1"), transcript=(), terms=Terms(frozenset({"no"})))
    assert turn_budget.leaner(run) == run
    seen = [
        replace(turn_budget, spending=At(rung)).leaner(run)
        for rung in (LimitLevel.CHEAP, LimitLevel.PLAIN, LimitLevel.BARE)
    ]
    assert all(one.model is cheap for one in seen)
    assert [one.terms.denied - {"no"} for one in seen] == [set(), {"look", "ask"}, {"look", "ask", "weather"}]
    inside = replace(turn_budget, spending=At(LimitLevel.PLAIN)).leaner(msgspec_replace(run, id="t1/2/c1"))
    assert inside.terms.denied == {"no", "look", "ask"}
    assert TurnBudget(At(LimitLevel.CHEAP), tools=lambda: (look,)).leaner(run).model is None
    rooms = [TurnBudget(At(rung)).budget("t1").share().begin() for rung in (LimitLevel.BARE, LimitLevel.SPENT)]
    assert rooms == [Room.MORE, Room.LAST]


def test_of_the_history_the_latest_half_is_told_in_whole_rounds() -> None:
    assert shorten_history(LimitLevel.PLAIN, ROUNDS) == ROUNDS
    assert shorten_history(LimitLevel.BARE, ROUNDS) == ROUNDS[4:]
    assert shorten_history(LimitLevel.BARE, ROUNDS[:6]) == ROUNDS[4:6]
    assert shorten_history(LimitLevel.BARE, ()) == ()


def test_pictures_are_left_out_before_tools_are() -> None:
    assert [level for level in LimitLevel if shows_pictures(level)] == [LimitLevel.ALL, LimitLevel.CHEAP]
