"""Reactions, pokes and typing, asked for as the bot asks for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.simulator.call import Gesture
from adapters.simulator.wire import Json, text
from adapters.simulator.world import World
from tests.adapters.simulator.test_actions import ask, refused, told


@pytest.mark.parametrize("action", ["send_poke", "group_poke", "friend_poke"])
def test_the_bot_hears_of_its_own_poke(world: World, action: str) -> None:
    done = ask(world, action, user_id=20002, group_id=4242).done
    (event,) = done.events
    assert (event["user_id"], event["target_id"], event["group_id"]) == (10001, 20002, 4242)
    assert done.gesture == Gesture("poke", user_id=20002, group_id=4242)
    (event,) = ask(world, action, user_id=20001).done.events
    assert "group_id" not in event


def test_a_reaction_is_made_and_taken_back(world: World, recorded: Callable[[str], Json]) -> None:
    message_id = world.post([text("hi")], author=20001, group_id=4242).message_id
    made = Gesture("reaction", 20001, 4242, message_id, "76")
    liked = ask(world, "set_msg_emoji_like", message_id=message_id, emoji_id="76")
    assert liked.frame["data"] == recorded("api_ok__nc_emoji_like")["data"]
    assert liked.done.gesture == made
    for action, more in (("set_msg_emoji_like", {"set": False}), ("unset_msg_emoji_like", {})):
        back = ask(world, action, message_id=message_id, emoji_id="76", **more).done.gesture
        assert back == Gesture("reaction", 20001, 4242, message_id, "76", taken_back=True)
    assert refused(world, "set_msg_emoji_like", message_id=message_id)[0] == 1400


def test_lagrange_has_its_own_reaction(world: World) -> None:
    message_id = world.post([text("hi")], author=20001, group_id=4242).message_id
    asked = {"group_id": 4242, "message_id": message_id, "code": "76", "is_add": True}
    assert refused(world, "set_group_reaction", **asked)[0] == 1404
    world.unsupported.clear()
    assert ask(world, "set_group_reaction", **asked).done.gesture == Gesture("reaction", 20001, 4242, message_id, "76")


def test_typing_is_seen(world: World) -> None:
    assert told(world, "set_input_status", user_id=20001, event_type=1)["result"] == 0
    done = ask(world, "set_input_status", user_id=20001, event_type=1).done
    assert done.gesture == Gesture("typing", user_id=20001)
