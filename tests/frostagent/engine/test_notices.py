from __future__ import annotations

from bot.prompt.wording_zh import ZH
from frostagent.engine.known_texts import KnownTexts
from frostagent.engine.notices import ENGLISH_NOTICES, Notices
from tests.cases import each_case
from tests.fallback_lines import NO_CONCLUSION


def lines(notices: Notices) -> tuple[str, str, str]:
    return notices.last_step, notices.empty, notices.no_conclusion


@each_case("notices", [ENGLISH_NOTICES, ZH.notices])
def test_who_says_a_notice_back_has_said_nothing(notices: Notices) -> None:
    told = KnownTexts(*lines(notices))
    assert all(map(told.has, lines(notices)))
    assert not told.has("It will rain tomorrow. 明天有雨，记得带伞。")


def test_in_chinese_people_read_that_there_is_no_conclusion_in_chinese() -> None:
    assert ZH.notices.no_conclusion == NO_CONCLUSION
    assert len({*lines(ENGLISH_NOTICES), *lines(ZH.notices)}) == 6
