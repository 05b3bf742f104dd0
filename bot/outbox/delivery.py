"""Saying things in conversations: an answer or a tool's message in as few QQ messages as it needs,
and the lines of the service itself. What arrived is known again when somebody quotes it.

Text always leaves as text segments, never as a string a server would search for CQ codes.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from msgspec import Struct

from bot.core.actions import MergedForward, SendMessage, SentSegment, as_received
from bot.core.events import MessageReceived, Sender
from bot.core.journal import Entry, SendState, Undelivered
from bot.core.language import CATALOGUE
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
from frostagent.text.language import Language, Phrase
from frostagent.types.conversation import Conversation
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

MAX_LINES = 5  # of the service that wait in a conversation, beyond which it makes no remark
MAX_PIECES = 10  # messages that show what a server does not take as a file
ROOM = LIMIT - 40  # characters of each, below a line on which of them it is

PIECE = Phrase(
    "{name} 完整内容（{number}/{pieces}）\n{words}", "{name} in full ({number}/{pieces})\n{words}"
)
CATALOGUE.register(__name__, globals())


class SaidMessage(Struct, frozen=True):
    """One QQ message and what became of it."""

    action: SendMessage
    receipt: Receipt

    @property
    def may_be_read(self) -> bool:
        """Whether somebody has read it, may have, or will: then it is not to be said again."""
        return not isinstance(self.receipt, Refused)

    @property
    def reason(self) -> str:
        """Why it was refused; empty if it was not."""
        return self.receipt.reason if isinstance(self.receipt, Refused) else ""

    @property
    def blocks_place(self) -> bool:
        """Whether QQ takes nothing else there, either."""
        return isinstance(self.receipt, Refused) and self.receipt.blocks_place

    @property
    def words(self) -> str:
        return self.action.words


class Delivery:
    """Says things in conversations, in order.

    If `paced`, a short answer is said message by message, as people write. What is long is a merged
    forward in which the bot speaks by its `name` there, in pieces if it has none. `tongue` is what
    owners read who are asked first.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        history: History,
        clock: Clock,
        paced: bool = False,
        name: Callable[[Conversation], str] | None = None,
        tongue: Language = Language.CHINESE,
        limit: int = LIMIT,
    ) -> None:
        self._outbox = outbox
        self._history = history
        self._clock = clock
        self._paced = paced
        self._name = name
        self.tongue = tongue
        self._limit = limit

    def count(self, where: Conversation, segments: Parts) -> int:
        """How many QQ messages they would be there."""
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
        """Say the text where the message came from, a short one at the pace of a person; in a group
        its first piece quotes the message. `trail` and `keeps_codes` are as in `say`.
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
        """Send the segments now, in as few QQ messages as they need, with nothing in between; what
        is long as a merged forward, or in pieces if QQ refuses that. They go on from the words of a
        `trail`, and lengthen it by what may be read. CQ codes in them are read as codes, unless it
        `keeps_codes`, because they are the subject.

        After a message that was refused, or whose fate is unknown, the rest is not sent.
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
            if not any(isinstance(one.receipt, Refused) and one.receipt.by_qq for one in said):
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
            return None  # one has room for it
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
        trail += told  # at once: what is said beside this goes on from it
        receipts = await self._outbox.send_all(
            actions, turn_id=turn_id, final=final, pauses=pauses, is_screened=True
        )
        sent = tuple(map(SaidMessage, actions, receipts))
        read = [words for words, one in zip(told, sent, strict=False) if one.may_be_read]
        unread = [""] * (len(actions) - len(read))  # others' words behind them keep their place
        trail[place : place + len(actions)] = read + unread
        for one in sent:
            if isinstance(one.receipt, Confirmed):
                message_id = one.receipt.message_id
                self._history.know(_own_message(one.action, message_id, self._clock.now()))
                self._history.said(where, message_id, OwnWords(turn_id, one.words, final))
        return sent

    def report(self, refused: SaidMessage) -> None:
        """Report to the owners that QQ did not take it, in the server's words; if that blocks the
        place, that it is unreachable.
        """
        if refused.blocks_place:
            self._outbox.unreachable.tell(refused.action.conversation)
        elif isinstance(receipt := refused.receipt, Refused):
            reason = receipt.words or receipt.reason
            self._outbox.report_loss(refused.action, SendState.REFUSED, reason)


def undelivered(said: Sequence[SaidMessage]) -> Undelivered | None:
    """What is wrong with the delivery of these; None if all arrived, or are drafts."""
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
    """The note for the model on the delivery of its words; empty if all of them arrived."""
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
    """Says the lines of the service itself, as soon as possible. They belong to no turn: nobody
    waits for their receipts, and no model reads them.

    `openly` if it says what an owner asked for, which is said in shadow mode too.
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
        """Say it, and call `then` with its receipt; False if too much waits there. It is forgotten
        with the person or run that it is `about` (`bot/core/actions`).
        """
        action = SendMessage(where, (*((Quote(quote),) if quote else ()), Text(words)))
        receipt = self._outbox.post(action, openly=self._openly, name=about)
        if receipt is None:
            return False
        receipt.add_done_callback(partial(self._posted, action, then))
        return True

    def claim(
        self,
        action: SendMessage,
        claimed: Callable[[str], Sequence[Entry]],
        *,
        about: str = "",
        then: Callable[[Receipt], None],
    ) -> None:
        """Say it, however much waits there, and write down together with that what is `claimed` by
        the id of its row: both are known, or neither, whenever the process ends.
        """
        receipt = self._outbox.claim(action, claimed, name=about)
        receipt.add_done_callback(partial(self._posted, action, then))

    def remark(self, where: Conversation, words: str, *, quote: str = "", about: str = "") -> bool:
        """Say it, unless `MAX_LINES` lines of the service wait there already, so that answers would
        wait for them; whether it is said.
        """
        has_room = self._outbox.lines(where) < MAX_LINES
        return has_room and self.post(where, words, quote=quote, about=about)

    def show(
        self,
        where: Conversation,
        words: str,
        *,
        name: str,
        unshown: Callable[[], None],
        about: str = "",
        tongue: Language = Language.CHINESE,
    ) -> None:
        """Send the words as a text file of that name; if the server takes no file, in messages with
        a heading in that language.

        `unshown` is called if they are too long for that, or too much waits there.
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
                PIECE.format(tongue, name=name, number=number, pieces=len(pieces), words=piece)
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
        done: asyncio.Future[Receipt],
    ) -> None:
        receipt = done.result()
        if isinstance(receipt, Confirmed):
            self._history.know(_own_message(action, receipt.message_id, self._clock.now()))
        if then is not None:
            then(receipt)


def _own_message(action: SendMessage, message_id: str, at: float) -> MessageReceived:
    """A message of ours that arrived, as if it had been received."""
    where = action.conversation
    return MessageReceived(
        self_id=where.platform_id,
        time=at,
        conversation=where,
        message_id=message_id,
        sender=Sender(where.platform_id),
        segments=tuple(map(as_received, action.segments)),
    )
