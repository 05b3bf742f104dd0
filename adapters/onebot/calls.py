"""Calls that wait for their replies, over all connections of the process.

A reply is matched by its echo, so it may come out of order, and over a newer connection than the
call; but only over one of the same account, because echoes can be guessed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping

from msgspec import Struct

from adapters.onebot.accounts import Peer
from adapters.onebot.protocol import MAX_FRAME, ActionReply, write_call
from bot.core.errors import ActionRefused, ActionUnanswered

logger = logging.getLogger(__name__)

DEADLINE = 30.0  # seconds; NapCat itself waits 10 s and more for QQ (onebot.md 6.15)
GONE_WITHIN = 5.0  # seconds for an answer over another connection after the call's own closed
SLOWEST = 128_000  # bytes a second, added to the deadline for large frames
TOO_LARGE = 413


class _Waiting(Struct, frozen=True):
    """A call: its connection, the account of that at the time (0: unknown), and its time limit."""

    asked: Peer
    account: int
    answer: asyncio.Future[ActionReply]
    limit: asyncio.Timeout

    def may_be_answered_by(self, peer: Peer) -> bool:
        return peer is self.asked or (self.account != 0 and peer.account == self.account)


class OneBotCalls:
    """The calls in progress. `boot` makes the echoes of this process unique."""

    def __init__(
        self, *, boot: str, deadline: float = DEADLINE, gone_within: float = GONE_WITHIN
    ) -> None:
        self._boot = boot
        self._deadline = deadline
        self._gone_within = gone_within
        self._numbers = itertools.count(1)
        self._waiting: dict[str, _Waiting] = {}

    async def make(
        self, peer: Peer, action: str, params: Mapping[str, object], *, beside: int = 0
    ) -> ActionReply:
        """Send a call and wait for its answer, even if the connection closes meanwhile.

        `beside` is the number of bytes that the server fetches for it. Raises NotConnected (not
        written), ActionRefused (too large for any server, not written), ActionUnanswered (written,
        but not answered in 30 s + the time for all bytes at 128 kB/s, or 5 s after the connection
        closed).
        """
        echo = f"{self._boot}-{next(self._numbers)}"
        frame = write_call(action, params, echo)
        if len(frame) > MAX_FRAME:
            # a server would close the connection
            raise ActionRefused(
                action,
                retcode=TOO_LARGE,
                wording=f"the frame has {len(frame) // 2**20} MiB, over 50",
            )
        seconds = self._deadline + (len(frame) + beside) / SLOWEST
        answer: asyncio.Future[ActionReply] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds) as limit:
                self._waiting[echo] = _Waiting(peer, peer.account, answer, limit)
                await peer.send(frame)
                return await answer
        except TimeoutError:
            when = (
                f"in {seconds:.0f} s"
                if peer.is_open
                else "before its connection closed, nor after that"
            )
            raise ActionUnanswered(f"{action} was not answered {when}") from None
        finally:
            del self._waiting[echo]

    def fail_calls_of(self, peer: Peer) -> None:
        """Shorten the deadlines of calls over a closed connection: their answers arrive soon over
        another one, or never.
        """
        soon = asyncio.get_running_loop().time() + self._gone_within
        for call in self._waiting.values():
            end = call.limit.when()
            if call.asked is peer and end is not None and end > soon:
                call.limit.reschedule(soon)

    def answer(self, reply: ActionReply, *, by: Peer) -> None:
        """Pass a reply that came over `by` to its call; ignore late ones and other accounts'."""
        call = self._waiting.get(reply.echo)
        if call is None:
            logger.debug(
                "an answer nobody waits for (echo %r, retcode %d)", reply.echo, reply.retcode
            )
        elif not call.may_be_answered_by(by):
            logger.warning(
                "account %d answers a call to account %d: ignored", by.account, call.account
            )
        elif reply.final and not call.answer.done():
            call.answer.set_result(reply)
