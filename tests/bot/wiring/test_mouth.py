from __future__ import annotations

from typing import Any

from bot.domain.language import Language
from bot.wiring.mouth import owners_tongue, question_in, tells_of_new_groups
from config.settings import Settings
from tests.bot.hall import hall
from tests.cases import each_case
from tests.fakes import GROUP, said, words


async def test_a_draft_knows_the_question_of_its_turn_while_that_goes_on() -> None:
    async with hall(words("ok")) as house:
        await house.take(said("hi", message_id="1"))
        assert question_in(house.ground.live)(GROUP, "t1") is None


@each_case(("owners", "groups", "tells"), [({1}, set(), True), (set(), set(), False), ({1}, {5}, False)])
def test_owners_who_named_no_groups_hear_of_new_ones(owners: set[int], groups: set[int], tells: bool) -> None:
    settings = Settings.model_validate({"bot_owners": owners, "bot_groups": groups, "bot_new_group": "live"})
    assert tells_of_new_groups(settings) is tells


@each_case(("chosen", "tongue"), [("", Language.CHINESE), ("zh", Language.CHINESE), ("en", Language.ENGLISH)])
def test_owners_read_chinese_unless_english_is_set(chosen: Any, tongue: Language) -> None:
    assert owners_tongue(Settings(bot_language=chosen)) is tongue
