from __future__ import annotations

import pytest

from adapters.simulator.actions import REQUEST_ACTIONS, befriend, invite, lapse
from adapters.simulator.call import Gesture, Params
from adapters.simulator.wire import CallRefused
from adapters.simulator.world import Person, World

ZHANG = Person(29001, "老张")


def test_a_request_is_answered_once_by_its_flag() -> None:
    world = World(nickname="bot")
    asked, invited = befriend(world, ZHANG, "hi"), invite(world, ZHANG, 77)
    assert (asked["request_type"], invited["sub_type"], invited["group_id"]) == ("friend", "invite", 77)
    yes = Params({"flag": asked["flag"], "approve": True})
    assert REQUEST_ACTIONS["set_friend_add_request"](world, yes).gesture == Gesture("friend", user_id=ZHANG.user_id)
    assert world.friends == {ZHANG.user_id: ZHANG}
    no = Params({"flag": invited["flag"], "approve": False, "sub_type": "invite"})
    refusal = Gesture("refusal", user_id=ZHANG.user_id, group_id=77)
    assert REQUEST_ACTIONS["set_group_add_request"](world, no).gesture == refusal
    assert world.groups == {}
    for action, params in (("set_friend_add_request", yes), ("set_group_add_request", no)):
        with pytest.raises(CallRefused):
            REQUEST_ACTIONS[action](world, params)


def test_what_qq_has_forgotten_is_refused() -> None:
    world = World(nickname="bot")
    flag = invite(world, ZHANG, 77)["flag"]
    lapse(world)
    with pytest.raises(CallRefused):
        REQUEST_ACTIONS["set_group_add_request"](world, Params({"flag": flag, "approve": True, "sub_type": "invite"}))
