"""Drafts that wait for an owner's decision, and the text that shows a draft to owners. Numbers and
turns survive a restart.

The text of a draft is journalled as sends of its turn that were never queued, so it is erased with
the turn. This module stores which number belongs to which turn, one row per group. In the text for
owners only the bot writes at the start of a line; text of others is indented or kept in one line.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping

from cachetools import LRUCache
from msgspec import Struct
from msgspec.structs import replace

from bot.core import codec
from bot.core.actions import MAX_SOURCE, SendMessage
from bot.core.conversation import Conversation
from bot.core.drafts import DraftMedia
from bot.core.journal import PlaceSet
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.prompt.render import INNER_QUOTES
from frostagent.engine.authority import in_one_line
from frostagent.types.ports import Clock
from frostagent.types.speech import Attachment

logger = logging.getLogger(__name__)

SETTING = "drafts"
LASTS = 86_400.0  # seconds that a draft waits
MOST = 50  # waiting drafts per group; the oldest ones go first
MAX_PAST = 200  # ended drafts whose outcome is remembered
MEDIA = 32 * 1024 * 1024  # characters of media in memory, and the maximum for one draft
MAX_GROUP = 24  # characters of a group's name
MAX_QUESTION = 80
MAX_CALL = 200  # characters of a call that was not run

HEAD = Phrase("[草稿 D{number} {group}]", "[Draft D{number} {group}]")
SHADOW = Phrase("[影子 {group}]", "[Shadow {group}]")
HOW = Phrase(
    "回复「发 D{number}」发出去，或「改 D{number} 新的话」；不回复就不发。",
    'Answer "send D{number}" to publish it, or "edit D{number} other words"; else it stays here.',
)
NOT_RUN = Phrase("没有做：{call}", "Not done: {call}")
UNSHOWN = Phrase(
    "一小时内的草稿太多，有 {count} 条没有给你看。",
    "Too many drafts in an hour: {count} were not shown to you.",
)
TAKEN_BACK = Phrase("提问撤回了，没有发", "its question was recalled, it was left")
RECALLED = Phrase(
    "D{number} 不用管了：提问撤回了，没有发。",
    "D{number} needs no word any more: its question was recalled. It is not published.",
)
FORGOTTEN = Phrase("记录删掉了，没有发", "its words are forgotten, it was left")
LEFT = Phrase("没有发", "it was left")
GIVEN_UP = Phrase(
    "群 {group} 不再是影子，还在等的 {count} 条草稿不发了。",
    "Group {group} is no shadow any more: {count} drafts that waited are given up.",
)
CATALOGUE.register(__name__, globals())
NUMBERED = re.compile(r"\[(?:草稿|Draft) D([0-9]{1,9}) ")


class KeptDraft(Struct, frozen=True):
    """A waiting draft. `at` is its time by our clock, in seconds since 1970. `published` is when
    sending began, or 0; from then on its delivery is unconfirmed. `asked` is the message id of its
    question, or empty. `by` is who published it; `changes` means that this person replaced the
    text.
    """

    number: int
    turn_id: str
    at: float
    published: float = 0.0
    asked: str = ""
    by: str = ""
    changes: bool = False


class _Row(Struct, frozen=True):
    last: int
    waiting: tuple[KeptDraft, ...]


class Drafts:
    """All waiting drafts by number; a number is never reused. `shelf` holds media too large for the
    journal; `run` keeps it in step with the drafts. `forgotten` is the outcome of drafts whose text
    was erased.
    """

    def __init__(
        self,
        *,
        store: Store,
        choices: Choices,
        clock: Clock,
        shelf: DraftMedia | None = None,
        forgotten: str = "",
    ) -> None:
        self._store = store
        self._choices = choices
        self._clock = clock
        self._shelf = shelf
        self._shelved: dict[int, str] = {}  # file names on the shelf, or about to be there
        self._unshelved: set[int] = set()
        self._news = asyncio.Event()
        self._forgotten = forgotten
        self._is_doubted = False
        self.is_read = False  # until then the numbers in use are unknown
        self._waiting: dict[Conversation, dict[int, KeptDraft]] = {}
        self._last = 0
        self._media: LRUCache[int, tuple[SendMessage, ...]] = LRUCache(MEDIA, getsizeof=_size)
        self._past: LRUCache[int, str] = LRUCache(MAX_PAST)

    async def start(self) -> bool:
        """Load the waiting drafts. Returns False if they cannot be read now: try again, and do not
        add a draft before.
        """
        if self.is_read:
            return True
        if (stored := await self._choices.settings(SETTING)) is None:
            return False
        for where, value in stored.items():
            row = _read(value)
            self._last = max(self._last, row.last)
            here = self._waiting.setdefault(where, {})
            for one in row.waiting:
                here.setdefault(one.number, one)
        self.is_read = True
        self._is_doubted |= bool(self.open)  # an erasure may have run while the bot was stopped
        self._shelved |= {number: _name(one) for number, (_, one) in self.open.items()}
        self._news.set()
        return True

    @property
    def open(self) -> Mapping[int, tuple[Conversation, KeptDraft]]:
        """All waiting drafts, oldest first."""
        found = [(where, one) for where, here in self._waiting.items() for one in here.values()]
        return {one.number: (where, one) for where, one in sorted(found, key=lambda it: it[1].at)}

    def is_over(self, one: KeptDraft) -> bool:
        return self._clock.now() >= one.at + LASTS

    def past(self, number: int) -> str:
        """Return the outcome of an ended draft, or an empty string if it is unknown."""
        return self._past.get(number, "")

    def add(
        self, where: Conversation, turn_id: str, *, asked: str = ""
    ) -> tuple[KeptDraft, PlaceSet]:
        """Add a draft that answers the message `asked`. The caller journals the returned entry
        together with the draft's text.
        """
        self._last += 1
        one = KeptDraft(self._last, turn_id, self._clock.now(), asked=asked)
        here = self._waiting.setdefault(where, {})
        here[one.number] = one
        old = [each.number for each in here.values() if self.is_over(each)]
        for number in (*old, *[number for number in here if number not in old][:-MOST]):
            del here[number]
            self._put_away(number)
        return one, self._entry(where)

    def publish(self, number: int, *, by: str = "", changes: bool = False) -> PlaceSet:
        """Mark a draft as being sent. The caller journals the returned entry."""
        where, one = self.open[number]
        self._waiting[where][number] = replace(
            one, published=self._clock.now(), by=by, changes=changes
        )
        return self._entry(where)

    def keep(self, number: int) -> PlaceSet:
        """Undo `publish`: the draft was not sent and waits again."""
        where, one = self.open[number]
        self._waiting[where][number] = replace(one, published=0.0)
        return self._entry(where)

    def end(self, number: int, what: str) -> PlaceSet:
        """Remove a draft; `what` is its outcome."""
        where, _ = self.open[number]
        del self._waiting[where][number]
        self._media.pop(number, None)
        self._put_away(number)
        self._past[number] = what
        return self._entry(where)

    def give_up(self, where: Conversation, what: str) -> tuple[int, PlaceSet]:
        """End all drafts of a group except those being sent. Returns their number and the entry."""
        here = self._waiting[where]
        given_up = [one.number for one in here.values() if not one.published]
        for number in given_up:
            self.end(number, what)
        return len(given_up), self._entry(where)

    def hold(self, one: KeptDraft, actions: tuple[SendMessage, ...]) -> None:
        """Keep the draft's media in memory, and on the shelf if it is too large for the journal."""
        if not 0 < _size(actions) <= MEDIA:
            return
        self._media[one.number] = actions
        if any(len(part.source) > MAX_SOURCE for part in _media_of(actions)):
            self._shelved[one.number] = _name(one)
            self._unshelved.add(one.number)
            self._news.set()

    async def held(self, number: int) -> tuple[SendMessage, ...]:
        """Return the draft's sends with media, or nothing if the media is gone."""
        if actions := self._media.get(number, ()):
            return actions
        if self._shelf is None or (name := self._shelved.get(number)) is None:
            return ()
        if not (content := await self._shelf.find(name)):
            return ()
        return _unpacked(content)

    def forget(self) -> None:
        """Someone's data was erased: `sift` will find drafts that lost their text. Others stay."""
        self._is_doubted = True
        self._news.set()

    async def sift(self) -> None:
        """After an erasure, end the drafts whose text is no longer in the journal. A draft that is
        being sent stays until its delivery is settled.
        """
        if not self._is_doubted or not await self._store.commit():
            return
        self._is_doubted = False
        stored = await self._choices.settings(SETTING)
        lost = [one for one in self.open.values() if await self._is_lost(one[1])]
        if stored is None or not await self._store.commit():  # some texts may have been unreadable
            self._is_doubted = True
            return
        for where, one in lost:
            if one.number not in self._waiting[where]:
                continue
            logger.info("D%d ends: %s", one.number, self._forgotten)
            entry = self.end(one.number, self._forgotten)
            # Nothing may be written again for an erased group, yet the last number must be kept:
            # write it to another group's row.
            kept = where if where in stored else next(iter(stored), None)
            if kept is not None:
                self._store.put(entry if kept == where else self._entry(kept))

    async def _is_lost(self, one: KeptDraft) -> bool:
        return not one.published and await self._store.spoken(one.turn_id) is None

    async def run(self) -> None:
        """Keep the media on the shelf in step with the drafts."""
        while self._shelf is not None:
            await self._news.wait()
            self._news.clear()
            await self.sift()
            while self._unshelved:
                number = self._unshelved.pop()
                if (actions := self._media.get(number)) and (name := self._shelved.get(number)):
                    await self._shelf.keep(name, codec.encode(actions))
            if self.is_read:  # until then the files of the previous process cannot be told apart
                await self._shelf.keep_only(frozenset(self._shelved.values()))

    def look(self) -> None:
        """Remove the media of expired drafts."""
        for number, (_, one) in self.open.items():
            if self.is_over(one):
                self._put_away(number)

    def _put_away(self, number: int) -> None:
        if self._shelved.pop(number, None) is not None:
            self._news.set()

    def _entry(self, where: Conversation) -> PlaceSet:
        row = _Row(self._last, tuple(self._waiting[where].values()))
        return PlaceSet(where, SETTING, codec.write(row))


def _read(value: str) -> _Row:
    try:
        row: _Row = codec.read(_Row, value)
    except codec.Unreadable:  # written by another version
        return _Row(0, ())
    return row


def _media_of(actions: tuple[SendMessage, ...]) -> Iterator[Attachment]:
    parts = (part for action in actions for part in action.segments)
    return (part for part in parts if isinstance(part, Attachment))


def _size(actions: tuple[SendMessage, ...]) -> int:
    return sum(len(part.source) for part in _media_of(actions))


def _name(one: KeptDraft) -> str:
    """File name on the shelf. It includes the turn, because a new journal restarts its numbers."""
    return f"{one.number}-{one.turn_id}"


def _unpacked(content: bytes) -> tuple[SendMessage, ...]:
    try:
        actions: tuple[SendMessage, ...] = codec.read(tuple[SendMessage, ...], content)
    except codec.Unreadable:
        return ()
    return actions


# --- how owners are shown one ---------------------------------------------------------------------


def draft_number_in(text: str) -> int | None:
    """Return the draft number at the start of a line of ours, or None."""
    match = NUMBERED.match(text)
    return int(match[1]) if match else None


def shadow_notice(group: str, calls: tuple[str, ...], *, language: Language) -> str:
    """Return the owners' notice about calls that a shadow group did not run, without a text."""
    return "\n".join(
        [SHADOW.format(language, group=_group_name(group)), *_not_run(calls, language)]
    )


def draft_text(
    number: int, group: str, asked: str, words: str, calls: tuple[str, ...], *, language: Language
) -> str:
    """Return what an owner sees of a draft: group, question, text, and calls not run."""
    lines = [HEAD.format(language, number=number, group=_group_name(group))]
    if asked:
        lines.append(in_one_line(asked, MAX_QUESTION).translate(INNER_QUOTES))
    lines += [f"  {line}" for line in words.splitlines()]
    lines += _not_run(calls, language)
    return "\n".join([*lines, HOW.format(language, number=number)])


def _group_name(group: str) -> str:
    return in_one_line(group, MAX_GROUP).replace("]", "］")


def _not_run(calls: tuple[str, ...], language: Language) -> list[str]:
    return [NOT_RUN.format(language, call=in_one_line(call, MAX_CALL)) for call in calls]
