"""The `Speaker` port of a turn: the messages its run sends before the final answer.

The run and its subagents repeat nothing, and stay within the question's budget. Text that belongs
to the frame of the prompt is removed, as it is from the final answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from bot.core.conversation import Conversation, NotAConversation
from bot.core.errors import AlreadySaid
from bot.core.repetition import already_said, only_omits
from bot.core.segments import Mention, SendSegment, as_sent
from bot.outbox.delivery import Delivery, SaidMessage
from bot.policy.cq_codes import may_contain_codes, strip_meaningless_codes
from bot.policy.permissions import check_reach
from bot.prompt.frame_removal import FrameRemover
from frostagent.engine.budget import Budget
from frostagent.types import speech
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.runs import Asker
from frostagent.types.speech import (
    Attachment,
    Drafted,
    Face,
    MentionAll,
    Queued,
    Quote,
    Receipt,
    Refused,
    Text,
    Unknown,
)

REPEATED = "this was said already in this run, in the same words or nearly so"
ONLY_FRAME = (
    "messages: nothing of this is your own words: names with numbers in front, headings and "
    "quotations are put there by the chat. Say it in your own words, or not at all"
)
NO_MORE = (
    "nothing was sent: with its {number} messages this run has sent all it may before its final "
    "answer. Put the rest into that"
)
TOO_MANY = (
    "nothing was sent: this would be {number} messages in QQ, and {left} more may be sent before "
    "the final answer. Make it shorter, or put it into that"
)


@dataclass(slots=True)
class Heard:
    """What one conversation was sent: `texts` and digests of `media`; `trail` are the words of all
    messages there. QQ has not confirmed the `unsure` texts, and has refused the `refused` messages.
    """

    texts: list[str] = field(default_factory=list)
    trail: list[str] = field(default_factory=list)
    media: set[str] = field(default_factory=set)
    unsure: list[str] = field(default_factory=list)
    refused: list[SaidMessage] = field(default_factory=list)

    def knows(self, text: str, media: set[str]) -> bool:
        """Whether neither the text nor any of the media is new."""
        return media <= self.media and (not text.strip() or already_said(text, self.texts))


class TurnSpeaker(msgspec.Struct):
    """Checks the target, sends at once, and remembers what was sent. `said` are the words sent to
    its own conversation. `drafts` are the numbers of its latest words if they became drafts.
    `heard` is what each conversation was sent; a suspended run keeps it, but not over a restart.
    `question` is the id of the answered message, which quotes without an id refer to.
    """

    delivery: Delivery
    turn_id: str
    asker: Asker
    conversation: Conversation
    frames: FrameRemover = msgspec.field(default_factory=FrameRemover)
    budget: Budget = msgspec.field(default_factory=Budget)
    said: list[str] = []
    heard: dict[Conversation, Heard] = {}
    question: str = ""
    drafts: list[int] = []

    def note(self, receipts: Iterable[Receipt]) -> None:
        """Record which drafts its latest words became, if any."""
        self.drafts[:] = [one.number for one in receipts if isinstance(one, Drafted)]

    async def say(
        self, segments: tuple[speech.SendSegment, ...], *, session: str = "", allowed: bool = False
    ) -> tuple[Receipt, ...]:
        target = self._target(session)
        parts = self._own_words(self._quoting(tuple(map(as_sent, segments)), target))
        number = self.delivery.count(target, parts)
        if not number:
            return ()
        text, media = words_of(parts), digests_of(parts)
        heard = self.heard.setdefault(target, Heard())
        if heard.knows(text, media) or (
            target == self.conversation and heard_before(text, media, self.said)
        ):
            raise AlreadySaid(REPEATED)
        check_reach(
            self.asker,
            parts,
            active=self.conversation,
            target=target,
            allowed=allowed,
            language=self.delivery.language,
        )
        self._count(number)
        # At once: a concurrent message with the same words is a repetition.
        new = media - heard.media
        heard.texts.append(text)
        heard.media |= new
        trail = self.trail(target)
        said = await self.delivery.say(
            target, parts, turn_id=self.turn_id, trail=trail, keeps_codes=self.keeps_codes
        )
        if target == self.conversation:
            self.note(message.receipt for message in said)
        if not any(message.may_be_read for message in said):
            heard.texts.remove(text)
            heard.media -= new
        heard.refused += [one for one in said if isinstance(one.receipt, Refused)]
        if any(isinstance(one.receipt, Unknown | Queued) for one in said):
            heard.unsure += [text, *(one.words for one in said)]
        if target == self.conversation:
            # Words that QQ never confirmed may have been read: they are not repeated either.
            self.said += [message.words for message in said if message.may_be_read]
        return tuple(message.receipt for message in said)

    def trail(self, where: Conversation) -> list[str]:
        """The words of the messages that went there, in order; the list is shared with later
        senders.
        """
        trail = self.heard.setdefault(where, Heard()).trail
        if not trail and where == self.conversation:
            trail += self.said  # all that a suspended run keeps over a restart
        return trail

    def _quoting(
        self, segments: tuple[SendSegment, ...], target: Conversation
    ) -> tuple[SendSegment, ...]:
        """Resolve quotes without an id to the question; drop them elsewhere, as it is unknown."""
        of = Quote(self.question if target == self.conversation else "")
        named = (of if segment == Quote("") else segment for segment in segments)
        return tuple(segment for segment in named if segment != Quote(""))

    @property
    def keeps_codes(self) -> bool:
        """Whether its words may discuss CQ codes, which are then kept."""
        return self.frames.people.speak_of_codes

    def has_said(self, text: str) -> bool:
        """Whether the asker was sent this in the run, in nearly these words or a few more."""
        here = self.heard.get(self.conversation)
        said = (*self.said, *(here.texts if here else ()))
        return _adds_nothing(text, said)

    def is_sure_of(self, text: str) -> bool:
        """`has_said`, counting only messages that QQ has confirmed."""
        here = self.heard.get(self.conversation, Heard())
        sure = [one for one in (*self.said, *here.texts) if one not in here.unsure]
        return _adds_nothing(text, sure)

    @property
    def refused(self) -> SaidMessage | None:
        """The latest refused message of its own conversation, if none there was accepted."""
        here = self.heard.get(self.conversation, Heard())
        return here.refused[-1] if here.refused and not self.said else None

    @property
    def is_unsure(self) -> bool:
        """Whether words were sent to its own conversation and QQ has confirmed none of them."""
        here = self.heard.get(self.conversation, Heard())
        return bool(self.said) and all(one in here.unsure for one in self.said)

    def _own_words(self, segments: tuple[SendSegment, ...]) -> tuple[SendSegment, ...]:
        """Remove the frame of the prompt. Raises InvalidArguments if nothing is left."""
        own = tuple(
            replace(segment, text=self._own_text(segment.text))
            if isinstance(segment, Text)
            else segment
            for segment in segments
        )
        if own != segments and not self.delivery.count(self.conversation, own):
            raise InvalidArguments(ONLY_FRAME, fields=(ONLY_FRAME,))
        return own

    def _own_text(self, text: str) -> str:
        own = self.frames.cut(text)
        if not may_contain_codes(own) or self.keeps_codes:
            return own
        return strip_meaningless_codes(own)

    def _count(self, number: int) -> None:
        left = self.budget.sends_left
        if number > left:
            limit = self.budget.limits.sends
            raise ToolDenied(
                TOO_MANY.format(number=number, left=left) if left else NO_MORE.format(number=limit)
            )
        self.budget.take(sends=number)

    def _target(self, session: str) -> Conversation:
        if not session.strip():
            return self.conversation
        try:
            target = Conversation.parse(session)
        except NotAConversation as error:
            raise InvalidArguments(
                f"session: {error}; leave it out for this conversation"
            ) from error
        # Equal conversations may differ in the group of a temporary session.
        return self.conversation if target == self.conversation else target


def _adds_nothing(text: str, said: Sequence[str]) -> bool:
    return already_said(text, said) or only_omits(text, said)


def heard_before(text: str, media: set[str], said: list[str]) -> bool:
    """Whether an earlier segment of the run said it; that is unknown for media."""
    return not media and already_said(text, said)


def words_of(segments: Iterable[SendSegment]) -> str:
    """The words of the segments, including mentions and faces."""
    words: list[str] = []
    for segment in segments:
        match segment:
            case Text(text=text):
                words.append(text)
            case Mention(user_id=user_id):
                words.append(f" @{user_id} ")
            case MentionAll():
                words.append(" @all ")
            case Face(id=id_):
                words.append(f" [face {id_}] ")
            case Quote() | Attachment():
                continue
    return "".join(words)


def digests_of(segments: Iterable[SendSegment]) -> set[str]:
    """A digest for each attachment, equal for equal sources."""
    return {
        sha256(f"{segment.kind} {segment.source}".encode("utf-8", "surrogatepass")).hexdigest()
        for segment in segments
        if isinstance(segment, Attachment)
    }
