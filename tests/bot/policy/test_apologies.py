from __future__ import annotations

from bot.domain.actions import SendMessage
from bot.domain.segments import Quote, Text
from bot.policy.apologies import LOST, SORRY, apology, is_apology
from tests.fakes import GROUP, PRIVATE, said


def test_a_line_in_a_group_quotes_whom_it_is_for() -> None:
    assert apology(said("hi", message_id="5"), SORRY) == SendMessage(GROUP, (Quote("5"), Text(SORRY)))
    for nobodys in ("", "0"):
        assert apology(said("hi", message_id=nobodys), SORRY) == SendMessage(GROUP, (Text(SORRY),))
    assert apology(said("hi", message_id="5", where=PRIVATE), LOST) == SendMessage(PRIVATE, (Text(LOST),))


def test_the_lines_that_ask_to_ask_again_are_known_again() -> None:
    question = said("hi")
    assert is_apology(apology(question, SORRY))
    assert is_apology(apology(question, LOST))
    assert not is_apology(SendMessage(GROUP, (Text("an answer"),)))
