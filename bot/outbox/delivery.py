"""Sends answers, tools' messages and the service's own lines, in as few QQ messages as possible.
The history records what arrived, so that later quotes of it are recognized.

Text is always sent as text segments, never as a string in which a server looks for CQ codes.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from msgspec import Struct

from bot.core.actions import MergedForward, SendMessage, SentSegment, as_received
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender, relayed
from bot.core.journal import Entry, SendState, Undelivered
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.redaction import OwnWords
from bot.memory.history import History
from bot.outbox.layout import LIMIT, Parts, in_turns, merged, messages_of, split_text
from bot.outbox.mentions import with_mentions
from bot.outbox.outbox import Outbox
from bot.outbox.pacing import typing_pauses
from bot.policy.blocked_words import sent_words
from bot.policy.fallback_replies import is_quoted
from bot.prompt import render
from bot.prompt.wording import Wording
from frostagent.types.ports import Clock
from frostagent.types.speech import (
    Attachment,
    Confirmed,
    Drafted,
    Queued,
    Quote,
    Receipt,
    Refused,
    Text,
    Unknown,
)
from frostagent.types.traits import Audience

MAX_LINES = 5  # lines of the service waiting in a conversation, beyond which `remark` is silent
MAX_PIECES = 10  # messages that replace a file, if the server takes none
ROOM = LIMIT - 40  # characters of each, below a heading with its number

PIECE = Phrase(
    "{name} 完整内容（{number}/{pieces}）\n{words}", "{name} in full ({number}/{pieces})\n{words}"
)
CATALOGUE.register(__name__, globals())


class SaidMessage(Struct, frozen=True):
    """A QQ message and its receipt."""

    action: SendMessage
    receipt: Receipt

    @property
    def may_be_read(self) -> bool:
        """Whether a person has read it or may yet do so: then it must not be sent again."""
        return not isinstance(self.receipt, Refused)

    @property
    def reason(self) -> str:
        return self.receipt.reason if isinstance(self.receipt, Refused) else ""

    @property
    def blocks_place(self) -> bool:
        """Whether QQ would refuse any other message there, too."""
        return isinstance(self.receipt, Refused) and self.receipt.blocks_place

    @property
    def words(self) -> str:
        return self.action.words


class Delivery:
    """Sends messages to conversations, in order. If `paced`, a short answer is sent message by
    message, as people write. A long one becomes a merged forward under the bot's `name` there, or
    pieces if it has no name. `language` is the language of questions to owners.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        history: History,
        clock: Clock,
        paced: bool = False,
        name: Callable[[Conversation], str] | None = None,
        language: Language = Language.CHINESE,
        limit: int = LIMIT,
    ) -> None:
        self._outbox = outbox
        self._history = history
        self._clock = clock
        self._paced = paced
        self._name = name
        self.language = language
        self._limit = limit

    def count(self, where: Conversation, segments: Parts) -> int:
        """The number of QQ messages that the segments become there."""
        messages = messages_of(segments, limit=self._limit)
        return 1 if self._merged(where, segments, messages) else len(messages)

    async def answer(
        self,
        message: MessageReceived,
        text: str,
        *,
        turn_id: str = "",
        trail: list[str] | None = None,
        keeps_codes: bool = False,
    ) -> tuple[SaidMessage, ...]:
        """Answer a message where it came from; in a group the first piece quotes it, and a short
        answer is paced. `trail` and `keeps_codes` are as in `say`.
        """
        first: Parts = (Quote(message.message_id),) if is_quoted(message) else ()
        segments = (*first, Text(text))
        if self._paced and (messages := in_turns(segments)):
            return await self._send(
                message.conversation,
                messages,
                text,
                turn_id=turn_id,
                final=True,
                trail=[] if trail is None else trail,
                keeps_codes=keeps_codes,
                pauses=typing_pauses(messages),
            )
        return await self.say(
            message.conversation,
            segments,
            turn_id=turn_id,
            final=True,
            trail=trail,
            keeps_codes=keeps_codes,
        )

    async def say(
        self,
        where: Conversation,
        segments: Parts,
        *,
        turn_id: str = "",
        final: bool = False,
        trail: list[str] | None = None,
        keeps_codes: bool = False,
    ) -> tuple[SaidMessage, ...]:
        """Send the segments now, in as few QQ messages as possible, with no others in between; long
        ones as a merged forward, or in pieces if QQ refuses that. They continue the words of a
        `trail`, and extend it by those that may be read. CQ codes are interpreted, unless
        `keeps_codes`: then they are the subject. After a message that was refused, or whose outcome
        is unknown, the rest is not sent.
        """
        trail = [] if trail is None else trail
        messages = messages_of(segments, limit=self._limit)
        words = "".join([segment.text for segment in segments if isinstance(segment, Text)])
        # A temporary session takes no forward (onebot.md 5 names no parameter for its group).
        if not where.via_group and (merged := self._merged(where, segments, messages)):
            said = await self._send(
                where,
                [(merged,)],
                words,
                turn_id=turn_id,
                final=final,
                trail=trail,
                keeps_codes=keeps_codes,
            )
            if not any(isinstance(one.receipt, Refused) and one.receipt.by_server for one in said):
                return said
        return await self._send(
            where,
            messages,
            words,
            turn_id=turn_id,
            final=final,
            trail=trail,
            keeps_codes=keeps_codes,
        )

    def _merged(
        self, where: Conversation, segments: Parts, messages: list[Parts]
    ) -> MergedForward | None:
        if len(messages) < 2:
            return None  # it fits in one message
        name = self._name(where) if self._name else ""
        return merged(segments, messages, name=name) if name else None

    async def _send(
        self,
        where: Conversation,
        messages: Sequence[tuple[SentSegment, ...]],
        words: str,
        *,
        turn_id: str,
        final: bool,
        trail: list[str],
        keeps_codes: bool,
        pauses: Sequence[float] = (),
    ) -> tuple[SaidMessage, ...]:
        messages = with_mentions(
            messages, where=where, history=self._history, words=words, keeps_codes=keeps_codes
        )
        said = [SendMessage(where, message) for message in messages]
        actions = self._outbox.screened(said, "".join(trail))
        if not actions:
            return ()
        place = len(trail)
        told = list(map(sent_words, actions))
        trail += told  # at once: concurrent messages continue from it
        receipts = await self._outbox.send_all(
            actions, turn_id=turn_id, final=final, pauses=pauses, is_screened=True
        )
        sent = tuple(map(SaidMessage, actions, receipts))
        read = [words for words, one in zip(told, sent, strict=False) if one.may_be_read]
        unread = [""] * (len(actions) - len(read))  # keeps the places of others' words
        trail[place : place + len(actions)] = read + unread
        for one in sent:
            if isinstance(one.receipt, Confirmed):
                message_id = one.receipt.message_id
                self._history.know(_own_message(one.action, message_id, self._clock.now()))
                self._history.said(where, message_id, OwnWords(turn_id, one.words, final))
        return sent

    def report(self, refused: SaidMessage) -> None:
        """Alert owners to the refusal, in the server's words; if it blocks the conversation, that
        it is unreachable.
        """
        if refused.blocks_place:
            self._outbox.unreachable.tell(refused.action.conversation)
        elif isinstance(receipt := refused.receipt, Refused):
            reason = receipt.words or receipt.reason
            self._outbox.report_loss(refused.action, SendState.REFUSED, reason)


def undelivered(said: Sequence[SaidMessage]) -> Undelivered | None:
    """The worst outcome; None if all arrived or are drafts."""
    worst = None
    for one in said:
        match one.receipt:
            case Refused():
                return Undelivered.NOT_DELIVERED
            case Unknown() | Queued():
                worst = Undelivered.UNCONFIRMED
            case _:
                pass
    return worst


def note_on(said: tuple[SaidMessage, ...], words: Wording) -> str:
    """The note for the model if its words did not all arrive; else empty."""
    for arrived, one in enumerate(said):
        match one.receipt:
            case Confirmed():
                continue
            case Refused(reason=reason):
                what = words.about.refused.format(reason=reason)
                return render.delivery_note(words, what, arrived=arrived)
            case Unknown():
                return render.delivery_note(words, words.about.unconfirmed, arrived=arrived)
            case Queued():
                return render.delivery_note(words, words.about.queued, arrived=arrived)
            case Drafted(number=number):
                return words.about.drafted.format(number=number)
            case _:
                assert_never(one.receipt)
    return ""


class Postbox:
    """Posts the service's own lines as soon as possible. They belong to no turn: no task awaits
    their receipts, and no model reads them. `openly` is for lines that an owner asked for, which
    are sent in shadow mode too.
    """

    def __init__(
        self, *, outbox: Outbox, history: History, clock: Clock, openly: bool = False
    ) -> None:
        self._openly = openly
        self._outbox = outbox
        self._history = history
        self._clock = clock

    def post(
        self,
        where: Conversation,
        words: str,
        *,
        quote: str = "",
        about: str = "",
        then: Callable[[Receipt], None] | None = None,
    ) -> bool:
        """Queue the line, and call `then` with its receipt; False if the queue is full. The line is
        erased with the person or run that it is `about` (`bot/core/actions`), and may have words of
        others then.
        """
        action = SendMessage(where, (*((Quote(quote),) if quote else ()), Text(words)))
        receipt = self._outbox.post(action, openly=self._openly, name=about)
        if receipt is None:
            return False
        cap = Audience.EVERYONE if about else None
        receipt.add_done_callback(partial(self._posted, action, then, cap))
        return True

    def claim(
        self,
        action: SendMessage,
        claimed: Callable[[str], Sequence[Entry]],
        *,
        about: str = "",
        authority: Audience,
        then: Callable[[Receipt], None],
    ) -> None:
        """Say it, however much waits there, and write down together with that what is `claimed` by
        the id of its row: both are known, or neither, whenever the process ends. Its words are of
        people with this `authority`.
        """
        receipt = self._outbox.claim(action, claimed, name=about)
        receipt.add_done_callback(partial(self._posted, action, then, authority))

    def remark(
        self,
        where: Conversation,
        words: str,
        *,
        quote: str = "",
        about: str = "",
        then: Callable[[Receipt], None] | None = None,
    ) -> bool:
        """`post`, unless MAX_LINES lines of the service wait there: answers would wait for them."""
        has_room = self._outbox.lines(where) < MAX_LINES
        return has_room and self.post(where, words, quote=quote, about=about, then=then)

    def show(
        self,
        where: Conversation,
        words: str,
        *,
        name: str,
        unshown: Callable[[], None],
        about: str = "",
        language: Language = Language.CHINESE,
    ) -> None:
        """Send the words as a text file of that name; if the server takes no file, in messages with
        a heading in that language. `unshown` is called if they are too long for that, or the queue
        is full.
        """
        encoded = base64.b64encode(words.encode("utf-8", "replace")).decode()
        receipt = self._outbox.post(
            SendMessage(where, (Attachment("file", f"base64://{encoded}", f"{name}.txt"),)),
            name=about,
        )

        def show_in_pieces(done: asyncio.Future[Receipt]) -> None:
            if not isinstance(done.result(), Refused):
                return
            pieces = split_text(words, ROOM) if len(words) <= MAX_PIECES * ROOM else ()
            lines = [
                PIECE.format(language, name=name, number=number, pieces=len(pieces), words=piece)
                for number, piece in enumerate(pieces, 1)
            ]
            if not lines or not all(self.post(where, line, about=about) for line in lines):
                unshown()

        if receipt is None:
            unshown()
        else:
            receipt.add_done_callback(show_in_pieces)

    def _posted(
        self,
        action: SendMessage,
        then: Callable[[Receipt], None] | None,
        cap: Audience | None,
        done: asyncio.Future[Receipt],
    ) -> None:
        receipt = done.result()
        if isinstance(receipt, Confirmed):
            own = _own_message(action, receipt.message_id, self._clock.now())
            self._history.know(own if cap is None else relayed(own, cap))
        if then is not None:
            then(receipt)


def _own_message(action: SendMessage, message_id: str, at: float) -> MessageReceived:
    """A sent message in the form of a received one."""
    where = action.conversation
    return MessageReceived(
        self_id=where.platform_id,
        time=at,
        conversation=where,
        message_id=message_id,
        sender=Sender(where.platform_id),
        segments=tuple(map(as_received, action.segments)),
    )
