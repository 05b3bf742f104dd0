"""Where the account may not speak, and what it is told of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.simulator.wire import CallRefused
from adapters.simulator.world import Person, World

Recorded = Callable[[str], dict[str, Any]]


def test_a_mute_has_the_recorded_keys_and_ends_by_itself(recorded: Recorded) -> None:
    time = 1000.0
    world = World(now=lambda: time)
    world.add_group(1, members=(Person(5, "x", role="admin"),))
    notice = world.mutes.mute(1, 59.5)
    assert notice.keys() == recorded("notice_group__nc_group_ban_bot").keys()
    assert (notice["duration"], notice["operator_id"], notice["user_id"]) == (60, 5, 10001)
    assert world.mutes.is_muted(1)
    time += 59.5
    assert not world.mutes.is_muted(1)


def test_a_mute_is_lifted(world: World) -> None:
    world.mutes.mute(4343, 60)
    notice = world.mutes.lift(4343)
    assert (notice["sub_type"], notice["duration"], notice["operator_id"]) == ("lift_ban", 0, 0)
    assert not world.mutes.is_muted(4343)


def test_a_whole_group_is_muted_but_for_those_in_charge(world: World) -> None:
    world.add_group(1, role="admin")
    notice = world.mutes.mute_all(4242)
    assert (notice["sub_type"], notice["user_id"], notice["duration"]) == ("ban", 0, -1)
    world.mutes.mute_all(1)
    assert [world.mutes.is_muted(group_id) for group_id in (4242, 1)] == [True, False]
    notice = world.mutes.lift_all(4242)
    assert (notice["sub_type"], notice["user_id"], notice["duration"]) == ("lift_ban", 0, 0)
    assert not world.mutes.is_muted(4242)


def test_an_unknown_group_is_refused(world: World) -> None:
    mutes = world.mutes
    for act in (mutes.lift, mutes.mute_all, mutes.lift_all, lambda group: mutes.mute(group, 1)):
        with pytest.raises(CallRefused, match="群聊 1 不存在"):
            act(1)
