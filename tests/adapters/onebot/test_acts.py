from __future__ import annotations

from adapters.onebot.acts import write_act
from bot.domain.group_acts import Mute, Pin, Recall, SetCard
from tests.fakes import GROUP


def test_each_act_is_the_action_that_servers_have() -> None:
    group = {"group_id": GROUP.session_id}
    assert [write_act(GROUP, act) for act in (Mute(5, 60), SetCard(5, "x"), Recall("7"), Pin("7"))] == [
        ("set_group_ban", {**group, "user_id": 5, "duration": 60}),
        ("set_group_card", {**group, "user_id": 5, "card": "x"}),
        ("delete_msg", {"message_id": 7}),
        ("set_essence_msg", {"message_id": 7}),
    ]
