from __future__ import annotations

from bot.domain.chat import NOTED, AssistantMessage, UserMessage
from bot.prompt import notes
from bot.prompt.frames import Frames


def test_a_note_is_a_users_message_under_a_heading_of_ours() -> None:
    assert notes.note("x") == UserMessage("[系统记录]\n  x")


def test_a_note_on_delivery_says_how_much_had_arrived() -> None:
    assert notes.delivery_note(notes.QUEUED) == "你上面的回答当时连不上 QQ，排队等待发送，可能没有送达"
    assert notes.delivery_note(notes.REFUSED.format(reason="muted"), arrived=2) == (
        "你上面的回答前 2 条已送达，之后的没有送达: muted"
    )


def test_a_round_without_anything_has_something_between_its_question_and_the_next() -> None:
    assert notes.unanswered("x", ()) == (AssistantMessage(NOTED), notes.note("x"))
    assert notes.unanswered("x", [AssistantMessage("a")]) == (notes.note("x"),)


def test_no_note_and_no_stand_in_can_be_said_back() -> None:
    fates = (notes.REFUSED.format(reason="no"), notes.UNCONFIRMED, notes.QUEUED)
    said = [notes.delivery_note(fate, arrived=arrived) for fate in fates for arrived in (0, 3)]
    said += [notes.UNANSWERED, notes.BROKEN_OFF, notes.ALL_SAID, NOTED, *notes.LEGACY]
    for words in said:
        assert Frames().cut(words) == ""
        assert Frames().cut(notes.note(words).text) == ""
