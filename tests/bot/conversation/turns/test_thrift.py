from __future__ import annotations

from bot.conversation.turns.thrift import NO_LIMIT, Thrift, told_on
from bot.domain.chat import AssistantMessage, UserMessage
from bot.domain.ports import Looking, Subagents
from bot.domain.run import Asker, Terms
from bot.domain.tool import tool
from bot.engine.engine import Run
from bot.policy.limits import Rung
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


def test_a_run_has_less_from_rung_to_rung() -> None:
    cheap = ScriptedModel()
    thrift = Thrift(cheap=cheap, tools=lambda: (look, ask, weather))
    run = Run(id="t1", conversation=GROUP, asker=Asker(1), transcript=(), terms=Terms(frozenset({"no"})))
    assert thrift.applied(run, Rung.ALL) == run
    seen = [thrift.applied(run, rung) for rung in (Rung.CHEAP, Rung.PLAIN, Rung.BARE)]
    assert all(one.model is cheap for one in seen)
    assert [one.terms.denied - {"no"} for one in seen] == [set(), {"look", "ask"}, {"look", "ask", "weather"}]
    assert Thrift(tools=lambda: (look,)).applied(run, Rung.CHEAP).model is None
    assert NO_LIMIT.rung(GROUP, 1) is Rung.ALL


def test_of_the_history_the_latest_half_is_told_in_whole_rounds() -> None:
    assert told_on(Rung.PLAIN, ROUNDS) == ROUNDS
    assert told_on(Rung.BARE, ROUNDS) == ROUNDS[4:]
    assert told_on(Rung.BARE, ROUNDS[:6]) == ROUNDS[4:6]
    assert told_on(Rung.BARE, ()) == ()
