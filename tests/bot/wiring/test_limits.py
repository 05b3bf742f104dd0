from __future__ import annotations

from bot.policy.budget import Limits
from bot.wiring.limits import limits_of
from config.settings import Settings


def test_a_question_may_take_what_the_settings_say() -> None:
    settings = Settings(bot_run_requests=7, bot_run_tokens=8, bot_max_sends=9)
    assert limits_of(settings) == Limits(requests=7, tokens=8, sends=9)
    assert limits_of(Settings()) == Limits(requests=24, tokens=0, sends=5)
