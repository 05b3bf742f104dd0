"""The simulated OneBot server: what the bot is told and answered, and what people and tests do with
it.

async with Simulator(demo_world()) as simulator:
    url = await simulator.serve()               # the bot dials us, or
    simulator.dial("ws://127.0.0.1:6199/")      # we dial the bot
    await simulator.wait_connected()
    simulator.faults.arm(Fault.TIMEOUT)         # the next send is delivered, but not confirmed
    await simulator.say("@bot hi")
    (answer,) = await simulator.wait_sent(1)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from adapters.simulator import console, wire
from adapters.simulator.call import SentMessage
from adapters.simulator.faults import ASKING, Armed, Fault, Faults
from adapters.simulator.messages import Stored
from adapters.simulator.peer import Peer
from adapters.simulator.replies import Reply, reply_to
from adapters.simulator.shown import event_of
from adapters.simulator.sockets import Sockets
from adapters.simulator.wire import NOT_DONE, Json, Refusal
from adapters.simulator.world import World

DEADLINE = 5.0  # seconds a test waits for something by default
REPEATABLE = 1000  # events remembered for `repeat`
MUTED_FOR = 600.0  # seconds
HELD = 0.3  # seconds an answer is held for others to overtake it


@dataclass(frozen=True, slots=True)
class Batch:
    """Answers held until there are so many, to be sent last one first."""

    size: int
    answers: list[tuple[Peer, Json]] = field(default_factory=list)


class Simulator:
    """A OneBot v11 server around one `World`; it lives as long as its `async with`.

    `token` is what a dialling bot must show; `heartbeat` and `reconnect` are in seconds (NapCat's
    defaults). `on_sent` is called with each message of the bot that people get, in order, before
    the bot hears that it was sent.

    `sent` is every message the bot asked us to send, `delivered` those people got, whatever the bot
    was told; both in order. `missed` are the ids of what people said while nobody listened.
    """

    def __init__(
        self,
        world: World,
        *,
        token: str = "",
        heartbeat: float = 30.0,
        reconnect: float = 5.0,
        on_sent: Callable[[SentMessage], None] | None = None,
    ) -> None:
        self.world = world
        self.faults = Faults()
        self.sent: list[SentMessage] = []
        self.delivered: list[SentMessage] = []
        self.missed: list[int] = []
        self._on_sent = on_sent
        self._sockets = Sockets(
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
        self._batch: Batch | None = None
        self._late: list[Json] = []
        self._last_said = 0

    async def __aenter__(self) -> Self:
        await self._sockets.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._sockets.__aexit__(kind, error, trace)

    # --- sockets --------------------------------------------------------------------------------------

    async def serve(self, *, host: str = "127.0.0.1", port: int = 0) -> str:
        """Let the bot dial us (forward mode); the url to dial. Port 0 takes any that is free."""
        return await self._sockets.serve(host, port)

    def dial(
        self, url: str, *, token: str = "", roles: Sequence[str] = ("Universal",), says: str = ""
    ) -> None:
        """Dial the bot (reverse mode), again and again until it answers and whenever the socket
        breaks.

        `roles=("Event", "Api")` are two sockets, as go-cqhttp's; `says` is another X-Self-ID, as
        onebots'.
        """
        self._sockets.dial(url, token, roles=roles, says=says)

    async def reconnect(self, seconds: float | None = None) -> None:
        """Close every socket; who dials us may come back at once.

        What we dialled is dialled again after so many seconds (None: as after any loss).
        """
        await self._sockets.reconnect(seconds)

    async def drop(self, seconds: float | None = None) -> None:
        """Cut every socket and let none come for so long (None: until `come_back`), while people go
        on talking.
        """
        await self._sockets.drop(seconds)

    def come_back(self) -> None:
        """End a `drop`."""
        self._sockets.come_back()

    @property
    def away(self) -> bool:
        """Whether a `drop` is on."""
        return self._sockets.away

    @property
    def refused(self) -> list[str]:
        """Why the bot could not be dialled, once for each time."""
        return self._sockets.refused

    async def _welcome(self, peer: Peer) -> None:
        """What waited for the next connection."""
        if peer.hears and self._events and (armed := self.faults.use(Fault.REPEAT)):
            for event in list(self._events)[-max(1, round(armed.value)) :]:
                await peer.send(event)
        late, self._late = self._late, []
        for frame in late:
            await peer.send(frame)

    # --- calls ----------------------------------------------------------------------------------------

    async def _take(self, peer: Peer, frame: str | bytes) -> None:
        """Answer one call. Everything between a call and its answer passes here, and nowhere
        else.
        """
        reply = reply_to(self.world, self.faults, frame)
        self._note(reply)
        if reply.in_order:
            await self._answer(peer, reply)
        for event in reply.done.events:
            await self.push(event)
        if not reply.in_order:
            await self._answer(peer, reply)

    def _note(self, reply: Reply) -> None:
        if reply.asked is not None:
            self.sent.append(reply.asked)
        if (sent := reply.done.sent) is not None:
            self.delivered.append(sent)
            if self._on_sent is not None:
                self._on_sent(sent)
        self._tell()

    async def _answer(self, peer: Peer, reply: Reply) -> None:
        if reply.frame is None:
            return
        if reply.next_connection:
            self._late.append(reply.frame)
            await self.reconnect()
        elif reply.delay:
            self._sockets.start(self._answer_after(reply.delay, peer, reply.frame))
        elif (batch := self._batch_now()) is not None:
            batch.answers.append((peer, reply.frame))
            if len(batch.answers) >= batch.size:
                await self._release(batch)
        else:
            await peer.send(reply.frame)

    async def _answer_after(self, seconds: float, peer: Peer, frame: Json) -> None:
        await asyncio.sleep(seconds)
        await peer.send(frame)

    def _batch_now(self) -> Batch | None:
        """The batch that is being gathered; a new one where none is and `disorder` is armed."""
        if self._batch is None and (armed := self.faults.use(Fault.DISORDER)):
            self._batch = Batch(max(2, round(armed.value)))
            self._sockets.start(self._release_after(HELD, self._batch))
        return self._batch

    async def _release_after(self, seconds: float, batch: Batch) -> None:
        await asyncio.sleep(seconds)
        await self._release(batch)

    async def _release(self, batch: Batch) -> None:
        if self._batch is batch:
            self._batch = None
            for peer, frame in reversed(batch.answers):
                await peer.send(frame)

    # --- what people do -------------------------------------------------------------------------------

    async def push(self, event: Json) -> bool:
        """Send an event to every socket that hears events, and say whether there is one.

        Where there is none it is lost, as it is while the account is offline.
        """
        listening = (
            [peer for peer in self._sockets.peers if peer.hears] if self.world.online else []
        )
        if not listening:
            return False
        self._events.append(event)
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
        """Somebody says something in a group; the id of the message.

        In a string `@name` mentions the member of that name and `@bot` the account; segments are
        taken as they are. The group is the first one unless named, the speaker its first member
        beside the account; a new number joins. Raises Refusal for an unknown group.
        """
        group = self.world.group(self._group_id(group_id))
        if user_id is None:
            user_id = next(number for number in group.members if number != self.world.self_id)
        self.world.join(group.group_id, str(user_id), user_id=user_id)
        people = self.world.people(group.group_id)
        segments = (
            console.parse_mentions(message, people, self.world.self_id)
            if isinstance(message, str)
            else message
        )
        stored = self.world.post(segments, author=user_id, group_id=group.group_id)
        return await self._spread(stored)

    async def say_private(
        self, message: str | Sequence[Json], *, user_id: int, via_group: int = 0
    ) -> int:
        """A friend says something in private, or a stranger in a session through a group; the id of
        the message.
        """
        segments = [wire.text(message)] if isinstance(message, str) else message
        stored = self.world.post(segments, author=user_id, peer_id=user_id, via_group=via_group)
        return await self._spread(stored)

    async def _spread(self, stored: Stored) -> int:
        self._last_said = stored.message_id
        if not await self.push(event_of(self.world, stored)):
            self.missed.append(stored.message_id)
        for fault in ASKING:
            if armed := self.faults.use(fault):
                await self.strike(armed)
        return stored.message_id

    async def say_line(self, line: str, *, group_id: int | None = None) -> int | None:
        """A line of the console becomes a message, spoken by the member it names; None for one that
        says nothing.
        """
        group = self.world.group(self._group_id(group_id))
        spoken = console.parse_line(line, self.world.people(group.group_id), self.world.self_id)
        if not spoken.segments:
            return None
        speaker = (
            self.world.join(group.group_id, spoken.speaker).user_id if spoken.speaker else None
        )
        return await self.say(spoken.segments, group_id=group.group_id, user_id=speaker)

    async def recall(self, message_id: int, *, operator_id: int | None = None) -> None:
        """The author, or whoever is named, takes a message back. Raises Refusal for an unknown
        one.
        """
        await self.push(self.world.recall(message_id, operator_id=operator_id))

    async def strike(self, armed: Armed) -> None:
        """Recall the last thing people said, reconnect or drop: now, or for a recall after so many
        seconds.

        Raises Refusal where there is nothing to recall.
        """
        match armed.fault:
            case Fault.RECALL if armed.value:
                self._sockets.start(self._recall_after(armed.value, self._last_said))
            case Fault.RECALL:
                await self.recall(self._last_said)
            case Fault.RECONNECT:
                await self.reconnect(armed.value)
            case Fault.DROP:
                await self.drop(armed.value)
            case fault:
                raise Refusal(NOT_DONE, f"{fault} cannot happen by itself")

    async def _recall_after(self, seconds: float, message_id: int) -> None:
        await asyncio.sleep(seconds)
        with suppress(Refusal):  # it is gone already
            await self.recall(message_id)

    async def mute(self, seconds: float = MUTED_FOR, *, group_id: int | None = None) -> None:
        """Somebody mutes the account in a group, the first one unless named; its sends there are
        refused.

        Raises Refusal for an unknown group.
        """
        await self.push(self.world.mute(self._group_id(group_id), seconds))

    async def lift(self, *, group_id: int | None = None) -> None:
        """Somebody lets the account speak again. Raises Refusal for an unknown group."""
        await self.push(self.world.lift(self._group_id(group_id)))

    async def go_offline(self, reason: str = "你的账号在其他设备登录，你已被迫下线。") -> None:
        """The account is kicked: sockets stay, sends are refused, events are lost, heartbeats say
        so.
        """
        world = self.world
        notice = wire.notice(
            world.self_id,
            world.now(),
            "bot_offline",
            user_id=world.self_id,
            tag="KickedOffLine",
            message=reason,
        )
        await self.push(notice)
        world.online = False
        await self._beat()

    async def go_online(self) -> None:
        """The account is logged in again; NapCat says so in its heartbeats only."""
        self.world.online = True
        await self._beat()

    async def _beat(self) -> None:
        for peer in list(self._sockets.peers):
            await peer.beat()

    async def poke(
        self, *, user_id: int, target_id: int | None = None, group_id: int | None = None
    ) -> None:
        """Somebody pokes somebody, the account unless another is named, in a group or in
        private.
        """
        world = self.world
        target = world.self_id if target_id is None else target_id
        await self.push(
            wire.poke(
                world.self_id, world.now(), user_id=user_id, target_id=target, group_id=group_id
            )
        )

    def _group_id(self, group_id: int | None) -> int:
        return next(iter(self.world.groups), 0) if group_id is None else group_id

    # --- what tests wait for --------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """How many sockets hear events now."""
        return sum(peer.hears for peer in self._sockets.peers)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_until(self, condition: Callable[[], bool], *, timeout: float = DEADLINE) -> None:
        """Until the condition, asked again whenever something happens here, holds. Raises
        TimeoutError.
        """
        async with asyncio.timeout(timeout):
            while not condition():
                await self._changed.wait()

    async def wait_connected(self, count: int = 1, *, timeout: float = DEADLINE) -> None:
        """Until that many sockets hear events. Raises TimeoutError."""
        await self.wait_until(lambda: self.connected >= count, timeout=timeout)

    async def wait_sent(self, count: int, *, timeout: float = DEADLINE) -> list[SentMessage]:
        """Until the bot has asked us to send that many messages since the start; all of them.
        Raises TimeoutError.
        """
        await self.wait_until(lambda: len(self.sent) >= count, timeout=timeout)
        return list(self.sent)

    async def wait_delivered(self, count: int, *, timeout: float = DEADLINE) -> list[SentMessage]:
        """Until people have got that many messages since the start; all of them. Raises
        TimeoutError.
        """
        await self.wait_until(lambda: len(self.delivered) >= count, timeout=timeout)
        return list(self.delivered)
