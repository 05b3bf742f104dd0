"""Acts in a group, and answers to who wants to be a friend or have the bot in one, as
servers want it (onebot.md 5): the standard's actions, and for 精华 the one that NapCat, LLBot,
Lagrange and go-cqhttp have.
"""

from __future__ import annotations

from typing import assert_never

from adapters.onebot.protocol import write_id
from bot.domain.events import Conversation
from bot.domain.group_acts import GroupAct, Mute, Pin, Recall, SetCard
from bot.domain.petitions import Petition


def write_act(group: Conversation, act: GroupAct) -> tuple[str, dict[str, object]]:
    """The action's name on the wire, and its parameters."""
    place = {"group_id": group.session_id}
    match act:
        case Mute(user_id=user_id, seconds=seconds):
            return "set_group_ban", {**place, "user_id": user_id, "duration": seconds}
        case SetCard(user_id=user_id, card=card):
            return "set_group_card", {**place, "user_id": user_id, "card": card}
        case Recall(message_id=message_id):
            return "delete_msg", {"message_id": write_id(message_id)}
        case Pin(message_id=message_id):
            return "set_essence_msg", {"message_id": write_id(message_id)}
        case _:
            assert_never(act)


def write_admission(
    petition: Petition, *, granted: bool, reason: str
) -> tuple[str, dict[str, object]]:
    """The same for the answer to a friend request or an invite (onebot.md 3.6)."""
    answer = {"flag": petition.flag, "approve": granted}
    if petition.kind == "friend":
        return "set_friend_add_request", answer
    return "set_group_add_request", {**answer, "sub_type": "invite", "reason": reason}
