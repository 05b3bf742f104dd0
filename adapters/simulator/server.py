"""The simulated OneBot server, for the demo and for tests.

async with Simulator(demo_world()) as simulator:
    url = await simulator.serve()               # the bot connects here, or
    simulator.dial("ws://127.0.0.1:6199/")      # this connects to the bot
    await simulator.wait_connected()
    simulator.faults.arm(Fault.TIMEOUT)         # the next send is delivered, but not confirmed
    await simulator.say("@bot hi")
    (answer,) = await simulator.wait_sent(1)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from adapters.simulator import actions, console, wire
from adapters.simulator.call import Call, CallAnswer, Done, Gesture, SentMessage
from adapters.simulator.faults import ARRIVED, ASKING, REFUSED, SENDING, Armed, Fault, Faults
from adapters.simulator.incidents import Incidents
from adapters.simulator.sockets import ConnectedBot, SimulatedSockets
from adapters.simulator.wire import Json, mention, text
from adapters.simulator.world import Person, Stored, World, event_of, other_id


@dataclass(frozen=True, slots=True)
class CallReply:
    """The result of a call: the reply frame (None: no reply), and what was done.

    The reply is sent after `delay` seconds, or on the `next_connection`. `asked` is the message the
    bot wanted to send; its id is 0 if it is not delivered.
    """

    frame: Json | None
    done: Done = field(default_factory=Done)
    asked: SentMessage | None = None
    delay: float = 0.0
    next_connection: bool = False

    @property
    def in_order(self) -> bool:
        """Whether the reply precedes the events caused by the call, as NapCat usually does."""
        return bool(
            self.frame
            and self.frame["status"] == "ok"
            and not self.delay
            and not self.next_connection
        )


def reply_to(world: World, faults: Faults, text: str | bytes) -> CallReply:
    """Carry out the call in a frame, unless an armed fault prevents it."""
    call = actions.read_call(text)
    if isinstance(call, CallAnswer):
        return CallReply(call.frame)
    if call.action == "get_msg" and (armed := faults.use(Fault.NO_MESSAGE)):
        return CallReply(call.refuse(armed.refusal).frame)
    if call.action not in actions.SENDS:
        answer = actions.perform(world, call)
        return CallReply(answer.frame, answer.done)
    slow = faults.use(Fault.SLOW)
    message = actions.message_in(call)
    segments = message.segments if message is not None else ()
    reply = _send(world, call, faults.use(*SENDING, segments=segments))
    asked = reply.done.sent or message
    return replace(reply, asked=asked, delay=slow.value if slow else 0.0)


def _send(world: World, call: Call, struck: Armed | None) -> CallReply:
    """Deliver a message and reply, as the fault demands."""
    match struck:
        case Armed(fault=Fault.LOST):
            return CallReply(None)
        case Armed(fault=fault) if fault in REFUSED:
            return CallReply(call.refuse(struck.refusal).frame)
        case _:
            answer = actions.perform(world, call)
    reply = CallReply(answer.frame, answer.done)
    if answer.done.sent is None:  # refused without a fault
        return reply
    match struck:
        case Armed(fault=fault) if fault in ARRIVED:
            return replace(reply, frame=call.refuse(struck.refusal).frame)
        case Armed(fault=Fault.SILENCE):
            return replace(reply, frame=None)
        case Armed(fault=Fault.NEXT_CONNECTION):
            return replace(reply, next_connection=True)
        case _:
            return reply


HELD = 0.3  # seconds a reply is held for others to overtake it


@dataclass(frozen=True, slots=True)
class _HeldAnswers:
    """Replies held until there are `size`, then sent in reverse order."""

    size: int
    answers: list[tuple[ConnectedBot, Json]] = field(default_factory=list)


class CallAnswers:
    """Sends replies as the armed faults demand: late, reordered, on another socket."""

    def __init__(self, sockets: SimulatedSockets, faults: Faults) -> None:
        self._sockets = sockets
        self._faults = faults
        self._held: _HeldAnswers | None = None
        self._late: list[Json] = []

    async def give(self, peer: ConnectedBot, reply: CallReply) -> None:
        if reply.frame is None:
            return
        if reply.next_connection:
            self._late.append(reply.frame)
            await self._sockets.reconnect(None)
        elif reply.delay:
            self._sockets.start(self._give_after(reply.delay, peer, reply.frame))
        elif (held := self._held_now()) is not None:
            held.answers.append((peer, reply.frame))
            if len(held.answers) >= held.size:
                await self._release(held)
        else:
            await peer.send(reply.frame)

    async def catch_up(self, peer: ConnectedBot) -> None:
        """Send the replies that waited for this next connection."""
        late, self._late = self._late, []
        for frame in late:
            await peer.send(frame)

    async def _give_after(self, seconds: float, peer: ConnectedBot, frame: Json) -> None:
        await asyncio.sleep(seconds)
        await peer.send(frame)

    def _held_now(self) -> _HeldAnswers | None:
        """The held replies; starts holding if `disorder` was just armed."""
        if self._held is None and (armed := self._faults.use(Fault.DISORDER)):
            self._held = _HeldAnswers(max(2, round(armed.value)))
            self._sockets.start(self._release_after(HELD, self._held))
        return self._held

    async def _release_after(self, seconds: float, held: _HeldAnswers) -> None:
        await asyncio.sleep(seconds)
        await self._release(held)

    async def _release(self, held: _HeldAnswers) -> None:
        if self._held is held:
            self._held = None
            for peer, frame in reversed(held.answers):
                await peer.send(frame)


ROBOT_NAME = "robot2"
ROBOT_PAUSE = 1.0  # seconds until a robot answers
ROBOT_ANSWERS = 20
ROBOT_ANSWER = " 你说得对"


class SimulatedRobots:
    """Robots that join groups; each answers a limited number of messages there, mentioning the
    account. `on_said` receives speaker and text.
    """

    def __init__(
        self, world: World, sockets: SimulatedSockets, push: Callable[[Json], Awaitable[bool]]
    ) -> None:
        self._world = world
        self._sockets = sockets
        self._push = push
        self.on_said: Callable[[str, str], None] | None = None
        self._left: dict[tuple[int, int], int] = {}  # answers left, by group and robot

    def invite(
        self, name: str = ROBOT_NAME, *, times: int = ROBOT_ANSWERS, group_id: int | None = None
    ) -> Person:
        """Add a robot, an ordinary account. Raises CallRefused for an unknown group."""
        place = self._world.group(group_id).group_id
        robot = self._world.join(place, name)
        self._left[place, robot.user_id] = times
        return robot

    def react_to(self, message: SentMessage) -> None:
        """The account said something: robots with answers left reply a little later."""
        for (group_id, user_id), left in self._left.items():
            if group_id == message.group_id and left:
                self._left[group_id, user_id] = left - 1
                self._sockets.start(self._answer(group_id, user_id))

    async def _answer(self, group_id: int, user_id: int) -> None:
        await asyncio.sleep(ROBOT_PAUSE)
        world = self._world
        said = [mention(world.self_id), text(ROBOT_ANSWER)]
        if self.on_said is not None:
            self.on_said(world.groups[group_id].members[user_id].name, ROBOT_ANSWER.strip())
        stored = world.post(said, author=user_id, group_id=group_id)
        await self._push(event_of(world, stored))


DEADLINE = 5.0  # default seconds that a test waits for something
REPEATABLE = 1000  # events kept for `repeat`


class Simulator:
    """A OneBot v11 server around one `World`, running within its `async with`.

    `token` is required from a connecting bot; `heartbeat` and `reconnect` are in seconds (NapCat's
    defaults). `on_sent` is called with each delivered message of the bot, in order, before the bot
    receives the confirmation; `on_gesture` with each gesture. `sockets` cuts and restores the
    connections.

    `on_travel` puts the time forward by so many seconds, where that can be done.

    `sent` is every message the bot asked us to send, `delivered` those people got, whatever the bot
    was told; both in order. `missed` are the ids of what people said while nobody listened,
    `last_said` is that of the last thing they said.
    """

    def __init__(
        self,
        world: World,
        *,
        token: str = "",
        heartbeat: float = 30.0,
        reconnect: float = 5.0,
        on_sent: Callable[[SentMessage], None] | None = None,
        on_gesture: Callable[[Gesture], None] | None = None,
        on_travel: Callable[[float], None] | None = None,
    ) -> None:
        self.world = world
        self.on_travel = on_travel
        self.faults = Faults()
        self.sent: list[SentMessage] = []
        self.delivered: list[SentMessage] = []
        self.missed: list[int] = []
        self.last_said = 0
        self._on_sent = on_sent
        self._on_gesture = on_gesture
        self.sockets = SimulatedSockets(
            world,
            token=token,
            heartbeat=heartbeat,
            reconnect=reconnect,
            take=self._take,
            came=self._welcome,
            changed=self._tell,
        )
        self._changed = asyncio.Event()
        self._events: deque[Json] = deque(maxlen=REPEATABLE)
        self._answers = CallAnswers(self.sockets, self.faults)
        self.incidents = Incidents(world, self.sockets, self.push)
        self.robots = SimulatedRobots(world, self.sockets, self.push)

    async def __aenter__(self) -> Self:
        await self.sockets.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.sockets.__aexit__(kind, error, trace)

    # --- sockets ----------------------------------------------------------------------------------

    async def serve(self, *, host: str = "127.0.0.1", port: int = 0) -> str:
        """Let the bot connect here (forward mode). Returns the URL. Port 0 takes any free one."""
        return await self.sockets.serve(host, port)

    def dial(
        self, url: str, *, token: str = "", roles: Sequence[str] = ("Universal",), says: str = ""
    ) -> None:
        """Connect to the bot (reverse mode), and reconnect until it answers and whenever the socket
        breaks.

        `roles=("Event", "Api")` opens two sockets, as go-cqhttp does; `says` is another X-Self-ID,
        as onebots sends.
        """
        self.sockets.dial(url, token, roles=roles, says=says)

    async def _welcome(self, peer: ConnectedBot) -> None:
        if peer.hears and self._events and (armed := self.faults.use(Fault.REPEAT)):
            for event in list(self._events)[-max(1, round(armed.value)) :]:
                await peer.send(event)
        await self._answers.catch_up(peer)

    async def _take(self, peer: ConnectedBot, frame: str | bytes) -> None:
        """Answer one call. Everything between a call and its reply passes here."""
        reply = reply_to(self.world, self.faults, frame)
        self._note(reply)
        if reply.in_order:
            await self._answers.give(peer, reply)
        for event in reply.done.events:
            await self.push(event)
        if not reply.in_order:
            await self._answers.give(peer, reply)

    def _note(self, reply: CallReply) -> None:
        if reply.asked is not None:
            self.sent.append(reply.asked)
        if (sent := reply.done.sent) is not None:
            self.delivered.append(sent)
            if self._on_sent is not None:
                self._on_sent(sent)
            self.robots.react_to(sent)
        if (gesture := reply.done.gesture) is not None and self._on_gesture is not None:
            self._on_gesture(gesture)
        self._tell()

    async def push(self, event: Json) -> bool:
        """Send an event to every socket for events. Returns whether there is one.

        Otherwise it is lost, as it is while the account is offline or deaf; the fault `deaf` keeps
        it for `repeat`.
        """
        listening = [peer for peer in self.sockets.peers if peer.hears]
        if not listening or not self.world.online or self.world.is_deaf:
            return False
        self._events.append(event)
        if self.faults.use(Fault.DEAF):
            return False
        copies = 2 if self.faults.use(Fault.DUPLICATE) else 1
        for peer in listening * copies:
            await peer.send(event)
        return True

    async def say(
        self,
        message: str | Sequence[Json],
        *,
        group_id: int | None = None,
        user_id: int | None = None,
    ) -> int:
        """Say something in a group as a person. Returns the message id.

        In a string, `@name` mentions the member of that name and `@bot` the account; segments are
        used as they are. The default group is the first, the default speaker its first member
        besides the account; a new number joins. Raises CallRefused for an unknown group.
        """
        group = self.world.group(group_id)
        if user_id is None:
            user_id = next(number for number in group.members if number != self.world.self_id)
        self.world.join(group.group_id, str(user_id), user_id=user_id)
        people = self.world.people(group.group_id)
        segments = console.spoken(message, people, self.world.self_id)
        stored = self.world.post(segments, author=user_id, group_id=group.group_id)
        return await self._spread(stored)

    async def say_private(
        self, message: str | Sequence[Json], *, user_id: int, via_group: int = 0
    ) -> int:
        """Say something in private, as a friend or through a group. Returns the message id."""
        segments = [wire.text(message)] if isinstance(message, str) else message
        stored = self.world.post(segments, author=user_id, peer_id=user_id, via_group=via_group)
        return await self._spread(stored)

    async def _spread(self, stored: Stored) -> int:
        self.last_said = stored.message_id
        event = event_of(self.world, stored)
        if self.world.misquotes:
            event = _misquoting(event)
        if not await self.push(event):
            self.missed.append(stored.message_id)
        for fault in ASKING:
            if armed := self.faults.use(fault):
                await self.incidents.strike(armed, stored.message_id)
        return stored.message_id

    async def say_line(self, line: str, *, group_id: int | None = None) -> int | None:
        """Speak a console line as the member it names. Returns None for an empty line."""
        group = self.world.group(group_id)
        spoken = console.parse_line(line, self.world.people(group.group_id), self.world.self_id)
        if not spoken.segments:
            return None
        speaker = (
            self.world.join(group.group_id, spoken.speaker).user_id if spoken.speaker else None
        )
        return await self.say(spoken.segments, group_id=group.group_id, user_id=speaker)

    # --- waiting
    # -----------------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """Number of sockets for events."""
        return sum(peer.hears for peer in self.sockets.peers)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_until(self, condition: Callable[[], bool], *, timeout: float = DEADLINE) -> None:
        """Wait until the condition holds, checking on every change. Raises TimeoutError."""
        async with asyncio.timeout(timeout):
            while not condition():
                await self._changed.wait()

    async def wait_connected(self, count: int = 1, *, timeout: float = DEADLINE) -> None:
        """Wait for this many sockets for events. Raises TimeoutError."""
        await self.wait_until(lambda: self.connected >= count, timeout=timeout)

    async def wait_sent(self, count: int, *, timeout: float = DEADLINE) -> list[SentMessage]:
        """Wait for this many messages of the bot, and return all. Raises TimeoutError."""
        await self.wait_until(lambda: len(self.sent) >= count, timeout=timeout)
        return list(self.sent)

    async def wait_delivered(self, count: int, *, timeout: float = DEADLINE) -> list[SentMessage]:
        """Wait for this many delivered messages, and return all. Raises TimeoutError."""
        await self.wait_until(lambda: len(self.delivered) >= count, timeout=timeout)
        return list(self.delivered)


def _misquoting(event: Json) -> Json:
    """The event with unknown ids in its quotes."""
    segments = [
        {"type": "reply", "data": {"id": str(-other_id(int(segment["data"]["id"])))}}
        if segment["type"] == "reply"
        else segment
        for segment in event["message"]
    ]
    return {**event, "message": segments, "raw_message": wire.format_cq(segments)}
