from __future__ import annotations

from bot.domain.events import Connected
from bot.domain.segments import Quote
from tests.bot.hall import hall
from tests.fakes import GROUP, said, words


async def test_the_parts_of_the_way_are_those_of_one_bot() -> None:
    """A second account is judged as the bot's own, and what is seen by one stage is known to all."""
    async with hall(words("ok")) as house:
        await house.take(Connected(self_id=20002, time=0.0), said("hi", user=20002, message_id="1"))
        await house.take(said("hi", message_id="2"), said("hi", message_id="2"))
        assert [action.segments[0] for action in house.transport.sent] == [Quote("2")]
        assert house.door.duplicates == 1
        assert house.seen.knows(said("hi", message_id="1"))
        house.places.connected(GROUP.platform_id)
        assert [where for where, _ in house.arrived[-1].heard] == [GROUP]
