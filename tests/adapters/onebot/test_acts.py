from __future__ import annotations

from adapters.onebot.protocol import tells_of_failure, write_act, write_admission
from bot.core.group_admin import JoinRequest, Mute, Pin, Recall, SetCard
from tests.fakes import GROUP


def test_each_act_is_the_action_that_servers_have() -> None:
    group = {"group_id": GROUP.session_id}
    assert [write_act(GROUP, act) for act in (Mute(5, 60), SetCard(5, "x"), Recall("7"), Pin("7"))] == [
        ("set_group_ban", {**group, "user_id": 5, "duration": 60}),
        ("set_group_card", {**group, "user_id": 5, "card": "x"}),
        ("delete_msg", {"message_id": 7}),
        ("set_essence_msg", {"message_id": 7}),
    ]


def test_a_friend_request_and_an_invite_are_answered_by_their_flag() -> None:
    friend = JoinRequest(account=1, kind="friend", user_id=5, flag="f|1")
    invite = JoinRequest(account=1, kind="invite", user_id=5, group_id=7, flag="g|1")
    assert write_admission(friend, granted=True, reason="") == (
        "set_friend_add_request",
        {"flag": "f|1", "approve": True},
    )
    assert write_admission(invite, granted=False, reason="不认识") == (
        "set_group_add_request",
        {"flag": "g|1", "approve": False, "sub_type": "invite", "reason": "不认识"},
    )
    assert write_admission(invite, granted=True, reason="") == (
        "set_group_add_request",
        {"flag": "g|1", "approve": True, "sub_type": "invite"},
    )


def test_what_servers_answer_unchecked_is_known_by_their_names() -> None:
    actions = ("set_friend_add_request", "set_group_add_request", "set_group_ban", "set_group_card", "delete_msg")
    told = {
        name: [tells_of_failure(name, action) for action in actions]
        for name in ("NapCat.Onebot 4.18", "LLOneBot 8.1.7", "Lagrange.OneBot 0.0.3", "go-cqhttp v1.2.0", "")
    }
    everything = [True] * 5
    assert told == {
        "NapCat.Onebot 4.18": [False, False, True, True, True],
        "LLOneBot 8.1.7": everything,
        "Lagrange.OneBot 0.0.3": [True, True, False, False, True],
        "go-cqhttp v1.2.0": everything,
        "": everything,
    }
