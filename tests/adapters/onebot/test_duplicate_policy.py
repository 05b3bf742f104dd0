"""Two connections for one place."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.onebot.peers import ANSWERS_WITHIN, LATELY, TOLD_AGAIN, DuplicatePolicy


@dataclass
class Older:
    lives: bool = True
    pings: int = 0

    async def is_alive(self, within: float) -> bool:
        assert within == ANSWERS_WITHIN
        self.pings += 1
        return self.lives


async def test_the_first_challenge_is_won_by_the_newer_one_without_a_question() -> None:
    older = Older()
    assert not await DuplicatePolicy().keeps_older("here", older, online=True, now=0.0)
    assert older.pings == 0


async def test_a_second_one_soon_after_is_lost_to_what_lives() -> None:
    policy, older = DuplicatePolicy(), Older()
    kept = [await policy.keeps_older("here", older, online=None, now=now) for now in (0.0, 5.0, 10.0, 10.0 + LATELY)]
    assert kept == [False, True, True, True]  # every challenge counts, also one that was lost


async def test_a_second_one_soon_after_is_won_over_what_is_dead() -> None:
    policy, older = DuplicatePolicy(), Older(lives=False)
    kept = [await policy.keeps_older("here", older, online=None, now=now) for now in (0.0, 5.0)]
    assert kept == [False, False]
    assert older.pings == 1


async def test_what_is_long_ago_counts_no_more_and_places_are_apart() -> None:
    policy, older = DuplicatePolicy(), Older()
    assert not await policy.keeps_older("here", older, online=True, now=0.0)
    assert not await policy.keeps_older("there", older, online=True, now=1.0)
    assert not await policy.keeps_older("here", older, online=True, now=LATELY + 1.0)


async def test_an_account_that_is_offline_makes_room() -> None:
    policy, older = DuplicatePolicy(), Older()
    kept = [await policy.keeps_older("here", older, online=False, now=now) for now in (0.0, 1.0)]
    assert kept == [False, False]
    assert older.pings == 0


def test_a_thing_is_told_once_an_hour() -> None:
    policy = DuplicatePolicy()
    told = [policy.is_news("this", now=now) for now in (0.0, 1.0, TOLD_AGAIN, TOLD_AGAIN + 1.0, TOLD_AGAIN + 2.0)]
    assert told == [True, False, False, True, False]
    assert policy.is_news("that", now=1.0)
