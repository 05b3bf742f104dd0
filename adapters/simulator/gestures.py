"""The actions without words: reactions to messages, pokes, typing."""

from __future__ import annotations

from adapters.simulator import wire
from adapters.simulator.call import Action, Done, Gesture, Params
from adapters.simulator.wire import BAD_REQUEST, CallRefused
from adapters.simulator.world import World

RESULT = {"result": 0, "errMsg": ""}


def set_msg_emoji_like(world: World, params: Params) -> Done:
    """A reaction, or with `set` false one taken back."""
    taken_back = params.get("set") in (False, "false")
    return _react(world, params, emoji="emoji_id", taken_back=taken_back)


def unset_msg_emoji_like(world: World, params: Params) -> Done:
    """LLBot's name for taking one back."""
    return _react(world, params, emoji="emoji_id", taken_back=True)


def set_group_reaction(world: World, params: Params) -> Done:
    """A reaction as Lagrange has it."""
    world.group(params.number("group_id"))
    taken_back = params.get("is_add") in (False, "false")
    return _react(world, params, emoji="code", taken_back=taken_back)


def _react(world: World, params: Params, *, emoji: str, taken_back: bool) -> Done:
    stored = world.messages.find(params.number("message_id"))
    if not params.has(emoji):
        raise CallRefused(BAD_REQUEST, f"参数 {emoji} 缺失或不正确")
    gesture = Gesture(
        "reaction",
        user_id=stored.author,
        group_id=stored.group_id,
        message_id=stored.message_id,
        emoji_id=str(params.get(emoji)),
        taken_back=taken_back,
    )
    return Done(RESULT, gesture=gesture)


def send_poke(world: World, params: Params) -> Done:
    """The account is told of its own poke like everybody else."""
    target = params.number("user_id")
    group_id = world.group(params.number("group_id")).group_id if params.has("group_id") else None
    event = wire.poke(
        world.self_id, world.now(), user_id=world.self_id, target_id=target, group_id=group_id
    )
    return Done(events=(event,), gesture=Gesture("poke", user_id=target, group_id=group_id))


def set_input_status(_world: World, params: Params) -> Done:
    """The friend sees that the account is typing."""
    return Done(RESULT, gesture=Gesture("typing", user_id=params.number("user_id")))


ACTIONS: dict[str, Action] = {
    "set_msg_emoji_like": set_msg_emoji_like,
    "unset_msg_emoji_like": unset_msg_emoji_like,
    "set_group_reaction": set_group_reaction,
    "send_poke": send_poke,
    "group_poke": send_poke,
    "friend_poke": send_poke,
    "set_input_status": set_input_status,
}
