"""What is remembered, and under which ids."""

from __future__ import annotations

import pytest

from adapters.simulator.wire import CallRefused, text
from adapters.simulator.world import World, demo_world


def test_message_ids_are_positive_and_do_not_repeat(world: World) -> None:
    ids = [world.post([text("x")], author=20001, group_id=4242).message_id for _ in range(500)]
    assert len(set(ids)) == 500
    assert all(0 < message_id < 2**31 for message_id in ids)


def test_ids_differ_between_runs() -> None:
    yesterday, today = demo_world(now=lambda: 1.0), demo_world(now=lambda: 86_401.0)
    first, second = (world.post([text("x")], author=20001, group_id=4242) for world in (yesterday, today))
    assert first.message_id != second.message_id


def test_only_the_last_messages_are_remembered() -> None:
    world = World(remembered=2, now=lambda: 0.0)
    world.add_group(1)
    first, *rest = (world.post([text("x")], author=10001, group_id=1) for _ in range(3))
    assert world.messages.history(group_id=1) == rest
    with pytest.raises(CallRefused, match="消息不存在"):
        world.messages.find(first.message_id)


def test_histories_do_not_mix(world: World) -> None:
    here = world.post([text("group")], author=20001, group_id=4242)
    alone = world.post([text("private")], author=20001, peer_id=20001)
    assert world.messages.history(group_id=4242) == [here]
    assert world.messages.history(peer_id=20001) == [alone]
    assert world.messages.history(peer_id=20002) == []
