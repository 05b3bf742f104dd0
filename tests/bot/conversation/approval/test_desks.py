from __future__ import annotations

from bot.conversation.approval.desks import Desks
from bot.domain.events import MessageReceived
from bot.policy.approval import words_of
from tests.fakes import said


class Waiting:
    def __init__(self, word: str) -> None:
        self.word, self.heard = word, 0

    def take(self, message: MessageReceived) -> bool:
        self.heard += 1
        return words_of(message) == self.word

    async def take_later(self, message: MessageReceived) -> bool:
        return self.take(message)


async def test_the_first_desk_that_waited_for_a_word_has_it() -> None:
    first, second = Waiting("yes"), Waiting("no")
    desks = Desks(first, second)
    assert desks.take(said("yes"))
    assert await desks.take_later(said("yes"))
    assert (first.heard, second.heard) == (2, 0)
    assert desks.take(said("no"))
    assert await desks.take_later(said("no"))
    assert (first.heard, second.heard) == (4, 2)
    assert not desks.take(said("perhaps"))
    assert not await desks.take_later(said("perhaps"))
