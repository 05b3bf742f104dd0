"""A send: its row in the journal, its state, and its outcome.

The states: queued -> sending -> confirmed, refused, unknown, withdrawn, dropped. Only a QUEUED row
is ever sent (again). An unanswered send is UNKNOWN: it may have been delivered, and is looked for
in events and histories.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.core.actions import MergedForward, SendMessage, as_received, jobs_in
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import Entry, KnownLine, SendChanged, SendQueued, SendState, StoredSend
from bot.core.lru import LRU
from bot.core.ports import Store
from bot.core.refusals import is_muted
from bot.core.segments import File, Forward, Picture, Record, Segment, SendSegment, Sticker, Video
from bot.policy.answered_questions import SKEW
from bot.policy.message_aliases import find_aliases
from frostagent.types.ports import Clock, Ids
from frostagent.types.speech import Attachment, Queued, Receipt, Refused, Text, Unknown

MAX_REASON = 500  # characters of a stored reason
MAX_PLACES = 5000
SHORTEST = 0.05  # seconds between two checks of a send on the wire, at least
NOT_YET = "QQ is not connected, or the pace is limited"

MAX_SENDS = 200  # unconfirmed sends that are looked for
MAX_CONFIRMED = 5000
LATELY = 60.0  # seconds in which an event may attribute a send to another sender
MISSING = "the history shows that it was not delivered"
BASE64 = "base64://"

LossReporter: TypeAlias = Callable[[SendMessage, SendState, str], None]
"""Reports a message that may be lost (UNKNOWN) or is (REFUSED, DROPPED), with the reason. It must
not wait or raise.
"""


def _future() -> asyncio.Future[Receipt]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, eq=False)
class Send:
    """A message to send. `receipt` is its outcome; `heard` is what the one caller gets: the same,
    or earlier `Queued`. `on_loss` is called if it may be lost, or is lost while no caller awaits
    it, unless the conversation is unreachable or the bot is muted there.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState = SendState.QUEUED
    recorded: bool = False
    on_loss: LossReporter | None = None
    after: Send | None = field(default=None, init=False)
    """The send that must be delivered first; if it is not, this is not sent."""
    pause: float = field(default=0.0, init=False)
    """Seconds of typing before it leaves, approximately."""
    awaited: bool = field(default=False, init=False)  # whether a caller awaits the receipt
    doubted: float = field(default=0.0, init=False)
    """When its outcome became unknown, in seconds since 1970."""
    found: str | None = field(default=None, init=False)
    """The id under which the message was seen before its answer came."""
    receipt: asyncio.Future[Receipt] = field(default_factory=_future, init=False)
    heard: asyncio.Future[Receipt] = field(default_factory=_future, init=False)

    @property
    def yields(self) -> bool:
        """Whether answers go first: it is a reminder, news or a report of a job, of which many may
        be due at one moment.
        """
        return not self.turn_id and jobs_in(self.send_id) is not None

    @classmethod
    def of(cls, stored: StoredSend, state: SendState, on_loss: LossReporter | None = None) -> Send:
        turn_id, action, final, at = stored.turn_id, stored.action, stored.final, stored.at
        return cls(
            stored.send_id, turn_id, action, final, at, state, recorded=True, on_loss=on_loss
        )

    async def hear(self, patience: float) -> Receipt:
        """Wait for the receipt; `Queued` if it is not on the wire after `patience` seconds."""
        look = asyncio.get_running_loop().call_later(patience, self._look, max(patience, SHORTEST))
        try:
            return await self.heard
        finally:
            look.cancel()

    def _look(self, again: float) -> None:
        if self.heard.done():
            return
        if self.state is SendState.QUEUED:
            self.heard.set_result(Queued(NOT_YET))
        else:  # it may return to the queue
            asyncio.get_running_loop().call_later(again, self._look, again)

    def settle(self, receipt: Receipt, reason: str = "") -> None:
        """Set the receipt, once, and report a loss that no caller learns of."""
        self.receipt.set_result(receipt)
        if not self.heard.done():  # its caller may have been cancelled
            self.heard.set_result(receipt)
        match receipt:
            case Refused(reason=why, blocks_place=blocks):
                is_news = not (self.awaited or blocks or is_muted(why))
            case _:
                is_news = isinstance(receipt, Unknown)
        if is_news:
            self.report_loss(reason)

    def report_loss(self, reason: str) -> None:
        if self.on_loss is not None:
            self.on_loss(self.action, self.state, reason)


ENDS: Final = frozenset(
    {SendState.CONFIRMED, SendState.REFUSED, SendState.DROPPED, SendState.WITHDRAWN}
)


class SendJournal:
    """Writes the rows of all sends. `settled` yields sends of turns whose outcome became known
    while no caller awaited it, in that order.
    """

    def __init__(self, *, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._boot = ids.trace()
        self._numbers = itertools.count(1)
        self.settled: asyncio.Queue[Send] = asyncio.Queue()
        self._spoke = LRU[Conversation, float](MAX_PLACES)

    def last_sent(self, where: Conversation) -> float:
        """When a message was last put on the wire there, or confirmed, in seconds since 1970; -inf
        if never.
        """
        return self._spoke.get(where, -math.inf)

    def create(
        self,
        action: SendMessage,
        *,
        turn_id: str = "",
        final: bool = False,
        on_loss: LossReporter | None = None,
        name: str = "",
    ) -> Send:
        """A send without a row, with a unique id that begins with `name`."""
        send_id = f"{name}{self._boot}-{next(self._numbers)}"
        return Send(send_id, turn_id, action, final, self._clock.now(), on_loss=on_loss)

    def record(self, send: Send) -> None:
        if not send.recorded:
            send.recorded = True
            self._store.put(_row(send))

    def record_all(self, sends: Sequence[Send], *entries: Entry) -> None:
        """Write the entries and the rows of the sends, which have none, in one transaction."""
        for send in sends:
            send.recorded = True
        self._store.put(*entries, *map(_row, sends))

    async def mark_sending(self, send: Send) -> None:
        """Write SENDING into the row. Returns once it is durable, so that the frame may leave."""
        send.state = SendState.SENDING
        now = self._clock.now()
        self._spoke.keep(send.action.conversation, now)
        if send.recorded:
            await self._store.commit(SendChanged(send_id=send.send_id, state=send.state, at=now))
        else:
            send.recorded = True
            await self._store.commit(_row(send))

    def change(
        self, send: Send, state: SendState, *, message_id: str = "", reason: str = ""
    ) -> None:
        self.record(send)
        send.state = state
        short = reason[:MAX_REASON]
        now = self._clock.now()
        if state is SendState.CONFIRMED:
            self._spoke.keep(send.action.conversation, now)
        self._store.put(
            SendChanged(
                send_id=send.send_id, state=state, at=now, message_id=message_id, reason=short
            )
        )
        if state in ENDS:
            self.announce(send)

    def settle(
        self,
        send: Send,
        state: SendState,
        receipt: Receipt,
        *,
        message_id: str = "",
        reason: str = "",
    ) -> None:
        """Change to the final state, and set the receipt."""
        self.change(send, state, message_id=message_id, reason=reason)
        send.settle(receipt, reason)

    def announce(self, send: Send) -> None:
        """Put a send of a turn in `settled`, unless its caller learns the outcome."""
        if send.turn_id and not send.awaited:
            self.settled.put_nowait(send)

    def withdraw(self, send: Send, reason: str) -> None:
        """Withdraw the send, unless it has been on the wire."""
        if send.state is SendState.QUEUED:
            self.change(send, SendState.WITHDRAWN, reason=reason)


def _row(send: Send) -> SendQueued:
    return SendQueued(
        send_id=send.send_id,
        turn_id=send.turn_id,
        action=send.action,
        final=send.final,
        at=send.at,
        state=send.state,
    )


# --- confirmation by events and histories ---------------------------------------------------------


class _Said(Struct, frozen=True):
    """A confirmed message; it becomes a `line` only if a history is compared."""

    action: SendMessage
    message_id: str
    at: float

    @property
    def line(self) -> KnownLine:
        return as_line(self.action, self.message_id, self.at)


class Unconfirmed:
    """The sends of unknown outcome, and the messages that confirmed others: each message confirms
    one send.
    """

    def __init__(self, *, journal: SendJournal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._sends: deque[Send] = deque(maxlen=MAX_SENDS)
        self._confirmed = LRU[tuple[Conversation, str], None](MAX_CONFIRMED)
        self._said: deque[_Said] = deque(maxlen=MAX_SENDS)  # recent
        self._news: asyncio.Queue[Conversation] = asyncio.Queue()

    def add(self, send: Send) -> None:
        """Look for this send from now on."""
        send.doubted = self._clock.now()
        self._sends.append(send)
        self._news.put_nowait(send.action.conversation)

    def look_again(self) -> None:
        """Queue every conversation again: after a reconnect its history may be readable."""
        for where in {send.action.conversation for send in self._sends}:
            self._news.put_nowait(where)

    async def next(self) -> Conversation:
        """Wait for a conversation in which to look for a send."""
        return await self._news.get()

    def places(self, account: int) -> tuple[Conversation, ...]:
        places = (send.action.conversation for send in self._sends)
        return tuple(dict.fromkeys(where for where in places if where.platform_id == account))

    @property
    def sends(self) -> list[Send]:
        """Oldest first."""
        return list(self._sends)

    def at(self, where: Conversation) -> list[Send]:
        return [send for send in self._sends if send.action.conversation == where]

    def holds(self, send: Send) -> bool:
        return send in self._sends

    def confirm(self, send: Send, message_id: str) -> None:
        where = send.action.conversation
        if (where, message_id) not in self._confirmed:
            self._said.append(_Said(send.action, message_id, self._clock.now()))
        self._confirmed.keep((where, message_id), None)

    def is_known(self, message: MessageReceived) -> bool:
        return (message.conversation, message.message_id) in self._confirmed

    def unexplained(self, history: Sequence[MessageReceived]) -> list[MessageReceived]:
        """The account's own messages in a history, except those confirmed lately under any id."""
        self._forget_old()
        own = [message for message in history if message.is_own]
        where = own[0].conversation if own else None
        known = [one.line for one in self._said if one.action.conversation == where]
        names = find_aliases(own, known)
        return [message for message in own if message.message_id not in names]

    def tells(
        self, message: MessageReceived, sends: Callable[[Conversation], Iterable[Send]]
    ) -> bool:
        """Whether a message attributed to another sender is a file that was just sent there; True
        once per file. `sends` returns those of a conversation that may have been delivered.
        """
        if not any(isinstance(part, File) for part in message.segments):  # the usual case
            return False
        self._forget_old()
        for said in self._said:
            if said.action.conversation == message.conversation and is_same_file(
                message, said.line
            ):
                self._said.remove(said)
                return True
        return any(
            send.found is None and is_same_file(message, as_line(send.action, "", send.at))
            for send in sends(message.conversation)
        )

    def _forget_old(self) -> None:
        begin = self._clock.now() - LATELY
        while self._said and self._said[0].at < begin:
            self._said.popleft()

    def compare(
        self, history: Iterable[MessageReceived], sends: Callable[[Conversation], Iterable[Send]]
    ) -> None:
        """Confirm the sends of a conversation that its history contains."""
        for message in history:
            if not message.is_own or not message.has_identity or self.is_known(message):
                continue  # an own message without an id is one that failed
            if message.unproven:
                continue
            for send in sends(message.conversation):
                if (
                    send.found is None
                    and message.time >= send.at - SKEW
                    and is_same_message(message, send.action)
                ):
                    self._found(send, message.message_id)
                    break

    def _found(self, send: Send, message_id: str) -> None:
        send.found = message_id
        self.confirm(send, message_id)
        if send in self._sends:
            self._sends.remove(send)
            self._journal.change(send, SendState.CONFIRMED, message_id=message_id)

    def lost(self, sends: Collection[Send]) -> tuple[SendChanged, ...]:
        """Drop these sends, which were never delivered. Returns the entries for the caller to
        write.
        """
        for send in sends:
            self._sends.remove(send)
            send.state = SendState.DROPPED
            self._journal.announce(send)
        now = self._clock.now()
        return tuple(
            SendChanged(send_id=send.send_id, state=send.state, at=now, reason=MISSING)
            for send in sends
        )


def is_same_message(seen: MessageReceived, sent: SendMessage) -> bool:
    """Whether the account's own message is the one sent: equal words, blanks aside, and as many
    media. QQ shows no words of a merged forward.
    """
    if seen.conversation != sent.conversation:
        return False
    if any(isinstance(segment, MergedForward) for segment in sent.segments):
        return any(isinstance(segment, Forward) for segment in seen.segments)
    words = "".join(segment.text for segment in seen.segments if isinstance(segment, Text))
    sent_words = "".join(segment.text for segment in sent.segments if isinstance(segment, Text))
    media = sum(
        isinstance(segment, Picture | Record | Video | File | Sticker) for segment in seen.segments
    )
    sent_media = sum(isinstance(segment, Attachment) for segment in sent.segments)
    return media == sent_media and "".join(words.split()) == "".join(sent_words.split())


def as_line(sent: SendMessage, message_id: str, at: float) -> KnownLine:
    """A sent message as a history shows it, without the size of media other than base64 files."""
    parts = (
        Forward("") if isinstance(part, MergedForward) else _with_size(part)
        for part in sent.segments
    )
    return KnownLine(message_id, sent.conversation.platform_id, at, tuple(parts))


def is_same_file(seen: MessageReceived, sent: KnownLine) -> bool:
    """Whether a message is only the sent file: the same name, and the same size if both are known.
    Words prove nothing: people repeat the bot.
    """
    match seen.segments, sent.segments:
        case (File(name=name, size=size),), (File(name=sent_name, size=sent_size),):
            return bool(name) and name == sent_name and (size == sent_size or not size * sent_size)
        case _:
            return False


def _with_size(part: SendSegment) -> Segment:
    received = as_received(part)
    if isinstance(received, File) and isinstance(part, Attachment):
        source = part.source
        if source.startswith(BASE64):
            size = (len(source) - len(BASE64)) * 3 // 4 - source[-2:].count("=")
            return replace(received, size=size)
    return received
