"""Who wants to be the account's friend, or has invited it, and what it answers."""

from __future__ import annotations

from typing import Any

from adapters.simulator.call import Action, Done, Gesture, Params
from adapters.simulator.people import Person
from adapters.simulator.wire import NOT_DONE, CallRefused, Json
from adapters.simulator.world import World


def befriend(world: World, person: Person, comment: str) -> Json:
    """Somebody asks to be a friend: the event of it."""
    return _asked(world, person, request_type="friend", comment=comment)


def invite(world: World, person: Person, group_id: int) -> Json:
    """Somebody invites the account into a group that it is not in: the event of it."""
    more = {"group_id": group_id, "sub_type": "invite", "comment": ""}
    return _asked(world, person, request_type="group", **more)


def _asked(world: World, person: Person, **fields: Any) -> Json:
    flag = str(1_776_500_000 + len(world.petitions))
    world.petitions[flag] = (person, int(fields.get("group_id", 0)))
    return {
        "time": int(world.now()),
        "self_id": world.self_id,
        "post_type": "request",
        "user_id": person.user_id,
        "flag": flag,
        **fields,
    }


def lapse(world: World) -> None:
    """QQ forgets all that was asked so far."""
    world.petitions = dict.fromkeys(world.petitions)


def set_friend_add_request(world: World, params: Params) -> Done:
    person, _ = _answered(world, params)
    if not params.flag("approve"):
        return Done(gesture=Gesture("refusal", user_id=person.user_id))
    world.add_friend(person)
    return Done(gesture=Gesture("friend", user_id=person.user_id))


def set_group_add_request(world: World, params: Params) -> Done:
    person, group_id = _answered(world, params)
    if params.get("sub_type") != "invite" or not group_id:
        raise CallRefused(NOT_DONE, "no such invite")
    if not params.flag("approve"):
        return Done(gesture=Gesture("refusal", user_id=person.user_id, group_id=group_id))
    world.add_group(group_id, members=[person])
    return Done(gesture=Gesture("joined", user_id=person.user_id, group_id=group_id))


def _answered(world: World, params: Params) -> tuple[Person, int]:
    """Who asked, and for which group; QQ takes one answer."""
    flag = str(params.get("flag"))
    if (asked := world.petitions.get(flag)) is None:
        raise CallRefused(NOT_DONE, "请求不存在或已过期")
    world.petitions[flag] = None
    return asked


ACTIONS: dict[str, Action] = {
    "set_friend_add_request": set_friend_add_request,
    "set_group_add_request": set_group_add_request,
}
