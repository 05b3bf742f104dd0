"""Facts that outlive a conversation's window: who may write them, and where they may be shown.

The rules are in `bot/policy/memory_rules.py`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from cachetools import LRUCache
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import Sender
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.memories import (
    Kind,
    Memories,
    MemoriesForgotten,
    MemoriesUsed,
    MemoryKept,
    Noted,
    StoredFact,
    Visibility,
)
from bot.core.person_lookup import find_person
from bot.core.ports import Store
from bot.core.run_ids import number_of, place_of
from bot.memory.speakers import Speakers
from bot.policy.memory_rules import (
    CJK,
    fact_line,
    fact_problem,
    fact_terms,
    is_owners_word,
    is_same_fact,
    may_change,
    may_forget,
    may_surface,
    rank_facts,
    terms,
)
from bot.policy.permissions import WAIT
from bot.prompt.render import View, speaker
from frostagent.engine.authority import led_by
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.ports import Clock, Ids
from frostagent.types.suspension import Suspend
from frostagent.types.tools import ToolContext

EVERYWHERE = Phrase("到处都记住：{line}", "Remember everywhere: {line}")
CATALOGUE.register(__name__, globals())
MAX_FORGOTTEN = 10_000
KEPT = 180 * 86_400.0  # seconds since a fact was last shown
NOT_THEIRS = "only that person, or an owner of the bot, may have something remembered about them"
NOT_FORGOTTEN = "only the person it is about, or an owner of the bot, may have that forgotten"
NOT_EVERYWHERE = (
    "only an owner of the bot may have something remembered everywhere, in his own words"
)
NOT_FOLLOWING = (
    "what is told wherever somebody asks is about himself, and not what a tool has brought"
)
NO_SUCH = "there is no fact {id!r} here; list or search names their ids"
NOBODY = "nobody here is {about!r}: use me, here, or a number as #2"
FROM_ELSEWHERE = "(a fact from elsewhere is not kept here: list or search tells it again)"
NOTHING = "nothing is remembered about that"


@dataclass(frozen=True, slots=True)
class Recalled:
    """Facts as lines of a prompt, and the accounts that stated them."""

    lines: tuple[str, ...] = ()
    authors: frozenset[int] = frozenset()


NOTHING_RECALLED = Recalled()


def _stands_for(memory: StoredFact, known: StoredFact) -> bool:
    """Whether the new fact replaces a known one; its author must be allowed to erase that."""
    is_theirs = memory.subject != 0 or memory.author == known.author
    is_own = memory.subject == memory.author == known.author
    narrow = {memory.visibility, known.visibility} <= {Visibility.HERE, Visibility.PERSON}
    is_as_wide = memory.visibility is known.visibility or (is_own and narrow)
    return is_theirs and is_as_wide and is_same_fact(known.text, memory.text)


class Remembering:
    """The `Notebook` port, and the facts of a prompt."""

    def __init__(
        self,
        *,
        memories: Memories,
        speakers: Speakers,
        store: Store,
        clock: Clock,
        ids: Ids,
        language: Language = Language.CHINESE,
    ) -> None:
        self._language = language  # of questions to owners
        self._memories = memories
        self._speakers = speakers
        self._store = store
        self._clock = clock
        self._ids = ids
        self._forgotten: LRUCache[str, None] = LRUCache(MAX_FORGOTTEN)

    async def recalled(self, where: Conversation, asker: int, asked: Callable[[], str]) -> Recalled:
        """Return the few facts about what is asked; showing them renews their expiry."""
        if not await self._memories.has_any(where, asker):
            return NOTHING_RECALLED
        question = asked()
        found = await self._memories.recall(where, asker, terms(question))
        told = rank_facts(self._told(found, where, asker), question, asker=asker)
        if not told:
            return NOTHING_RECALLED
        now = self._clock.now()
        self._store.put(MemoriesUsed(tuple(one.memory_id for one in told), now, now + KEPT))
        lines = tuple(self._line(one, where) for one in told)
        return Recalled(lines, frozenset(one.author for one in told))

    async def keep(
        self,
        memory: StoredFact,
        *,
        wanted: Callable[[], bool] | None = None,
        picked: bool = False,
    ) -> StoredFact:
        """Store a fact. It replaces a fact with the same content, subject and visibility; if the
        subject is the conversation, only one by the same author. Sets `made`, `used`, `expires`
        and, if empty, `memory_id`. Stores nothing if `wanted` is false by then. A `picked` fact
        keeps the visibility of the one it replaces.
        """
        known = await self._memories.listed(scope=memory.scope, subject=memory.subject) or ()
        same = [one for one in known if _stands_for(memory, one)]
        now = self._clock.now()
        kept = replace(
            memory,
            memory_id=same[0].memory_id if same else memory.memory_id or self._ids.trace(),
            visibility=same[0].visibility if same and picked else memory.visibility,
            made=same[0].made if same and memory.kind is not Kind.PLAN else now,
            used=now,
            expires=now + KEPT,
        )
        if wanted is None or wanted():
            self._store.put(MemoryKept(kept, fact_terms(kept)))
        return kept

    # --- for the tool -----------------------------------------------------------------------------

    async def write(
        self, context: ToolContext, text: str, *, about: str, kind: Kind, told: Visibility
    ) -> Noted:
        """Remember a fact. Returns what was stored, as text.

        Raises InvalidArguments, ToolDenied; Suspend if a fact is to be known everywhere and text of
        others may have led to it.
        """
        where, asker = place_of(context), context.asker
        author, subject = number_of(asker), self._subject(context, about)
        line = fact_line(text)
        if not may_change(asker, subject=subject):
            raise ToolDenied(NOT_THEIRS)
        everywhere = told is Visibility.EVERYWHERE
        if told is Visibility.PERSON and (subject != author or asker.read):
            raise ToolDenied(NOT_FOLLOWING)
        if everywhere and not is_owners_word(asker):
            raise ToolDenied(NOT_EVERYWHERE)
        if wrong := fact_problem(line):
            raise InvalidArguments(f"text: {wrong}")
        if everywhere and led_by(asker) and not context.allowed:
            raise Suspend(EVERYWHERE.format(self._language, line=line), seconds=WAIT)
        kept = await self.keep(
            StoredFact(
                memory_id="",
                scope=where,
                subject=subject,
                author=author,
                text=line,
                kind=kind,
                visibility=told,
                sources=context.asked,
            )
        )
        return Noted(f"remembered: {self._line(kept, where)} [{kept.memory_id}]", kept.sources)

    async def search(self, context: ToolContext, words: str) -> Noted:
        where, asker = place_of(context), number_of(context.asker)
        found = await self._memories.recall(where, asker, terms(words))
        return self._lines(self._told(found, where, asker), where)

    async def listed(self, context: ToolContext, *, about: str) -> Noted:
        """Return all facts about a person or this conversation. Raises InvalidArguments."""
        where, asker = place_of(context), number_of(context.asker)
        subject = self._subject(context, about)
        scope = None if subject == asker else where
        found = await self._memories.listed(scope=scope, subject=subject) or ()
        return self._lines(self._told(found, where, asker), where)

    async def forget(self, context: ToolContext, memory_id: str) -> Noted:
        """Erase a fact. Raises InvalidArguments, ToolDenied."""
        where, asker = place_of(context), context.asker
        user_id = number_of(asker)
        here = await self._memories.listed(scope=where) or ()
        own = await self._memories.listed(subject=user_id) or ()
        ids = {one.memory_id: one for one in self._told((*here, *own), where, user_id)}
        if (memory := ids.get(memory_id.strip("[] "))) is None:
            raise InvalidArguments(NO_SUCH.format(id=memory_id))
        if not may_forget(asker, memory, where=where):
            raise ToolDenied(NOT_FORGOTTEN)
        self._forget(memory)
        return Noted(f"forgotten: [{memory.memory_id}]")  # the journal keeps this: no text

    def _forget(self, memory: StoredFact) -> None:
        """Erase a fact. It is hidden at once, although the tables may still hold it for a while."""
        self._forgotten[memory.memory_id] = None
        said = ((memory.scope, memory.author),)
        self._store.put(MemoriesForgotten((memory.memory_id,), said))

    def _subject(self, context: ToolContext, about: str) -> int:
        named = about.strip().casefold()
        if named in {"", "me"}:
            return number_of(context.asker)
        if named == "here":
            return 0
        user = find_person(about, self._speakers, place_of(context))
        if user is None:
            raise InvalidArguments(f"about: {NOBODY.format(about=about)}")
        return user

    def _told(
        self, found: Iterable[StoredFact], where: Conversation, asker: int
    ) -> list[StoredFact]:
        return [
            one
            for one in found
            if one.memory_id not in self._forgotten and may_surface(one, where=where, asker=asker)
        ]

    def _lines(self, found: Sequence[StoredFact], where: Conversation) -> Noted:
        told = "\n".join(self._entry(one, where) for one in found) or NOTHING
        sources = (source for one in found if one.scope == where for source in one.sources)
        # The journal keeps only facts of this conversation, so that a recall can redact them.
        kept = "\n".join(
            self._entry(one if one.scope == where else replace(one, text=FROM_ELSEWHERE), where)
            for one in found
        )
        return Noted(told, tuple(dict.fromkeys(sources)), "" if kept == told else kept)

    def _entry(self, memory: StoredFact, where: Conversation) -> str:
        return f"[{memory.memory_id}] {self._line(memory, where)} ({_origin(memory)})"

    def _line(self, memory: StoredFact, where: Conversation) -> str:
        """Render a fact with its subject and, if another person stated it, its author, by the names
        and numbers used there; a plan with its date.
        """
        said = "说" if re.search(f"[{CJK}]", memory.text) else "says"
        about = self._name(where, memory.subject) if memory.subject else ""
        if memory.author != memory.subject:
            by = f"{self._name(where, memory.author)} {said}"
            about = f"{about} ({by})" if about else by
        day = f" ({_day(memory)})" if memory.kind is Kind.PLAN else ""
        return f"{about}: {memory.text}{day}"

    def _name(self, where: Conversation, user: int) -> str:
        who = Sender(user, self._speakers.name(where, user))
        return speaker(who, View(number=partial(self._speakers.number, where)))


def _day(memory: StoredFact) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(memory.made))


def _origin(memory: StoredFact) -> str:
    """Kind, date and visibility of a fact, for the model."""
    return f"{memory.kind}, said {_day(memory)}, told {memory.visibility}"
