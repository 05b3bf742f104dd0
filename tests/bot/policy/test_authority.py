from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.events import Conversation, MessageReceived, Role, Sender
from bot.domain.traits import Audience
from bot.policy.authority import asker_of, authority_of, least, reaches
from tests.fakes import BOT, GROUP, PRIVATE, said

OWNERS = frozenset({999})
EVERYONE, ADMIN, OWNER = Audience


def by(user: int, role: Role = "member") -> MessageReceived:
    return said("words", user=user, role=role)


def test_authorities_have_an_order() -> None:
    assert [[reaches(has, needs) for needs in Audience] for has in Audience] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_nobody_takes_nothing_away() -> None:
    assert least(()) is OWNER
    assert least((OWNER, EVERYONE, ADMIN)) is EVERYONE


@pytest.mark.parametrize(
    ("sender", "where", "authority"),
    [
        (Sender(999), PRIVATE, OWNER),
        (Sender(5, role="admin"), GROUP, ADMIN),
        (Sender(5, role="owner"), GROUP, ADMIN),
        (Sender(5, role="owner"), PRIVATE, EVERYONE),
        (Sender(5, nickname="主人", role="member"), GROUP, EVERYONE),
        (Sender(5), GROUP, EVERYONE),
    ],
)
def test_authority_comes_from_settings_and_from_qq(sender: Sender, where: Conversation, authority: Audience) -> None:
    assert authority_of(sender, where=where, owners=OWNERS) is authority


def test_who_asks_alone_keeps_all_of_it() -> None:
    asker = asker_of(by(999), owners=OWNERS)
    assert (asker.user_id, asker.is_owner, asker.authority, asker.overheard) == (999, True, OWNER, OWNER)


@pytest.mark.parametrize(
    ("quoted", "authority"),
    [(by(5), EVERYONE), (by(5, "admin"), ADMIN), (by(999), OWNER), (by(BOT), OWNER)],
)
def test_a_quote_leaves_what_its_sender_has_and_the_bot_is_nobody(quoted: MessageReceived, authority: Audience) -> None:
    assert asker_of(by(999), owners=OWNERS, quoted=quoted).authority is authority


def test_a_forward_leaves_nothing_whoever_its_words_are_said_to_be_from() -> None:
    assert asker_of(by(999), owners=OWNERS, quoted=by(999), forwarded=(by(999),)).authority is EVERYONE


def test_what_was_overheard_is_told_apart() -> None:
    asker = asker_of(by(999), owners=OWNERS, overheard=(by(999), by(5, "admin")))
    assert (asker.authority, asker.overheard) == (OWNER, ADMIN)


def test_the_own_chatter_of_who_asks_takes_nothing_away_from_him() -> None:
    message = by(5, "admin")
    asker = asker_of(message, owners=OWNERS, overheard=(replace(message, message_id="other"),))
    assert asker.overheard is ADMIN
