from __future__ import annotations

from bot.wiring.mouth import question_in
from tests.bot.hall import hall
from tests.fakes import GROUP, said, words


async def test_a_draft_knows_the_question_of_its_turn_while_that_goes_on() -> None:
    async with hall(words("ok")) as house:
        await house.take(said("hi", message_id="1"))
        assert question_in(house.ground.live)(GROUP, "t1") is None
