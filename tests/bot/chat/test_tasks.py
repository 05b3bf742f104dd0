from __future__ import annotations

from bot.chat.tasks import Task
from bot.core.conversation import Conversation
from bot.policy.wake import Wake
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE, said


@each_case(
    ("where", "told", "lost", "may"),
    [
        (GROUP, True, False, False),
        (PRIVATE, True, False, True),
        (PRIVATE, False, False, False),
        (GROUP, True, True, True),
    ],
)
def test_words_that_quote_nothing_may_answer_what_is_older_than_the_process_in_private_or_lost(
    where: Conversation, told: bool, lost: bool, may: bool
) -> None:
    assert Task(said("hi", where=where), Wake("name"), 0.0, told=told, lost=lost).may_be_answered is may


def test_who_called_is_the_latest_line_that_did() -> None:
    call, aside = said("hi"), said("you know", at=False)
    assert Task(aside, Wake("mention"), 0.0, lines=(call,), beside=(aside,)).called == call
    assert Task(call, Wake("mention"), 0.0, lines=(aside,), beside=(aside,)).called == call
