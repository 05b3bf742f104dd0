"""What the world knows and remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.simulator.wire import CallRefused, text
from adapters.simulator.world import Person, World, demo_world, stable_number


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
