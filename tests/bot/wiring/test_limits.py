from __future__ import annotations

from contextlib import nullcontext

import pytest

from adapters.offline.server import OfflineModel
from bot.app import open_service
from bot.domain.errors import DaySpent
from bot.domain.model_messages import Usage
from bot.memory.spending import Spending
from bot.policy.budget import Limits
from bot.policy.day_limits import Cap, DayLimits
from bot.wiring.limits import build_meter, limits_of
from config.settings import Settings
from tests.bot.memory.till import Till
from tests.bot.test_app import settings
from tests.bot.wiring.test_models import SHOWN, hello, open_house
from tests.fakes import CountingIds


def test_a_question_may_take_what_the_settings_say() -> None:
    given = Settings(bot_run_requests=7, bot_run_tokens=8, bot_max_sends=9)
    assert limits_of(given) == Limits(requests=7, tokens=8, sends=9)
    assert limits_of(Settings()) == Limits(requests=24, tokens=0, sends=5)


async def test_turns_and_requests_are_written_down_together_once_somebody_has_a_limit() -> None:
    async with OfflineModel() as model:
        for tokens in (0, 1000):
            async with open_service(settings(model.base_url, bot_day_tokens_all=tokens)) as service:
                assert service.rooms.answering.ledger._reserves() is bool(tokens)


class Full(Spending):
    """Others have taken all there was, whatever was known when it was reserved."""

    def refuses(self, _turn_id: str, _number: int) -> bool:
        return True


async def test_what_the_sums_of_a_day_refuse_no_meter_grants() -> None:
    for kind in (Spending, Full):
        till = Till(DayLimits(all=Cap(tokens=100)), kind=kind)
        meter = build_meter(till.store, till.spending, clock=till.clock, ids=CountingIds(), count=print)
        with pytest.raises(DaySpent) if kind is Full else nullcontext():
            assert await meter.reserve("m", lambda: Usage(1))


async def test_pictures_go_to_the_main_model_where_a_cheap_one_or_a_personas_is_blind() -> None:
    for main, named, answers in (
        ("gpt-4o", "blind", "gpt-4o blind"),
        ("gpt-4o", "gpt-4o-mini", "gpt-4o-mini gpt-4o-mini"),
        ("blind", "too", "too too"),
    ):
        async with open_house((hello,), llm_model=main) as house:
            other = house.models.named(named)
            assert [await house.ask(SHOWN, model=other), await house.ask(model=other)] == ["hello", "hello"]
            assert " ".join(asked.body["model"] for asked in house.vendors[0].asked) == answers
