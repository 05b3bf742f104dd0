"""The rooms: who the bot is comes from its settings, and its memory has what the model leaves."""

from __future__ import annotations

import pytest

from bot.agent.scripted_model import ScriptedModel, call
from bot.domain.journal import Remembered, Round
from bot.domain.model_messages import AssistantMessage, UserMessage
from bot.domain.run import Asker, Outcome
from bot.domain.tool import tool
from bot.engine.engine import Run, RunState
from bot.engine.toolset import Toolset
from bot.memory.personas import Cast, Persona, Personas
from bot.memory.speakers import Speakers
from bot.models.failover import Failover
from bot.models.upstreams import Upstream
from bot.prompt.render import history_note
from bot.prompt.wording_zh import ZH
from bot.runtime.clock import RandomIds, SystemClock
from bot.wiring.keeping import around_of, build_history
from bot.wiring.models import told_of_history
from bot.wiring.service import build_engine
from config.settings import Settings
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore

WHO = Persona("你是霜。", "霜")


def room(window: int | None, *, most: int = 5000) -> float:
    """How many tokens of a conversation are told, with one tool, by a model of this window."""

    @tool
    def look() -> str:
        """Look."""
        return ""

    with ScriptedModel() as model:
        failover = Failover([Upstream(model, window=window)], clock=SystemClock(), ids=RandomIds())
        toolset = Toolset([look], clock=SystemClock())
        return told_of_history(failover, around_of(WHO, toolset), most=most)()


async def test_what_an_older_version_noted_in_its_answers_is_told_otherwise() -> None:
    store = RecordingStore()
    store.remembered[GROUP] = Remembered((Round("t0", (UserMessage("hi"), AssistantMessage("(没有回答)"))),), ())
    personas = Personas(Cast(WHO), store=store, choices=store, clock=SystemClock())
    history = build_history(personas, Speakers(store=store), store=store, room=lambda: 5000.0)
    await history.load(GROUP)
    assert "没有回答)" not in str(history.messages(GROUP))
    assert history.messages(GROUP)[-1] == history_note(ZH, ZH.about.unanswered)


@each_case("window", [None, 1_000_000])
def test_a_large_window_leaves_all_the_operator_allows(window: int | None) -> None:
    assert room(window) == pytest.approx(5000, rel=0.01)


def test_a_small_window_leaves_less_and_a_larger_one_more() -> None:
    assert 0 < room(4000) < room(6000) < 5000


async def test_of_the_calls_of_one_answer_as_many_are_run_as_the_operator_says() -> None:
    ran: list[str] = []

    @tool
    async def look(where: str) -> str:
        """Looks."""
        ran.append(where)
        return "seen"

    clock = SystemClock()
    with ScriptedModel([call("look", where=where) for where in "abc"], "done") as model:
        engine = build_engine(
            Settings(tools_max_calls=2),
            model=Failover([Upstream(model)], clock=clock, ids=RandomIds()),
            toolset=Toolset([look]),
            store=RecordingStore(),
            observers=[],
            clock=clock,
        )
        question = (UserMessage("go"),)
        outcome = await engine.run(Run(id="t1", conversation=GROUP, asker=Asker(1), transcript=question), RunState())
    assert isinstance(outcome, Outcome)
    assert ran == ["a", "b"]
    assert [failure.code for failure in outcome.tool_failures] == ["TOOL_DENIED"]
