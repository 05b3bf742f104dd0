from __future__ import annotations

from dataclasses import astuple

from bot.policy.fallback_replies import ENGLISH_NOTICES, NO_CONCLUSION, Notices
from bot.prompt.echo_detection import KnownTexts
from bot.prompt.wording_zh import ZH
from tests.cases import each_case


@each_case("notices", [ENGLISH_NOTICES, ZH.notices])
def test_who_says_a_notice_back_has_said_nothing(notices: Notices) -> None:
    told = KnownTexts(*astuple(notices))
    assert all(map(told.has, astuple(notices)))
    assert not told.has("It will rain tomorrow. 明天有雨，记得带伞。")


def test_in_chinese_people_read_that_there_is_no_conclusion_in_chinese() -> None:
    assert ZH.notices.no_conclusion == NO_CONCLUSION
    assert len({*astuple(ENGLISH_NOTICES), *astuple(ZH.notices)}) == 6
