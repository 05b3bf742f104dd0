from __future__ import annotations

from bot.conversation.approval.approvals import Approvers
from bot.policy.approval import NO_OWNER
from frostagent.types.suspension import Deny, Pending
from tests.bot.desk import request
from tests.cases import each_case


@each_case("approvers", [Approvers(frozenset({999})), Approvers(terminal=print)])
async def test_who_is_asked_answers_later(approvers: Approvers) -> None:
    assert await approvers.approve(request()) == Pending(600)


async def test_nobody_cannot_be_asked_at_all() -> None:
    assert await Approvers().approve(request()) == Deny(NO_OWNER)
