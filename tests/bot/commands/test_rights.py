from __future__ import annotations

from bot.commands.commands import may_use
from bot.domain.events import Conversation
from bot.domain.run import Asker
from bot.domain.traits import Audience
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE


@each_case(
    ("asker", "where", "mine"),
    [
        (Asker(1), GROUP, {Audience.EVERYONE}),
        (Asker(1, role="admin"), GROUP, {Audience.EVERYONE, Audience.GROUP_ADMIN}),
        (Asker(1, role="owner"), GROUP, {Audience.EVERYONE, Audience.GROUP_ADMIN}),
        (Asker(1), PRIVATE, {Audience.EVERYONE, Audience.GROUP_ADMIN}),
        (Asker(1, is_owner=True), GROUP, set(Audience)),
        (Asker(1, is_owner=True), PRIVATE, set(Audience)),
    ],
)
def test_rights_come_from_roles_and_numbers(asker: Asker, where: Conversation, mine: set[Audience]) -> None:
    assert {audience for audience in Audience if may_use(asker, audience, where=where)} == mine
