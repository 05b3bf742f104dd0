"""When the answer to a call leaves, and over which socket."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from adapters.simulator.faults import Fault, Faults
from adapters.simulator.peer import ConnectedBot
from adapters.simulator.replies import CallReply
from adapters.simulator.sockets import SimulatedSockets
from adapters.simulator.wire import Json

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
