from __future__ import annotations

import pytest

from bot.chat.context_builder import history_room_of, longest_head, longest_head_of_all
from bot.memory.personas import Cast, Persona
from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.toolset import Toolset
from frostagent.models.failover import Failover
from frostagent.models.upstreams import Upstream
from frostagent.testing.scripted_model import ScriptedModel
from frostagent.types.messages import SystemMessage
from frostagent.types.tools import tool
from tests.cases import each_case

WHO = Persona("你是霜。", "霜")


@tool
def look() -> str:
    """Look."""
    return ""


def room(window: int | None, *, most: int = 5000) -> float:
    """How many tokens of a conversation are told, with one tool, by a model of this window."""
    with ScriptedModel() as model:
        failover = Failover([Upstream(model, window=window)], clock=SystemClock(), ids=RandomIds())
        return history_room_of(failover, lambda: longest_head(WHO, Toolset([look])), most=most)()


@each_case("window", [None, 1_000_000])
def test_a_large_window_leaves_all_the_operator_allows(window: int | None) -> None:
    assert room(window) == pytest.approx(5000, rel=0.01)


def test_a_small_window_leaves_less_and_a_larger_one_more() -> None:
    assert 0 < room(4000) < room(6000) < 5000


def test_what_stands_before_every_conversation_is_the_persona_the_longest_rules_and_all_tools() -> None:
    head = longest_head(Persona("你是狐狸。", "小狐"), Toolset([look]))
    (system,) = head.messages
    assert isinstance(system, SystemMessage)
    assert system.text.startswith("你是狐狸。\n\n关于这个聊天\n- 你是 QQ 上的 小狐。")
    assert [spec.name for spec in head.tools] == ["look"]


def test_the_longest_of_all_is_that_of_the_persona_with_the_most_words() -> None:
    cast = Cast(WHO, others={"fox": Persona("你是狐狸。" * 50, "小狐"), "owl": Persona("你是猫头鹰。", "鸮")})
    toolset = Toolset([look])
    assert longest_head_of_all(cast, toolset) == longest_head(cast.others["fox"], toolset)
