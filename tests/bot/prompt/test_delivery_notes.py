from __future__ import annotations

from bot.prompt import frame_patterns, render
from bot.prompt.frame_removal import FrameRemover
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.wording import Wording
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import NOTED, UserMessage
from tests.cases import each_case


def test_a_note_is_a_users_message_under_a_heading_of_ours() -> None:
    assert render.history_note(ZH, "x") == UserMessage("[系统记录]\n  x")


def test_a_note_on_delivery_says_how_much_had_arrived() -> None:
    assert render.delivery_note(ZH, ZH.about.queued) == "你上面的回答当时连不上 QQ，排队等待发送，可能没有送达"
    assert render.delivery_note(ZH, ZH.about.refused.format(reason="muted"), arrived=2) == (
        "你上面的回答前 2 条已送达，之后的没有送达: muted"
    )
    assert render.delivery_note(EN, EN.about.refused.format(reason="muted"), arrived=2) == (
        "Your answer above arrived in 2 messages, and the rest was not delivered: muted"
    )


@each_case("words", WORDINGS)
def test_no_note_and_no_stand_in_can_be_said_back(words: Wording) -> None:
    about = words.about
    fates = (about.refused.format(reason="no"), about.unconfirmed, about.queued)
    said = [render.delivery_note(words, fate, arrived=arrived) for fate in fates for arrived in (0, 3)]
    said += [about.unanswered, about.broken_off, render.ALL_SAID, NOTED, *frame_patterns.STAND_INS]
    for what in said:
        assert FrameRemover().cut(what) == ""
        assert FrameRemover().cut(render.history_note(words, what).text) == ""
