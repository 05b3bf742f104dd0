from __future__ import annotations

import json
from pathlib import Path

from bot.memory.own_limits import OwnLimits
from bot.policy.limits import OwnCap
from bot.wiring.console import LIMIT_SETTINGS, limits_shown
from config.settings import Settings
from tests.fakes import GROUP, ManualClock, RecordingStore

WORDS = Path("adapters/console/words")


async def test_each_limit_is_told_with_the_setting_and_what_owners_set_with_the_command() -> None:
    store, clock = RecordingStore(), ManualClock()
    own = OwnLimits(store=store, choices=store, clock=clock)
    await own.start()
    await own.keep(GROUP, OwnCap(cost=2.5))
    own.filed = lambda: {5252: OwnCap(cost=0.5, tokens=0), 5353: OwnCap(cost=0.0), 5454: OwnCap(cost=0.0, tokens=0)}
    await own.keep(777, OwnCap(tokens=200_000))
    settings = Settings(bot_day_cost_all=3.5, bot_day_tokens_user=1_500_000, bot_group_rate=None)
    told = {(one.setting, one.whose): one.value for one in limits_shown(settings, own)}
    assert told["BOT_USER_RATE", ""] == "6 / 60 s"
    assert told["BOT_GROUP_RATE", ""] == ""
    assert told["BOT_DAY_COST_ALL", ""] == "$3.5"
    assert told["BOT_DAY_TOKENS_USER", ""] == "1.5M"
    assert told["/limit", str(GROUP)] == "$2.5"
    assert told["GROUPS_FILE", "5252"] == "$0.5, ∞ token"
    assert told["GROUPS_FILE", "5353"] == "$∞"  # its tokens are as usual
    assert told["GROUPS_FILE", "5454"] == ""  # which the page calls no limit
    assert told["/limit", "777"] == "200.0k token"


def test_the_console_has_words_for_each_in_both_languages() -> None:
    for language in ("en", "zh"):
        words = json.loads((WORDS / f"{language}.json").read_text("utf-8"))
        assert not [name for name in LIMIT_SETTINGS if f"health.limit.{name.upper()}" not in words], language
