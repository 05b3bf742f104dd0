from __future__ import annotations

from adapters.offline.server import OfflineModel
from bot.app import open_service
from bot.policy.budget import Limits
from bot.wiring.limits import limits_of
from config.settings import Settings
from tests.bot.test_app import settings


def test_a_question_may_take_what_the_settings_say() -> None:
    given = Settings(bot_run_requests=7, bot_run_tokens=8, bot_max_sends=9)
    assert limits_of(given) == Limits(requests=7, tokens=8, sends=9)
    assert limits_of(Settings()) == Limits(requests=24, tokens=0, sends=5)


async def test_turns_and_requests_are_written_down_together_once_somebody_has_a_limit() -> None:
    async with OfflineModel() as model:
        for tokens in (0, 1000):
            async with open_service(settings(model.base_url, bot_day_tokens_all=tokens)) as service:
                assert service.rooms.answering.ledger._reserves() is bool(tokens)
