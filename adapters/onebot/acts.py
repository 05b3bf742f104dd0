"""Acts in a group, and answers to who wants to be a friend or have the bot in one, as
servers want it (onebot.md 5): the standard's actions, and for 精华 the one that NapCat, LLBot,
Lagrange and go-cqhttp have.
"""

from __future__ import annotations

from typing import Final, assert_never

from adapters.onebot.protocol import write_id
from bot.domain.events import Conversation
from bot.domain.group_admin import GroupAct, Mute, Petition, Pin, Recall, SetCard


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
    answer: dict[str, object] = {"flag": petition.flag, "approve": granted}
    if petition.kind == "friend":
        return "set_friend_add_request", answer
    if reason:  # an empty one would become an empty postscript, of which NapCat warns
        answer["reason"] = reason
    return "set_group_add_request", {**answer, "sub_type": "invite"}


UNCHECKED: Final = (
    ("NapCat", ("set_friend_add_request", "set_group_add_request")),
    ("Lagrange", ("set_group_ban", "set_group_card")),
)
"""Servers that answer "ok" to these whatever QQ says (NapCat: but for a flag it does not know)."""


def tells_of_failure(server: str, action: str) -> bool:
    """Whether a server of that name would say that QQ refused what it was asked to do."""
    return not any(server.startswith(name) and action in actions for name, actions in UNCHECKED)
