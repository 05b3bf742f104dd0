from __future__ import annotations

from bot.domain.segments import Text
from tests.bot.hall import hall
from tests.fakes import said, words


async def test_both_ways_of_a_message_know_the_same_owner_replies() -> None:
    """An owner's word is taken at the door, and once more where what it quotes had to be looked up."""
    async with hall(words("ok")) as house:
        assert house.way._word is house.lane._word
        await house.take(said("hi", message_id="1"))
        assert [action.segments[-1] for action in house.transport.sent] == [Text("ok")]
