from __future__ import annotations

from bot.core.trial_group import BOT, Source, TrialLine


def test_a_line_is_the_bots_a_members_or_nobodys() -> None:
    assert [TrialLine(who, "x").is_ours for who in (BOT, "user1", "")] == [True, False, False]


def test_words_are_of_whoever_said_them_and_of_their_group_and_of_nobody_else() -> None:
    asked = ((7, 0), (0, 42), (7, 43), (8, 42), (8, 0), (0, 43), (0, 0))
    assert [Source(7, 42).is_of(*one) for one in asked] == [True] * 4 + [False] * 3
    assert not Source(7).is_of(0, 0)  # a private chat
