"""Doings of user1 at the chat beside speaking: gestures, things that are shared, invites."""

from __future__ import annotations

from adapters.simulator import shares
from adapters.simulator.faults import parse_number
from adapters.simulator.people import Person
from adapters.simulator.server import Simulator
from adapters.simulator.shares import Node, Nodes
from adapters.simulator.wire import NOT_DONE, CallRefused, Json, text

THUMB = "76"
STRANGER = Person(29001, "路人")
DEEPEST = 9  # forwards inside one another
TALK = ("周六去爬山吗", "去，几点", "八点，山门口见")


async def act(simulator: Simulator, words: str) -> str:
    """Do it; what to tell, empty where the words mean something else. Raises Refusal where it
    cannot be done.
    """
    world = simulator.world
    group = world.group()
    user_id = next(number for number in group.members if number != world.self_id)
    match words.split():
        case ["poke"]:
            await simulator.incidents.poke(user_id=user_id, group_id=group.group_id)
            return "poked"
        case ["typing"]:
            await simulator.incidents.type(user_id=user_id)
            return "typing"
        case ["takeback"]:
            await simulator.incidents.recall(_latest_own(simulator), operator_id=user_id)
            return "recalled"
        case ["react", *emoji] if len(emoji) < 2:
            latest, chosen = _latest_own(simulator), (*emoji, THUMB)[0]
            await simulator.incidents.react(latest, chosen, user_id=user_id)
            return f"reacted with {chosen}"
        case ["befriend", *said]:
            await simulator.incidents.befriend(STRANGER, " ".join(said))
            return f"{STRANGER.user_id} asked"
        case ["invite", number] if number.isdecimal():
            await simulator.incidents.invite(group.members[user_id], int(number))
            return "invited"
        case _ if (shared := share(simulator, words)) is not None:
            await simulator.say([shared], user_id=user_id)
            return "shared"
        case _:
            return ""


def _latest_own(simulator: Simulator) -> int:
    """The id of the bot's latest message in the group. Raises Refusal where it has said nothing."""
    group = simulator.world.group()
    own = [sent for sent in simulator.delivered if sent.group_id == group.group_id]
    if not own:
        raise CallRefused(NOT_DONE, "the bot has said nothing")
    return own[-1].message_id


def share(simulator: Simulator, words: str) -> Json | None:
    """The thing these words share, as a segment; None where they share nothing."""
    world = simulator.world
    match words.split(maxsplit=2):
        case ["forward", *depth] if len(depth) < 2:
            deep = min(DEEPEST, int(parse_number(depth[0]))) if depth else 1
            return shares.forward(world, talk(deep))
        case ["voice", *said] if said:
            return shares.voice(world, "voice.amr", " ".join(said).encode())
        case ["file", name, said]:
            return shares.file(world, name, said.encode())
        case ["card", title, *url]:
            return shares.card(title, url="".join(url))
        case _:
            return None


def talk(depth: int) -> Nodes:
    """Two people's lines, and the same once more inside, so deep."""
    people = ((20001, "user1"), (20002, "user2"))
    lines = [Node(*people[index % 2], (text(line),)) for index, line in enumerate(TALK)]
    return [*lines, Node(*people[1], talk(depth - 1))] if depth > 1 else lines
