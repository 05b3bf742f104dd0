from __future__ import annotations

from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.group_admin import JoinRequest


def test_a_petition_is_about_the_place_that_would_come_of_it_and_outlives_the_process() -> None:
    friend = JoinRequest(account=1, kind="friend", user_id=5, flag="f")
    invite = JoinRequest(account=1, kind="invite", user_id=5, group_id=7, flag="g", number=2)
    assert (friend.where, invite.where) == (Conversation(1, "private", 5), Conversation(1, "group", 7))
    assert codec.read(JoinRequest, codec.write(invite)) == invite
