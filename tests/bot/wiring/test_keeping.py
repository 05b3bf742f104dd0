from __future__ import annotations

from bot.domain.model_messages import SystemMessage
from bot.domain.tool import tool
from bot.engine.toolset import Toolset
from bot.memory.personas import Persona
from bot.runtime.clock import SystemClock
from bot.wiring.keeping import around_of, patience_with


def test_what_stands_before_every_conversation_is_the_persona_the_longest_rules_and_all_tools() -> None:
    @tool
    def look() -> str:
        """Look."""
        return ""

    around = around_of(Persona("你是狐狸。", "小狐"), Toolset([look], clock=SystemClock()))
    (system,) = around.messages
    assert isinstance(system, SystemMessage)
    assert system.text.startswith("你是狐狸。\n\n关于这个聊天\n- 你是 QQ 上的 小狐。")
    assert [spec.name for spec in around.tools] == ["look"]


def test_a_quiet_request_may_take_as_long_as_the_model_may_to_begin_and_what_it_needs_to_write() -> None:
    assert [patience_with(first_token, writing=60) for first_token in (60, 900, 0)] == [120, 960, 3660]
