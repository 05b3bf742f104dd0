"""The rooms: who the bot is comes from its settings, and its memory has what the model leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.clock import RandomIds, SystemClock
from bot.domain.tool import tool
from bot.models import Failover
from bot.rooms import build_history, persona
from bot.scripted import ScriptedModel
from bot.toolset import Toolset
from bot.turn import Persona
from bot.upstreams import Upstream
from config.settings import Settings
from tests.fakes import RecordingStore

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
        return build_history(WHO, store=RecordingStore(), model=failover, toolset=toolset, most=most)._room()


def test_the_persona_is_the_operators(tmp_path: Path) -> None:
    (tmp_path / "fox.md").write_text("你是狐狸。", "utf-8")
    settings = Settings(bot_persona=tmp_path / "fox.md", bot_name="小狐")
    assert persona(settings) == Persona("你是狐狸。", "小狐")


@pytest.mark.parametrize("window", [None, 1_000_000])
def test_a_large_window_leaves_all_the_operator_allows(window: int | None) -> None:
    assert room(window) == pytest.approx(5000, rel=0.01)


def test_a_small_window_leaves_less_and_a_larger_one_more() -> None:
    assert 0 < room(4000) < room(6000) < 5000
