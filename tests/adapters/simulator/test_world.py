"""What the world knows and remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.simulator.wire import CallRefused, mention, text
from adapters.simulator.world import Person, World, demo_world, event_of, stable_number


def test_a_recalled_message_is_gone_and_noticed(world: World) -> None:
    stored = world.post([text("oops")], author=20002, group_id=4242)
    notice = world.recall(stored.message_id, operator_id=20001)
    assert (notice["notice_type"], notice["user_id"], notice["operator_id"]) == ("group_recall", 20002, 20001)
    assert not world.messages.knows(stored.message_id)


def test_a_recall_between_friends_has_the_recorded_keys(
    world: World, recorded: Callable[[str], dict[str, Any]]
) -> None:
    stored = world.post([text("oops")], author=20001, peer_id=20001)
    assert world.recall(stored.message_id).keys() == recorded("notice_friend_account__nc_friend_recall").keys()


def test_somebody_new_joins_under_a_lasting_number(world: World) -> None:
    guest = world.join(4242, "阿澈")
    assert guest.user_id == stable_number("阿澈")
    assert world.join(4242, "阿澈") is guest
    assert world.join(4242, "USER2").user_id == 20002
    assert world.join(4343, "nobody", user_id=5).user_id == 5


def test_two_names_never_share_a_number(world: World) -> None:
    world.join(4242, "somebody else", user_id=stable_number("阿澈"))
    assert world.join(4242, "阿澈").user_id == stable_number("阿澈") + 1


def test_people_are_known_by_card_and_nickname(world: World) -> None:
    assert world.people(4242) == {"bot": 10001, "小明": 20001, "明明": 20001, "user2": 20002}


def test_what_is_unknown_is_refused(world: World) -> None:
    with pytest.raises(CallRefused, match="群聊 1 不存在"):
        world.group(1)
    with pytest.raises(CallRefused, match="20001不存在"):
        world.member(4343, 20001)
    assert world.person(1) is None
    assert world.person(10001) == Person(10001, "bot")


def test_forward_ids_do_not_fit_a_double(world: World) -> None:
    forward_id = world.add_forward([])
    assert world.add_forward([]) != forward_id
    assert len(forward_id) == 19


def test_the_demo_world_has_two_people_and_an_account() -> None:
    assert demo_world(nickname="Frost").people(4242) == {"Frost": 10001, "user1": 20001, "user2": 20002}


def test_a_person_without_any_name_goes_by_the_number() -> None:
    assert Person(5, "").name == "5"


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
