"""What is said -> actions: into QQ messages, split, quoted, one unanswered per conversation, with a receipt each.

Text always leaves as text segments, never as a string a server would search for CQ codes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from weakref import WeakValueDictionary

from bot.domain.actions import Attachment, Confirmed, Receipt, Refused, SendMessage, SendSegment, Unknown
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.events import Conversation, MessageReceived, Sender
from bot.domain.ports import Clock, Transport
from bot.domain.segments import Quote, Text
from bot.history import History
from bot.splitting import LIMIT, split_text

logger = logging.getLogger(__name__)

ALONE = ("record", "video", "file")  # media QQ shows only as a message of their own


class Delivery:
    """Says things in conversations, in order."""

    def __init__(self, *, transport: Transport, history: History, clock: Clock, limit: int = LIMIT) -> None:
        self._transport = transport
        self._history = history
        self._clock = clock
        self._limit = limit
        # NapCat works on calls side by side: two unanswered sends to one place may arrive in the other order.
        self._locks: WeakValueDictionary[Conversation, asyncio.Lock] = WeakValueDictionary()

    async def say(self, conversation: Conversation, segments: tuple[SendSegment, ...]) -> tuple[Receipt, ...]:
        """Send the segments now, in as few QQ messages as they need; one receipt each.

        After a message that was not confirmed the rest is not sent.
        """
        receipts: list[Receipt] = []
        lock = self._locks.setdefault(conversation, asyncio.Lock())
        async with lock:
            for message in messages_of(segments, limit=self._limit):
                receipts.append(await self._send(SendMessage(conversation, message)))
                if not isinstance(receipts[-1], Confirmed):
                    break
        return tuple(receipts)

    async def answer(self, message: MessageReceived, text: str) -> tuple[Receipt, ...]:
        """Say the text where the message came from; in a group its first piece quotes the message."""
        quote = message.conversation.is_group and message.message_id
        first: tuple[SendSegment, ...] = (Quote(message.message_id),) if quote else ()
        return await self.say(message.conversation, (*first, Text(text)))

    async def _send(self, action: SendMessage) -> Receipt:
        where = action.conversation
        try:
            message_id = await self._transport.send(action)
        except NotConnected as error:
            logger.warning("not sent to %s: %s", where, error)
            return Refused(f"QQ is not connected right now ({error})")
        except ActionRefused as error:
            logger.warning("not sent to %s: %s", where, error)
            return Refused(error.wording or f"refused with code {error.retcode}")
        except ActionUnanswered as error:
            logger.warning("sent to %s without an answer, it may have been delivered: %s", where, error)
            return Unknown(str(error))
        if message_id:
            self._remember(action, message_id)
        return Confirmed(message_id)

    def _remember(self, action: SendMessage, message_id: str) -> None:
        where = action.conversation
        self._history.know(
            MessageReceived(
                self_id=where.platform_id,
                time=self._clock.now(),
                conversation=where,
                message_id=message_id,
                sender=Sender(where.platform_id),
                segments=tuple(segment for segment in action.segments if not isinstance(segment, Attachment)),
            )
        )


def messages_of(segments: tuple[SendSegment, ...], *, limit: int = LIMIT) -> Iterator[tuple[SendSegment, ...]]:
    """The segments as QQ messages: order kept, the quote first, long text in pieces, some media alone.

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
                if characters:
                    yield _quoting(quote, current)
                    quote, current = None, []
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


def _quoting(quote: Quote | None, segments: list[SendSegment]) -> tuple[SendSegment, ...]:
    return (*((quote,) if quote else ()), *segments)


def _says_something(segments: list[SendSegment]) -> bool:
    return any(not isinstance(segment, Text) or segment.text.strip() for segment in segments)


def spoken_text(segments: tuple[SendSegment, ...]) -> str:
    """The words among the segments."""
    return "".join(segment.text for segment in segments if isinstance(segment, Text))
