"""From what is said to actions: QQ messages, split, quoted, in order, with a receipt each.

Text always leaves as text segments, never as a string a server would search for CQ codes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from bot.core.actions import MergedForward, SendMessage, SentSegment, as_received
from bot.core.events import MessageReceived, Sender
from bot.core.journal import Undelivered
from bot.core.redaction import OwnWords
from bot.memory.history import History
from bot.outbox.layout import LIMIT, Parts, in_turns, merged, messages_of, pauses
from bot.outbox.markdown import untouched
from bot.outbox.outbox import Outbox
from bot.policy.blocked_words import sent_words as read_in
from bot.policy.cq_codes import Code, may_contain_codes, replace_codes
from bot.policy.fallback_replies import is_quoted
from bot.prompt import render
from bot.prompt.wording import Wording
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.speech import (
    Confirmed,
    Drafted,
    Face,
    Mention,
    Queued,
    Quote,
    Receipt,
    Refused,
    Text,
    Unknown,
)

Who: TypeAlias = Callable[[int, str], tuple[int, str] | None]
"""Of a number its account and the name last seen; None where nobody has it, or the name that
stands before it, if any, is another's.
"""

MOST: Final = 3  # people mentioned in one thing said
NUMBER: Final = re.compile(r"[#＃](\d{1,7})(?!\d)(?:[#＃]\1(?!\d))*")  # models say it twice
LONGEST: Final = 32  # characters of a name, with what stands before it
CALLED: Final = re.compile(r"(?<![A-Za-z0-9._-])@([^\s@#＃]+)$")
JOINED: Final = re.compile(r"[a-z0-9._-]$")  # an address, not a mention


def may_call(text: str) -> bool:
    """Whether anybody could be called in it: in most answers nobody is."""
    return any(map(text.__contains__, "#＃")) and NUMBER.search(text) is not None


def mentioning(
    text: str, who: Who, *, most: int = MOST, but: Collection[str] = ()
) -> list[Text | Mention]:
    """The text with mentions in it, `most` of them; whoever else is meant is called by name.

    Nobody is called by what stands in one of the texts in `but`: code, or an address.
    """
    parts: list[Text | Mention] = []
    words, done, left = "", 0, most
    for number in NUMBER.finditer(text):
        words += text[done : number.start()]
        done = number.end()
        found = who(int(number[1]), "")
        name = _name(words, found[1] if found else "")
        found = who(int(number[1]), name) if name else None
        if not name or any(f"@{name}{number[0]}" in one for one in but):
            words += number[0]
        elif found is not None and left:
            left -= 1
            parts += [Text(words[: -len(name) - 1]), Mention(found[0], name)]
            words = "" if text[done : done + 1].isspace() or done == len(text) else " "
    parts.append(Text(words + text[done:]))
    return [part for part in parts if not isinstance(part, Text) or part.text]


def naming(text: str, *, but: Collection[str] = ()) -> str:
    """The text with whoever it calls called by name alone: where nobody can be mentioned."""
    said = mentioning(text, lambda *_: None, but=but)
    return "".join(part.text for part in said if isinstance(part, Text))


def _name(words: str, known: str) -> str:
    """The name that is called at the end of these words; empty where none is."""
    called, known = words[-LONGEST:].casefold(), f"@{known}".casefold()
    if len(known) > 1 and called.endswith(known) and not JOINED.search(called[: -len(known)]):
        return words[1 - len(known) :]
    match = CALLED.search(words[-LONGEST:])
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class Manner:
    """How answers are said: `paced`, message by message as people write; what is long as a merged
    forward in which the bot speaks by its `name` there, in pieces where it has none. Owners who
    are asked first read their `tongue`.
    """

    paced: bool = False
    name: Callable[[Conversation], str] | None = None
    tongue: Language = Language.CHINESE


PLAIN: Final = Manner()


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
    """Says things in conversations, in order."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        history: History,
        clock: Clock,
        manner: Manner = PLAIN,
        limit: int = LIMIT,
    ) -> None:
        self._outbox = outbox
        self._history = history
        self._clock = clock
        self._manner = manner
        self._limit = limit

    @property
    def tongue(self) -> Language:
        """The owners'."""
        return self._manner.tongue

    def count(self, where: Conversation, segments: Parts) -> int:
        """How many QQ messages they would be there."""
        messages = messages_of(segments, limit=self._limit)
        return 1 if self._merged(where, segments, messages) else len(messages)

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
        is long as a merged forward, or in pieces where QQ refuses that. They go on from the words
        of a `trail`, and lengthen it by what may be read. CQ codes in them are what they mean,
        unless it `keeps_codes`, as where they are spoken of.

        After a message that was refused, or whose fate is unknown, the rest is not sent.
        """
        trail = [] if trail is None else trail
        say = partial(
            self._send,
            where,
            turn_id=turn_id,
            final=final,
            trail=trail,
            keeps_codes=keeps_codes,
        )
        messages, words = messages_of(segments, limit=self._limit), _words_of(segments)
        # A temporary session takes no forward (onebot.md 5 names no parameter for its group).
        if not where.via_group and (merged := self._merged(where, segments, messages)):
            said = await say([(merged,)], words)
            if not any(is_refused_by_qq(one.receipt) for one in said):
                return said
        return await say(messages, words)

    def _merged(
        self, where: Conversation, segments: Parts, messages: list[Parts]
    ) -> MergedForward | None:
        if len(messages) < 2:
            return None  # one has room for it
        name = self._manner.name(where) if self._manner.name else ""
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
        kept = untouched(words)
        if may_contain_codes(words) and not keeps_codes:
            messages = list(self._reading(where, messages, kept))
        if may_call(words):
            messages = list(self._calling(where, messages, kept))
        said = [SendMessage(where, message) for message in messages]
        actions = self._outbox.screened(said, "".join(trail))
        if not actions:
            return ()
        place = len(trail)
        trail += map(read_in, actions)  # at once: who speaks beside this goes on from it
        receipts = await self._outbox.send_all(actions, turn_id=turn_id, final=final, pauses=pauses)
        sent = tuple(map(SaidMessage, actions, receipts))
        read = [read_in(one.action) for one in sent if one.may_be_read]
        unread = [""] * (len(actions) - len(read))  # others' words behind them keep their place
        trail[place : place + len(actions)] = read + unread
        for one in sent:
            if isinstance(one.receipt, Confirmed):
                self._remember(one.action, one.receipt.message_id)
                own = OwnWords(turn_id, one.words, final)
                self._history.said(where, one.receipt.message_id, own)
        return sent

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
        trail = [] if trail is None else trail
        first: Parts = (Quote(message.message_id),) if is_quoted(message) else ()
        segments, where = (*first, Text(text)), message.conversation
        if self._manner.paced and (turns := in_turns(segments)):
            say = partial(self._send, where, turns, text, pauses=pauses(turns))
        else:
            say = partial(self.say, where, segments)
        return await say(turn_id=turn_id, final=True, trail=trail, keeps_codes=keeps_codes)

    def report(self, refused: SaidMessage) -> None:
        """Tell the owners that QQ did not take it, in the server's words; that the place is
        unreachable if it blocks that.
        """
        if refused.blocks_place:
            self._outbox.unreachable.tell(refused.action.conversation)
        elif isinstance(receipt := refused.receipt, Refused):
            self._outbox.report(refused.action, receipt.words or receipt.reason)

    def _reading(
        self,
        where: Conversation,
        messages: Sequence[tuple[SentSegment, ...]],
        kept: Collection[str],
    ) -> Iterator[tuple[SentSegment, ...]]:
        """The messages with what CQ codes in them mean: people of a group are mentioned, a message
        that is known there is quoted, unless another is already. The rest is cut.
        """
        left = MOST if where.is_group else 0
        for message in messages:
            parts: list[SentSegment] = []

            def means(code: Code, parts: list[SentSegment] = parts) -> Text | Code | None:
                nonlocal left
                match code:
                    case Mention(user_id=number):
                        if (found := self._called(where, number)) is None or left:
                            left -= found is not None
                            return found
                        return Text(f"@{found.name}") if found.name else None
                    case Quote(message_id=message_id) if self._history.known(where, message_id):
                        return None if any(isinstance(one, Quote) for one in parts) else code
                    case Face():
                        return code
                    case _:
                        return None

            for segment in message:
                match segment:
                    case Text(text=text):
                        parts += replace_codes(text, means, but=kept)
                    case MergedForward(nodes=nodes, name=name):
                        parts.append(MergedForward(tuple(self._in_words(where, nodes, kept)), name))
                    case _:
                        parts.append(segment)
            if any(not isinstance(part, Quote) for part in parts):
                yield tuple(parts)

    def _in_words(
        self, where: Conversation, nodes: Sequence[str], kept: Collection[str]
    ) -> Iterator[str]:
        """The same where nobody is mentioned and nothing quoted: people are called by name."""

        def means(code: Code) -> Text | None:
            if not isinstance(code, Mention):
                return None
            found = self._called(where, code.user_id)
            return Text(f"@{found.name}") if found is not None and found.name else None

        for node in nodes:
            said = replace_codes(node, means, but=kept)
            if words := "".join(part.text for part in said if isinstance(part, Text)):
                yield words

    def _calling(
        self,
        where: Conversation,
        messages: Sequence[tuple[SentSegment, ...]],
        kept: Collection[str],
    ) -> Iterator[tuple[SentSegment, ...]]:
        """The messages with the people in them who are called by name and number: mentioned, as QQ
        does that in groups, or by name; nobody by what is `kept` as it is.
        """
        called = (isinstance(part, Mention) for message in messages for part in message)
        left = max(0, MOST - sum(called)) if where.is_group else 0
        who = partial(self._who, where)
        for message in messages:
            parts: list[SentSegment] = []
            for segment in message:
                match segment:
                    case Text(text=text):
                        named = mentioning(text, who, most=left, but=kept)
                        left -= sum(isinstance(part, Mention) for part in named)
                        parts += named
                    case MergedForward(nodes=nodes, name=name):
                        named_nodes = tuple(naming(node, but=kept) for node in nodes)
                        parts.append(MergedForward(named_nodes, name))
                    case _:
                        parts.append(segment)
            yield tuple(parts)

    def _called(self, where: Conversation, number: int) -> Mention | None:
        """Who is meant by the number of an account, or by that of a prompt: models know these."""
        speakers = self._history.speakers
        user_id = number if speakers.knows(where, number) else speakers.user_id(where, number)
        return None if user_id is None else Mention(user_id, speakers.name(where, user_id))

    def _who(self, where: Conversation, number: int, name: str) -> tuple[int, str] | None:
        speakers = self._history.speakers
        if (user_id := speakers.user_id(where, number, name)) is None:
            return None
        return user_id, speakers.name(where, user_id)

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


def undelivered(said: Sequence[SaidMessage]) -> Undelivered | None:
    """What is wrong with the delivery of these; None if all arrived, or are drafts."""
    receipts = [one.receipt for one in said]
    if any(isinstance(one, Refused) for one in receipts):
        return Undelivered.NOT_DELIVERED
    if any(isinstance(one, Unknown | Queued) for one in receipts):
        return Undelivered.UNCONFIRMED
    return None


def _words_of(segments: Parts) -> str:
    return "".join([segment.text for segment in segments if isinstance(segment, Text)])


def is_refused_by_qq(receipt: Receipt) -> bool:
    """Whether QQ itself did not take it: in another form it may."""
    return isinstance(receipt, Refused) and receipt.by_qq


def note_on(said: tuple[SaidMessage, ...], words: Wording) -> str:
    """The note for the model on the delivery of its words; empty where all of them arrived."""
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
