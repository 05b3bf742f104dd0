"""Somebody's words are his own lines, and those of his that he quotes."""

from __future__ import annotations

from msgspec.structs import replace

from bot.conversation.intake.listed import Listed
from bot.domain.events import Conversation, MessageReceived
from bot.domain.segments import Quote, Text
from tests.fakes import GROUP, said


class Loan:
    """A list of one word."""

    def stops(self, text: str) -> int:
        return 2 if "loan" in text else 0

    def withholds(self, text: str) -> int:
        return 0


KNOWN = {
    "own": replace(said("a lo", user=5), message_id="own"),
    "other": replace(said("a loan", user=6), message_id="other"),
}


def known(where: Conversation, message_id: str) -> MessageReceived | None:
    assert where == GROUP
    return KNOWN.get(message_id)


def quoting(message_id: str, text: str) -> MessageReceived:
    return said((Quote(message_id), Text(text)), user=5)


def test_lines_and_quotations_of_ones_own_are_looked_at_together_and_nobody_elses() -> None:
    listed = Listed(Loan(), known)
    assert listed.stops([said("lo", user=5), said("an", user=5)])
    assert listed.stops([quoting("own", "an, please")])
    assert not listed.stops([quoting("own", "please")])
    assert not listed.stops([quoting("other", "is that true?")])
    assert not listed.stops([quoting("long ago", "an")])
    assert not listed.stops([])


def test_without_a_list_nothing_is_looked_at() -> None:
    assert not Listed(None, known).stops([said("a loan")])
