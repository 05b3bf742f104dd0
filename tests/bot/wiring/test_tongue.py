"""Owners read Chinese unless the operator wants English."""

from __future__ import annotations

from typing import Any

from bot.domain.tongue import Tongue
from bot.wiring.mouth import owners_tongue
from config.settings import Settings
from tests.cases import each_case


@each_case(("chosen", "tongue"), [("", Tongue.CHINESE), ("zh", Tongue.CHINESE), ("en", Tongue.ENGLISH)])
def test_owners_read_chinese_unless_english_is_set(chosen: Any, tongue: Tongue) -> None:
    assert owners_tongue(Settings(bot_language=chosen)) is tongue
