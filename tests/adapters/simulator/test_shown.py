"""Messages as NapCat shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapters.simulator.wire import mention, text
from adapters.simulator.world import World, event_of


def test_a_group_message_has_the_recorded_keys(world: World, recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded("message_group__nc_group_at_only")
    event = event_of(world, world.post([mention(10001), text(" ")], author=20001, group_id=4242))
    assert event.keys() == real.keys()
    assert event["sender"].keys() == real["sender"].keys()
    assert event["raw_message"] == "[CQ:at,qq=10001]"


def test_a_private_message_has_the_recorded_keys(world: World, recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded("message_private__nc_private_text")
    event = event_of(world, world.post([text("你好")], author=20001, peer_id=20001))
    assert event.keys() == real.keys()
    assert (event["sub_type"], event["target_id"], event["sender"]["nickname"]) == ("friend", 20001, "小明")


def test_a_temporary_session_has_the_recorded_keys(world: World, recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded("message_private__nc_private_temp_unknown_group")
    event = event_of(world, world.post([text("hi")], author=20002, peer_id=20002, via_group=4242))
    assert event.keys() == real.keys()
    assert (event["sub_type"], event["group_id"], event["sender"]["nickname"]) == ("group", 4242, "临时会话")


def test_an_own_message_has_the_recorded_keys(world: World, recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded("message_sent__nc_sent_from_phone")
    assert event_of(world, world.post([text("hi")], author=10001, group_id=4242)).keys() == real.keys()
