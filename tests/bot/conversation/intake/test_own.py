from __future__ import annotations

from bot.conversation.intake.own import OwnMessages
from bot.domain.events import MessageSent
from bot.domain.segments import Text
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP


async def test_what_the_account_said_elsewhere_is_known_to_whoever_quotes_it() -> None:
    async with hall() as house:
        said = MessageSent(self_id=BOT, time=0.0, conversation=GROUP, message_id="88", segments=(Text("by hand"),))
        OwnMessages(house.history, house.outbox).take(said)
        known = house.history.known(GROUP, "88")
        assert known is not None
        assert known.is_own
