"""Somebody's words are his own lines, and those of his that he quotes."""

from __future__ import annotations

from msgspec.structs import replace

from bot.chat.wake_classifier import BlockedWordFilter
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.segments import Mention, Picture, Segment
from frostagent.types.speech import Quote, Text
from tests.fakes import BOT, GROUP, said


class Loan:
    """A list of one word."""

    def stops(self, text: str) -> int:
        return 2 if "loan" in text else 0

    def blocks_answer(self, text: str) -> int:
        return 0


KNOWN = {
    "own": replace(said("a lo", user=5), message_id="own"),
    "other": replace(said("a loan", user=6), message_id="other"),
}


def known(where: Conversation, message_id: str) -> MessageReceived | None:
    assert where == GROUP
    return KNOWN.get(message_id)


def name_of(where: Conversation, user_id: int) -> str:
    assert where == GROUP
    return {6: "a loan shark", 7: "Ann", BOT: "loan"}.get(user_id, "")


def quoting(message_id: str, text: str) -> MessageReceived:
    return said((Quote(message_id), Text(text)), user=5)


def test_lines_and_quotations_of_ones_own_are_looked_at_together_and_nobody_elses() -> None:
    blocked_words = BlockedWordFilter(Loan(), known, name_of)
    assert blocked_words.stops([said("lo", user=5), said("an", user=5)])
    assert blocked_words.stops([quoting("own", "an, please")])
    assert not blocked_words.stops([quoting("own", "please")])
    assert not blocked_words.stops([quoting("other", "is that true?")])
    assert not blocked_words.stops([quoting("long ago", "an")])
    assert not blocked_words.stops([])


def test_without_a_list_nothing_is_looked_at() -> None:
    assert not BlockedWordFilter(None, known, name_of).stops([said("a loan")])


def test_names_and_captions_count_as_the_prompt_shows_them() -> None:
    blocked_words = BlockedWordFilter(Loan(), known, name_of)
    shown: list[tuple[bool, tuple[Segment, ...]]] = [
        (True, (Text("look"), Picture(summary="[a loan]"))),
        (True, (Mention(6), Text("hi"))),  # by the name that is known
        (True, (Mention(9, "loan"), Text("hi"))),  # by the one the server tells
        (False, (Mention(7, "loan"), Text("hi"))),  # Ann's card was another once
        (False, (Mention(BOT, "loan"), Text("hi"))),
        (True, (Text("lo"), Picture(summary="[x]"), Text("an"))),  # no caption parts a word
        (True, (Text("lo"), Picture(summary="an"))),
        (False, (Text("look"), Picture(summary="[x]"))),
    ]
    assert [blocked_words.stops([said(segments, user=5)]) for _, segments in shown] == [stops for stops, _ in shown]
