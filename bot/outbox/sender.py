"""Carries one send to QQ: at its pace, at most once, and looked for where no answer comes.

A row is SENDING in the store before its frame leaves, so after a crash a QUEUED row has never been
on the wire. A send without an answer may have been delivered: it is looked for (the account's own
`message_sent`, then the history), and what cannot be found stays UNKNOWN and is never repeated.
What was refused for its quote or for somebody it mentions is sent once more without that; where QQ
takes nothing at all the place is unreachable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable, Iterator
from typing import Protocol

from bot.core.actions import SendMessage, SentSegment
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected, TransportError
from bot.core.journal import SendState
from bot.core.ports import Transport
from bot.core.refusals import MUTED, Removable, judge_refusal
from bot.core.task_context import current_run
from bot.outbox.sends import Rows, Send
from bot.outbox.unconfirmed import Unconfirmed
from bot.outbox.unreachable import UnreachablePlaces
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock, Ids
from frostagent.types.speech import Confirmed, Mention, Quote, Receipt, Refused, Text, Unknown

# More keys are looked through: those that may burst again are as good as unknown. A bounded cache
# would forget by age alone, and let somebody burst who has just done so.
MAX_KEYS = 10_000

APART = 5.0  # seconds between two equal texts in one place


class Pace:
    """`rate` messages a second on average for each key, the first `burst` of them at once; rate 0
    is no limit.
    """

    def __init__(self, *, rate: float, burst: int, clock: Clock, ids: Ids) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._slack = self._interval * max(burst - 1, 0)
        self._clock = clock
        self._ids = ids
        self._due: dict[Hashable, float] = {}
        self._full = MAX_KEYS

    def delay(self, key: Hashable) -> float:
        """How many seconds to wait before the next message of this key; it is counted as sent."""
        if not self._interval:
            return 0.0
        now = self._clock.monotonic()
        due = max(self._due.get(key, now), now)
        self._due[key] = due + self._interval
        if len(self._due) > self._full:
            self._due = {key: due for key, due in self._due.items() if due > now}
            self._full = max(MAX_KEYS, 2 * len(self._due))
        wait = due - now - self._slack
        return wait * (1 + self._ids.jitter() / 2) if wait > 0 else 0.0


class Echoes:
    """Keeps equal texts to one place `apart` seconds from each other: a row of the same words is
    what QQ takes for a machine.
    """

    def __init__(self, *, apart: float, clock: Clock) -> None:
        self._apart = apart
        self._clock = clock
        self._due: dict[tuple[Hashable, str], float] = {}

    def holds(self, key: Hashable, text: str) -> bool:
        """Whether this text would have to wait."""
        return self._due.get((key, text), 0.0) > self._clock.monotonic()

    def delay(self, key: Hashable, text: str) -> float:
        """How many seconds to wait before this text; it is counted as said."""
        if not self._apart or not text.strip():
            return 0.0
        now = self._clock.monotonic()
        self._due = {said: due for said, due in self._due.items() if due > now}
        due = self._due.get((key, text), now)
        self._due[key, text] = due + self._apart
        return due - now


logger = logging.getLogger(__name__)

MAX_AGE = 120.0  # seconds a send may wait for a connection: later nobody expects it any more
LOOK_AFTER = 1.0  # seconds until the history of an unanswered send is worth a look
BURST = 3  # messages one conversation may get at once, before the pace is kept
ACCOUNT = 500  # conversations' pace and burst that one account has in all: people are far below
JITTER = 0.3  # of the seconds that typing takes, more or less

TOO_LATE = "QQ was not connected in time"
CUT_OFF = "what was to be said before it was not delivered"


class Suspicions(Protocol):
    """Who hears where QQ took no message, as the bot is muted there."""

    @property
    def news(self) -> int:
        """How often something was told about mutes."""
        ...

    def suspect(self, where: Conversation, *, since: int) -> None:
        """What left after so many news was refused there."""
        ...


class Carrier:
    """Puts sends on the wire until it is closed; `unconfirmed` are those nobody has answered.
    `mutes` hears where one was refused for a mute.

    `rate` is how many messages a second each conversation gets on average, after `burst` at once; 0
    is no limit, nor is there one for equal words then.
    """

    def __init__(
        self,
        *,
        transport: Transport,
        rows: Rows,
        clock: Clock,
        ids: Ids,
        mutes: Suspicions,
        rate: float = 0.0,
        burst: int = BURST,
    ) -> None:
        self._mutes = mutes
        self._transport = transport
        self._rows = rows
        self._clock = clock
        self._ids = ids
        self._is_paced = rate > 0
        self._here = Pace(rate=rate, burst=burst, clock=clock, ids=ids)
        self._account = Pace(rate=rate * ACCOUNT, burst=burst * ACCOUNT, clock=clock, ids=ids)
        self._echoes = Echoes(apart=APART if rate else 0.0, clock=clock)
        self._connected = asyncio.Event()
        self.unconfirmed = Unconfirmed(rows=rows, clock=clock)
        self.unreachable = UnreachablePlaces(clock=clock)
        self.is_closed = False

    def close(self) -> None:
        """Put nothing more on the wire; what is there is seen to its end."""
        self.is_closed = True

    def connected(self) -> None:
        """Let what waits try again, and what is in doubt be looked for: an account is there
        (again).
        """
        self._connected.set()
        self._connected = asyncio.Event()
        self.unconfirmed.look_again()

    def repeats(self, send: Send) -> bool:
        """Whether it has to wait because the same was said there a moment ago."""
        return self._echoes.holds(send.action.conversation, send.action.words)

    async def deliver(self, send: Send) -> None:
        """See a send to its end, however long that takes; closed meanwhile, it may stay QUEUED."""
        try:
            await self._deliver(send)
        except Exception as bug:  # one send's misfortune, and may have come after the frame left
            logger.exception("the outbox of %s goes on after a failure", send.action.conversation)
            if not send.receipt.done():
                self._give_up(send, f"bug: {type(bug).__name__}")

    async def _deliver(self, send: Send) -> None:
        current_run.set(send.turn_id)  # the worker may have been started by another run
        before, send.after = send.after, None
        if before is not None:
            if before.state is not SendState.CONFIRMED:
                self._rows.withdraw(send, CUT_OFF)
            # Before that it waited for its turn, not for QQ: that may have been a film.
            send.at = self._clock.now()
        if send.state is not SendState.QUEUED:
            return
        if wait := self._wait(send):
            self._rows.queued(send)
            await self._clock.sleep(wait)
        while send.state is SendState.QUEUED:
            if self.is_closed:
                return
            if self._clock.now() - send.at > MAX_AGE:
                self._settle(send, SendState.DROPPED, Refused(TOO_LATE), reason=TOO_LATE)
                return
            await self._rows.sending(send)
            connected = self._connected  # which may be during the attempt
            if not await self._put_on_wire(send):
                await self._wait_for(connected)

    def _wait(self, send: Send) -> float:
        """How many seconds the send waits for its turn to be due."""
        if not (self._is_paced or send.pause):
            return 0.0
        where = send.action.conversation
        typing = send.pause * (1 + JITTER * (2 * self._ids.jitter() - 1))
        paced = max(self._here.delay(where), self._account.delay(where.platform_id))
        return max(typing, paced, self._echoes.delay(where, send.action.words))

    async def _put_on_wire(self, send: Send) -> bool:
        """One attempt; False if it never reached the wire and may be tried again."""
        where, since = send.action.conversation, self._mutes.news
        try:
            message_id = await self._transport.send(send.action)
        except NotConnected as error:
            logger.info("cannot send to %s yet: %s", where, error)
            self._rows.changed(send, SendState.QUEUED)
            return False
        except ActionRefused as error:
            return await self._refused(send, error, since=since)
        except ActionUnanswered as error:
            await self._look_for(send, str(error))
        else:
            self._confirm(send, message_id)
        return True

    async def _refused(self, send: Send, error: ActionRefused, *, since: int) -> bool:
        """Once more in a plainer form, if QQ may take that; else it was not said."""
        where, refusal = send.action.conversation, judge_refusal(error.wording, error.retcode)
        logger.warning("not sent to %s: %s", where, error)
        if (plain := simplified(send.action, refusal.retry_without)) is not None:
            logger.info("once more to %s, without what was refused: %s", where, refusal.kind)
            send.action = plain
            return await self._put_on_wire(send)
        blocks = refusal.blocks_place and refusal.kind != MUTED
        if blocks:
            self.unreachable.begin(where, f"{refusal.kind}: {refusal.words}")
        elif refusal.blocks_place:
            self._mutes.suspect(where, since=since)
        receipt = Refused(refusal.reason, by_qq=True, words=refusal.words, blocks_place=blocks)
        self._settle(send, SendState.REFUSED, receipt, reason=refusal.full_reason)
        if blocks and not send.awaited:  # else its caller may have another form of it
            self.unreachable.tell(where)
        return True

    async def _wait_for(self, connected: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(MAX_AGE):
                await connected.wait()
        except TimeoutError:
            logger.debug("still not connected")

    async def _look_for(self, send: Send, reason: str) -> None:
        """An unanswered send: seen by the account itself, or in the history? Else it stays
        unknown.
        """
        where = send.action.conversation
        send.state = SendState.UNKNOWN
        if send.found is None:
            await self._clock.sleep(LOOK_AFTER)
        if send.found is None:
            try:
                history = await self._transport.get_history(where)
                unexplained = self.unconfirmed.unexplained(history)
                self.unconfirmed.compare(unexplained, lambda _: [send])
            except TransportError as error:
                logger.debug("the history of %s cannot be looked at: %s", where, error)
        if send.found is not None:
            self._confirm(send, send.found)
            return
        logger.warning(
            "sent to %s without an answer, it may have been delivered: %s", where, reason
        )
        self._give_up(send, reason)

    def _confirm(self, send: Send, message_id: str) -> None:
        self.unconfirmed.confirm(send, message_id)
        self.unreachable.end(send.action.conversation)
        self._settle(send, SendState.CONFIRMED, Confirmed(message_id), message_id=message_id)

    def _give_up(self, send: Send, reason: str) -> None:
        self.unconfirmed.add(send)
        self._settle(send, SendState.UNKNOWN, Unknown(reason), reason=reason)

    def _settle(
        self,
        send: Send,
        state: SendState,
        receipt: Receipt,
        *,
        message_id: str = "",
        reason: str = "",
    ) -> None:
        self._rows.changed(send, state, message_id=message_id, reason=reason)
        send.settle(receipt, reason)


def simplified(action: SendMessage, leave_out: Iterable[Removable]) -> SendMessage | None:
    """The message without the first of these that it has; None if it has none of them. Whoever is
    mentioned is called by name instead.
    """
    for what in leave_out:
        kind = Quote if what == "quote" else Mention
        if any(isinstance(segment, kind) for segment in action.segments):
            kept = tuple(_without(action.segments, kind))
            return SendMessage(action.conversation, kept) if kept else None
    return None


def _without(segments: Iterable[SentSegment], kind: type[Quote | Mention]) -> Iterator[SentSegment]:
    for segment in segments:
        if not isinstance(segment, kind):
            yield segment
        elif isinstance(segment, Mention) and segment.name:
            yield Text(f"@{segment.name}")
