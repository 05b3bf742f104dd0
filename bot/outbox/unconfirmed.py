"""Sends that may have been delivered: nobody has answered, and they are looked for in what QQ
shows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from bot.core.actions import MergedForward, SendMessage, as_received
from bot.core.events import MessageReceived
from bot.core.journal import KnownLine, SendChanged, SendState
from bot.core.segments import File, Forward, Picture, Record, Segment, Sticker, Video
from bot.memory.lru import LRU
from bot.outbox.sends import Rows, Send
from bot.policy.answered_questions import SKEW
from bot.policy.message_aliases import find_aliases
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.speech import Attachment, SendSegment, Text


def is_same_message(seen: MessageReceived, sent: SendMessage) -> bool:
    """Whether the account's own message says what was sent: the same words, blanks aside, and as
    many media; of a merged forward QQ shows no words.
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


BASE64 = "base64://"


def as_line(sent: SendMessage, message_id: str, at: float) -> KnownLine:
    """A message of ours as a history shows it, without what it weighs."""
    parts = (
        Forward("") if isinstance(part, MergedForward) else _with_size(part)
        for part in sent.segments
    )
    return KnownLine(message_id, sent.conversation.platform_id, at, tuple(parts))


def is_same_file(seen: MessageReceived, sent: KnownLine) -> bool:
    """Whether a message is nothing but the file that was sent: by its name, and by its size if both
    are known. Words prove nothing: people repeat what the bot said.
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


MAX_SENDS = 200
MAX_CONFIRMED = 5000
LATELY = 60.0  # seconds in which an event may tell a send as if another had said it
MISSING = "the history shows that it was not delivered"


class Unconfirmed:
    """The sends whose fate nobody knows, and the messages by which others were confirmed: each
    confirms one.
    """

    def __init__(self, *, rows: Rows, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._sends: deque[Send] = deque(maxlen=MAX_SENDS)
        self._confirmed = LRU[tuple[Conversation, str], None](MAX_CONFIRMED)
        self._said: deque[tuple[Conversation, KnownLine]] = deque(maxlen=MAX_SENDS)  # lately
        self._news: asyncio.Queue[Conversation] = asyncio.Queue()

    def add(self, send: Send) -> None:
        """Look out for a send from now on: nobody knows what became of it."""
        send.doubted = self._clock.now()
        self._sends.append(send)
        self._news.put_nowait(send.action.conversation)

    def look_again(self) -> None:
        """Name every place once more: with a new connection its history may be read."""
        for where in {send.action.conversation for send in self._sends}:
            self._news.put_nowait(where)

    async def next(self) -> Conversation:
        """Wait for a place where something is to be looked for: now, or soon."""
        return await self._news.get()

    def places(self, account: int) -> tuple[Conversation, ...]:
        """The conversations of this account with sends in doubt, each once."""
        places = (send.action.conversation for send in self._sends)
        return tuple(dict.fromkeys(where for where in places if where.platform_id == account))

    @property
    def sends(self) -> list[Send]:
        """All of them, the oldest first."""
        return list(self._sends)

    def at(self, where: Conversation) -> list[Send]:
        """The sends in doubt there."""
        return [send for send in self._sends if send.action.conversation == where]

    def holds(self, send: Send) -> bool:
        """Whether the send is still in doubt."""
        return send in self._sends

    def confirm(self, send: Send, message_id: str) -> None:
        """Note that the send is this message."""
        where = send.action.conversation
        if (where, message_id) not in self._confirmed:
            self._said.append((where, as_line(send.action, message_id, self._clock.now())))
        self._confirmed.keep((where, message_id), None)

    def is_known(self, message: MessageReceived) -> bool:
        """Whether a send of this process was confirmed by it."""
        return (message.conversation, message.message_id) in self._confirmed

    def unexplained(self, history: Sequence[MessageReceived]) -> list[MessageReceived]:
        """The account's own messages in a history that are none which was confirmed lately, under
        whatever id.
        """
        self._forget_old()
        own = [message for message in history if message.is_own]
        known = [line for where, line in self._said if own and where == own[0].conversation]
        names = find_aliases(own, known)
        return [message for message in own if message.message_id not in names]

    def tells(self, message: MessageReceived, sends: Iterable[Send]) -> bool:
        """Whether a message that is told as somebody's is a file which was sent there a moment ago;
        each is told once. `sends` are those that no answer has come to.
        """
        if not any(isinstance(part, File) for part in message.segments):  # as nearly always
            return False
        self._forget_old()
        for said in self._said:
            if said[0] == message.conversation and is_same_file(message, said[1]):
                self._said.remove(said)
                return True
        return any(
            send.found is None and is_same_file(message, as_line(send.action, "", send.at))
            for send in sends
        )

    def _forget_old(self) -> None:
        begin = self._clock.now() - LATELY
        while self._said and self._said[0][1].time < begin:
            self._said.popleft()

    def compare(
        self, history: Iterable[MessageReceived], sends: Callable[[Conversation], Iterable[Send]]
    ) -> None:
        """Find those of the sends in a place that QQ shows as said."""
        for message in history:
            if not message.is_own or not message.has_identity or self.is_known(message):
                continue  # words of the bot without an id are those that failed
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
            self._rows.changed(send, SendState.CONFIRMED, message_id=message_id)

    def lost(self, sends: Collection[Send]) -> tuple[SendChanged, ...]:
        """Look no more for these, which were never delivered; the entries for the caller to write
        down.
        """
        for send in sends:
            self._sends.remove(send)
            send.state = SendState.DROPPED
            self._rows.settle(send)
        now = self._clock.now()
        return tuple(
            SendChanged(send_id=send.send_id, state=send.state, at=now, reason=MISSING)
            for send in sends
        )
