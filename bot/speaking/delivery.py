"""From what is said to actions: QQ messages, split, quoted, in order, with a receipt each.

Text always leaves as text segments, never as a string a server would search for CQ codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from bot.domain.actions import (
    Attachment,
    Confirmed,
    Receipt,
    Refused,
    SendMessage,
    SendSegment,
    Unknown,
    Waiting,
    as_received,
)
from bot.domain.events import Conversation, MessageReceived, Sender
from bot.domain.ports import Clock
from bot.domain.segments import Quote, Text
from bot.memory.history import History
from bot.policy.apologies import is_quoted
from bot.prompt import notes
from bot.speaking.outbox import Outbox
from bot.speaking.splitting import LIMIT, split_text

MAX_MESSAGES = 20  # for one thing said: more is a flood, and risk control's business
CUT_SHORT = (Text("……（太长了，后面的省略了）"),)
ALONE = ("record", "video", "file")  # media QQ shows only as a message of their own


@dataclass(frozen=True, slots=True)
class Said:
    """One QQ message and what became of it."""

    action: SendMessage
    receipt: Receipt

    @property
    def may_be_read(self) -> bool:
        """Whether somebody has read it, may have, or will: then it is not to be said again."""
        return not isinstance(self.receipt, Refused)

    @property
    def words(self) -> str:
        return "".join(
            segment.text for segment in self.action.segments if isinstance(segment, Text)
        )


class Delivery:
    """Says things in conversations, in order."""

    def __init__(
        self, *, outbox: Outbox, history: History, clock: Clock, limit: int = LIMIT
    ) -> None:
        self._outbox = outbox
        self._history = history
        self._clock = clock
        self._limit = limit

    def count(self, segments: tuple[SendSegment, ...]) -> int:
        """How many QQ messages they would be."""
        return sum(1 for _ in at_most(MAX_MESSAGES, messages_of(segments, limit=self._limit)))

    async def say(
        self,
        where: Conversation,
        segments: tuple[SendSegment, ...],
        *,
        turn_id: str = "",
        final: bool = False,
    ) -> tuple[Said, ...]:
        """Send the segments now, in as few QQ messages as they need, with nothing in between.

        After a message that was refused, or whose fate is unknown, the rest is not sent.
        """
        parts = at_most(MAX_MESSAGES, messages_of(segments, limit=self._limit))
        actions = [SendMessage(where, part) for part in parts]
        if not actions:
            return ()
        receipts = await self._outbox.send_all(actions, turn_id=turn_id, final=final)
        said = tuple(map(Said, actions, receipts))
        for one in said:
            if isinstance(one.receipt, Confirmed):
                self._remember(one.action, one.receipt.message_id)
        return said

    async def answer(
        self, message: MessageReceived, text: str, *, turn_id: str = ""
    ) -> tuple[Said, ...]:
        """Say the text where the message came from; in a group its first piece quotes the
        message.
        """
        first: tuple[SendSegment, ...] = (Quote(message.message_id),) if is_quoted(message) else ()
        return await self.say(
            message.conversation, (*first, Text(text)), turn_id=turn_id, final=True
        )

    def _remember(self, action: SendMessage, message_id: str) -> None:
        where = action.conversation
        self._history.know(
            MessageReceived(
                self_id=where.platform_id,
                time=self._clock.now(),
                conversation=where,
                message_id=message_id,
                sender=Sender(where.platform_id),
                segments=tuple(map(as_received, action.segments)),
            )
        )


def messages_of(
    segments: tuple[SendSegment, ...], *, limit: int = LIMIT
) -> Iterator[tuple[SendSegment, ...]]:
    """The segments as QQ messages: order kept, the quote first, long text in pieces, some media
    alone.

    Blank text is left out, and a message with nothing but a quote is never made.
    """
    quote = next((segment for segment in segments if isinstance(segment, Quote)), None)
    current: list[SendSegment] = []
    characters = 0
    for segment in segments:
        match segment:
            case Quote():
                continue
            case Attachment(kind=kind) if kind in ALONE:
                if _says_something(current):
                    yield _quoting(quote, current)
                    quote = None
                yield (segment,)
                current, characters = [], 0
            case Text(text=text) if characters + len(text) > limit:
                if characters and _says_something(current):
                    yield _quoting(quote, current)
                    quote = None
                if characters:
                    current = []
                *whole, rest = split_text(text, limit) or ("",)
                for piece in whole:
                    yield _quoting(quote, [*current, Text(piece)])
                    quote, current = None, []
                current.append(Text(rest))
                characters = len(rest)
            case _:
                current.append(segment)
                characters += len(segment.text) if isinstance(segment, Text) else 0
    if _says_something(current):
        yield _quoting(quote, current)


def at_most(
    number: int, messages: Iterable[tuple[SendSegment, ...]]
) -> Iterator[tuple[SendSegment, ...]]:
    """The messages, but no more than that many: then a line that says so."""
    for index, message in enumerate(messages):
        if index == number:
            yield CUT_SHORT
            return
        yield message


def _quoting(quote: Quote | None, segments: list[SendSegment]) -> tuple[SendSegment, ...]:
    return (*((quote,) if quote else ()), *segments)


def _says_something(segments: list[SendSegment]) -> bool:
    return any(not isinstance(segment, Text) or segment.text.strip() for segment in segments)


def note_on(said: tuple[Said, ...]) -> str:
    """The note for the model on the delivery of its words; empty where all of them arrived."""
    for arrived, one in enumerate(said):
        match one.receipt:
            case Confirmed():
                continue
            case Refused(reason=reason):
                return notes.delivery_note(notes.REFUSED.format(reason=reason), arrived=arrived)
            case Unknown():
                return notes.delivery_note(notes.UNCONFIRMED, arrived=arrived)
            case Waiting():
                return notes.delivery_note(notes.QUEUED, arrived=arrived)
            case _:
                assert_never(one.receipt)
    return ""
