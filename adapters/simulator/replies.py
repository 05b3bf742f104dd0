"""From a call to its answer: what the world makes of it, and what a fault makes of that. No
sockets.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from adapters.simulator import actions
from adapters.simulator.call import Call, CallAnswer, Done, SentMessage
from adapters.simulator.faults import ARRIVED, REFUSED, SENDING, Armed, Fault, Faults
from adapters.simulator.sockets import ConnectedBot, SimulatedSockets
from adapters.simulator.wire import Json
from adapters.simulator.world import World


@dataclass(frozen=True, slots=True)
class CallReply:
    """The result of a call: the frame that answers it (None: nothing ever does), and what was done.

    The answer comes `delay` seconds late, or on the `next_connection`. `asked` is the message the
    bot wanted to be sent, whatever became of it; its id is 0 where nobody gets it.
    """

    frame: Json | None
    done: Done = field(default_factory=Done)
    asked: SentMessage | None = None
    delay: float = 0.0
    next_connection: bool = False

    @property
    def in_order(self) -> bool:
        """Whether the bot hears that it is done before it hears what it caused, as with NapCat on a
        good day.
        """
        return bool(
            self.frame
            and self.frame["status"] == "ok"
            and not self.delay
            and not self.next_connection
        )


def reply_to(world: World, faults: Faults, text: str | bytes) -> CallReply:
    """Carry out the call in a frame, as far as no fault is armed that hits it."""
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
    """Deliver a message or not, and answer what the fault has it answered."""
    match struck:
        case Armed(fault=Fault.LOST):
            return CallReply(None)
        case Armed(fault=fault) if fault in REFUSED:
            return CallReply(call.refuse(struck.refusal).frame)
        case _:
            answer = actions.perform(world, call)
    reply = CallReply(answer.frame, answer.done)
    if answer.done.sent is None:  # refused without any fault
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


HELD = 0.3  # seconds an answer is held for others to overtake it


@dataclass(frozen=True, slots=True)
class _HeldAnswers:
    """Answers held until there are so many, to be sent last one first."""

    size: int
    answers: list[tuple[ConnectedBot, Json]] = field(default_factory=list)


class CallAnswers:
    """Sends answers as the armed faults have it: late, in another order, on another socket."""

    def __init__(self, sockets: SimulatedSockets, faults: Faults) -> None:
        self._sockets = sockets
        self._faults = faults
        self._held: _HeldAnswers | None = None
        self._late: list[Json] = []

    async def give(self, peer: ConnectedBot, reply: CallReply) -> None:
        """Answer a call, if it is answered at all."""
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
        """Send what waited for the next connection, which this is."""
        late, self._late = self._late, []
        for frame in late:
            await peer.send(frame)

    async def _give_after(self, seconds: float, peer: ConnectedBot, frame: Json) -> None:
        await asyncio.sleep(seconds)
        await peer.send(frame)

    def _held_now(self) -> _HeldAnswers | None:
        """Those that are being held; none yet where `disorder` has just been armed."""
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
