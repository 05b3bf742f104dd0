"""The acts of admins in a group: mutes, cards, messages of note. Refused as QQ refuses it."""

from __future__ import annotations

from dataclasses import replace

from adapters.simulator.call import Action, Done, Gesture, Params
from adapters.simulator.people import Person
from adapters.simulator.wire import NOT_DONE, CallRefused
from adapters.simulator.world import World

RANKS = {"member": 1, "admin": 2, "owner": 3}


def set_group_ban(world: World, params: Params) -> Done:
    """Nobody is muted by whom he is not below."""
    group, person = _target(world, params)
    seconds = params.number("duration", 1800)
    _above(world, group, person)
    return Done(gesture=Gesture("mute", user_id=person.user_id, group_id=group, seconds=seconds))


def set_group_card(world: World, params: Params) -> Done:
    group, person = _target(world, params)
    if person.user_id != world.self_id:
        _above(world, group, person)
    card = str(params.get("card") or "")
    world.group(group).members[person.user_id] = replace(person, card=card)
    return Done(gesture=Gesture("card", user_id=person.user_id, group_id=group))


def set_essence_msg(world: World, params: Params) -> Done:
    stored = world.messages.find(params.number("message_id"))
    group = stored.group_id or 0
    if RANKS[world.member(group, world.self_id).role] < RANKS["admin"]:
        raise CallRefused(NOT_DONE, "没有权限")
    return Done(gesture=Gesture("pin", group_id=group, message_id=stored.message_id))


def _target(world: World, params: Params) -> tuple[int, Person]:
    group = world.group(params.number("group_id")).group_id
    return group, world.member(group, params.number("user_id"))


def _above(world: World, group: int, person: Person) -> None:
    own = RANKS[world.member(group, world.self_id).role]
    if own < RANKS["admin"] or RANKS.get(person.role, 1) >= own:
        raise CallRefused(NOT_DONE, "没有权限")


ACTIONS: dict[str, Action] = {
    "set_group_ban": set_group_ban,
    "set_group_card": set_group_card,
    "set_essence_msg": set_essence_msg,
}
