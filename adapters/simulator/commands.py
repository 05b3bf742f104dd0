"""Lines that begin with `!`: what a person at the chat lets go wrong, and what is said about it."""

from __future__ import annotations

import re

from adapters.simulator import shared_media
from adapters.simulator.faults import ASKING, Fault, NoFault, parse_fault, parse_number, says_when
from adapters.simulator.incidents import MUTED_FOR
from adapters.simulator.server import ROBOT_ANSWERS, Simulator
from adapters.simulator.shared_media import Node, Nodes
from adapters.simulator.wire import NOT_DONE, CallRefused, Json, text
from adapters.simulator.world import Person

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
            return shared_media.forward(world, talk(deep))
        case ["voice", *said] if said:
            return shared_media.voice(world, "voice.amr", " ".join(said).encode())
        case ["file", name, said]:
            return shared_media.file(world, name, said.encode())
        case ["card", title, *url]:
            return shared_media.card(title, url="".join(url))
        case _:
            return None


def talk(depth: int) -> Nodes:
    """Two people's lines, and the same once more inside, so deep."""
    people = ((20001, "user1"), (20002, "user2"))
    lines = [Node(*people[index % 2], (text(line),)) for index, line in enumerate(TALK)]
    return [*lines, Node(*people[1], talk(depth - 1))] if depth > 1 else lines


MARK = "!"
AHEAD = re.compile(r"\+(\d{1,4})([smhd])")
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

EXPLAINED = {
    Fault.TIMEOUT: "the message arrives, but NapCat answers that QQ did not confirm it",
    Fault.SILENCE: "the message arrives, and is never answered",
    Fault.LOST: "the message does not arrive, and is never answered",
    Fault.REFUSE: "refused, with the words that stand in place of N; `code 100 WORDS` has another"
    " retcode,\n                     `result 110 WORDS` is what QQ itself returned",
    Fault.REFUSE_MENTION: "refused where it mentions somebody; `refuse mention` will do",
    Fault.REFUSE_QUOTE: "refused where it quotes a message; `refuse quote` will do",
    Fault.LATE_FORWARD: "a merged forward arrives, and is answered like one that failed",
    Fault.NO_MESSAGE: "the server has no message that the bot asks for, as one that is quoted",
    Fault.MUTED: "refused as if muted, without a notice (see mute)",
    Fault.NOT_FRIEND: "refused: not a friend",
    Fault.RISK: "the message does not arrive, and is answered like timeout: risk control",
    Fault.TOO_LONG: "refused: too long",
    Fault.BAD_MEDIA: "refused: the file cannot be had",
    Fault.NEXT_CONNECTION: "the message arrives, the sockets close, and the answer comes on the"
    " next one",
    Fault.SLOW: "the message arrives, and is answered after N seconds; also with one of the above",
    Fault.DISORDER: "N answers to calls of any kind are held (0.3 s at most), and come last one"
    " first",
    Fault.DUPLICATE: "an event is told twice",
    Fault.REPEAT: "after the next reconnect the last N events are told again",
    Fault.DEAF: "an event does not come, though the connection stays",
    Fault.RECALL: "the question is recalled N seconds after it was heard; alone: the last one, now",
    Fault.RECONNECT: "every socket closes, we dial again after N seconds; alone: now",
    Fault.DROP: "every socket is cut and none may come for N seconds; alone: now",
}
OTHERS = {
    "back": "a drop is over",
    "mute [SECONDS]": "the bot is muted in the group, and gets the notice",
    "lift": "it is not muted any more",
    "muteall, liftall": "the whole group is muted; is not any more",
    "offline, online": "the account is kicked; logged in again",
    "deaf, hearing": "heartbeats and answers come, events do not; they come again",
    "takeback": "an admin recalls the bot's latest message in the group",
    "otherids on|off": "whether histories tell messages under other ids than events did",
    "otherquotes on|off": "whether quotes in what people say have ids that there are not",
    "selfreport on|off": "whether the bot hears its own messages (message_sent)",
    "robot [TIMES]": "another robot joins, and answers what the bot says in the group so often",
    "poke, typing": "user1 pokes the bot in the group; is typing to it in private",
    "react [EMOJI]": "user1 reacts to the bot's latest message in the group",
    "forward [DEPTH]": "user1 forwards a conversation, one inside the other so deep",
    "voice WORDS": "user1 sends a voice message",
    "file NAME WORDS": "user1 sends a file with these words in it",
    "befriend [WORDS]": "a stranger wants to be the bot's friend",
    "invite GROUP": "user1 invites the bot into a group of that number",
    "card TITLE [URL]": "user1 shares a card",
    "time +AHEAD": "it is so much later from now on: +30s, +5m, +1h, +2d",
    "faults": "what is armed",
    "off": "nothing is armed any more",
}
HEADING = """\
!NAME [N] [next | always | N times | off] lets something go wrong, as in `!slow 3 always`;\
 next goes unsaid.
Each waits until it hits something; of those that hit a send the first one armed goes first."""


def help_text() -> str:
    """All that can be typed, a line each."""
    faults = (f"  {fault:<18} {what}" for fault, what in EXPLAINED.items())
    others = (f"  {name:<18} {what}" for name, what in OTHERS.items())
    return "\n".join([HEADING, *faults, "And at once:", *others])


async def obey(simulator: Simulator, line: str) -> str:
    """Do what a line that begins with `!` says; what to tell the person who typed it, also where it
    says nothing.
    """
    words = line.strip().removeprefix(MARK).strip()
    try:
        return await _obey(simulator, words)
    except (NoFault, CallRefused) as error:
        return f"{MARK}{words}: {error}. Try {MARK}help"


async def _obey(simulator: Simulator, words: str) -> str:
    match words.lower().split():
        case [] | ["help"]:
            return help_text()
        case ["faults"]:
            return describe(simulator)
        case ["off"]:
            simulator.faults.disarm()
            return describe(simulator)
        case ["back"]:
            simulator.sockets.come_back()
            return "sockets may come again"
        case ["mute", *seconds] if len(seconds) < 2:
            lasting = parse_number(seconds[0]) if seconds else MUTED_FOR
            await simulator.incidents.mute(lasting)
            return f"muted for {lasting:g} s"
        case ["lift"]:
            await simulator.incidents.lift()
            return "not muted any more"
        case ["muteall"]:
            await simulator.incidents.mute_all()
            return "everybody is muted"
        case ["liftall"]:
            await simulator.incidents.lift_all()
            return "nobody is muted any more"
        case ["robot", *times] if len(times) < 2:
            often = int(parse_number(times[0])) if times else ROBOT_ANSWERS
            robot = simulator.robots.invite(times=often)
            return f"{robot.name} answers {often} times"
        case ["offline"]:
            await simulator.incidents.go_offline()
            return "the account is offline"
        case ["online"]:
            await simulator.incidents.go_online()
            return "the account is online"
        case ["deaf"]:
            simulator.world.is_deaf = True
            return "events do not come"
        case ["hearing"]:
            simulator.world.is_deaf = False
            return "events come"
        case ["otherids", "on" | "off" as state]:
            simulator.world.renumbers = state == "on"
            return f"histories have {'other' if simulator.world.renumbers else 'the same'} ids"
        case ["otherquotes", "on" | "off" as state]:
            simulator.world.misquotes = state == "on"
            return f"quotes have {'other' if simulator.world.misquotes else 'the same'} ids"
        case ["time", ahead] if found := AHEAD.fullmatch(ahead):
            if simulator.on_travel is None:
                raise CallRefused(NOT_DONE, "the time cannot be changed here")
            simulator.on_travel(int(found[1]) * UNITS[found[2]])
            return f"it is {found[1]}{found[2]} later now"
        case ["selfreport", "on" | "off" as state]:
            simulator.world.reports_self = state == "on"
            return f"own messages are {'' if simulator.world.reports_self else 'not '}reported"
        case _:
            return await act(simulator, words) or await _arm(simulator, words)


async def _arm(simulator: Simulator, words: str) -> str:
    armed = parse_fault(words)
    if armed.fault in ASKING and not says_when(words):
        await simulator.incidents.strike(armed, simulator.last_said)
        return f"{armed.fault}: done"
    simulator.faults.put(armed)
    return str(armed)


def describe(simulator: Simulator) -> str:
    """The armed faults, and every state that is not as it should be."""
    world = simulator.world
    states = {
        "the account is offline": not world.online,
        "sockets are kept away": simulator.sockets.away,
        "events do not come": world.is_deaf,
        "histories have other ids": world.renumbers,
        "quotes have other ids": world.misquotes,
        "own messages are reported": world.reports_self,
    }
    muted = [f"muted in {group_id}" for group_id in world.groups if world.mutes.is_muted(group_id)]
    lines = [
        *map(str, simulator.faults.armed),
        *muted,
        *(state for state, holds in states.items() if holds),
    ]
    return "\n".join(lines) or "nothing is armed"
