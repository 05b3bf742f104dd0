from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.simulator.actions import ADMIN_ACTIONS
from adapters.simulator.call import Gesture, Params
from adapters.simulator.wire import CallRefused
from adapters.simulator.world import Person, World
from bot.core.events import Role

GROUP, MING = 4242, 20002


def world_where(role: Role, other: Role = "member") -> World:
    world = World(nickname="bot")
    world.add_group(GROUP, "g")
    members = world.group(GROUP).members
    members[world.self_id] = replace(members[world.self_id], role=role)
    members[MING] = Person(MING, "小明", role=other)
    return world


def test_an_admin_mutes_and_names_members_only() -> None:
    world, whom = world_where("admin"), {"group_id": GROUP, "user_id": MING}
    done = ADMIN_ACTIONS["set_group_ban"](world, Params({**whom, "duration": 60}))
    assert done.gesture == Gesture("mute", user_id=MING, group_id=GROUP, seconds=60)
    ADMIN_ACTIONS["set_group_card"](world, Params({**whom, "card": "静"}))
    assert world.group(GROUP).members[MING].card == "静"
    refused: list[tuple[Role, Role]] = [("member", "member"), ("admin", "admin"), ("admin", "owner")]
    for bot, other in refused:
        for action in ("set_group_ban", "set_group_card"):
            with pytest.raises(CallRefused):
                ADMIN_ACTIONS[action](world_where(bot, other), Params(whom))


def test_only_an_admin_keeps_a_message() -> None:
    roles: list[Role] = ["member", "admin"]
    for role in roles:
        world = world_where(role)
        stored = world.post([{"type": "text", "data": {"text": "早"}}], author=MING, group_id=GROUP)
        params = Params({"message_id": stored.message_id})
        if role == "member":
            with pytest.raises(CallRefused):
                ADMIN_ACTIONS["set_essence_msg"](world, params)
        else:
            gesture = ADMIN_ACTIONS["set_essence_msg"](world, params).gesture
            assert gesture == Gesture("pin", group_id=GROUP, message_id=stored.message_id)
