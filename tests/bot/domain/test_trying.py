from __future__ import annotations

from bot.domain.trying import BOT, TriedLine


def test_a_line_is_the_bots_a_members_or_nobodys() -> None:
    assert [TriedLine(who, "x").is_ours for who in (BOT, "user1", "")] == [True, False, False]
