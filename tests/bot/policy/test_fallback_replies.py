from __future__ import annotations

from bot.core.actions import SendMessage
from bot.policy.fallback_replies import (
    LOST,
    OURS,
    SORRY,
    UNANSWERED,
    apology,
    in_question_language,
    is_apology,
    is_fallback_reply,
)
from frostagent.types.speech import Quote, Text
from tests.fakes import GROUP, PRIVATE, said


def test_a_line_in_a_group_quotes_whom_it_is_for() -> None:
    assert apology(said("hi", message_id="5"), SORRY) == SendMessage(GROUP, (Quote("5"), Text(SORRY.zh)))
    for nobodys in ("", "0"):
        assert apology(said("hi", message_id=nobodys), SORRY) == SendMessage(GROUP, (Text(SORRY.zh),))
    assert apology(said("hi", message_id="5", where=PRIVATE), LOST) == SendMessage(PRIVATE, (Text(LOST.zh),))


def test_the_lines_that_ask_to_ask_again_are_known_again() -> None:
    question = said("hi")
    assert is_apology(apology(question, SORRY))
    assert is_apology(apology(question, LOST))
    assert not is_apology(SendMessage(GROUP, (Text("an answer"),)))


def test_a_line_is_in_the_language_of_the_question_or_of_who_asked() -> None:
    def told(text: str, name: str) -> str:
        return in_question_language(SORRY, said(text, name=name))

    assert told("What is the weather like?", "小明") == SORRY.en
    assert told("今天天气怎么样", "Ann") == SORRY.zh
    assert (told("ok?", "Ann"), told("ok?", "小明")) == (SORRY.en, SORRY.zh)
    link = "https://www.example.com/video/BV1xx411"
    assert (told(link, "小明"), told(link, "Ann")) == (SORRY.zh, SORRY.en)
    assert is_apology(apology(said("What is the weather like?"), LOST))


def test_our_lines_are_known_in_both_languages_whatever_run_they_name() -> None:
    assert all(is_fallback_reply(line.format(trace="cwr74ez5")) for line in OURS)
    assert not is_fallback_reply(f"{UNANSWERED.fill(trace='cwr74ez5').zh} Sunny.")
