"""Who the bot is in each conversation: what was chosen there by command, else what the operator's
file of groups says, else the persona that names the group itself, else the usual one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from bot.budget.limits import LimitOverride
from bot.policy.wake import Rules
from bot.quiet.rule import AS_EVERYWHERE, QuietChange
from bot.settings_store import PERSONA, SettingsStore, TableSetting
from frostagent.types.conversation import Conversation
from frostagent.types.messages import Message
from frostagent.types.ports import ChatModel
from frostagent.types.traits import Audience

KEPT: Final = 10  # texts of a persona
PERSONA_TEXTS: Final = TableSetting[str, tuple[str, ...]](
    "persona_texts",
    dict[str, tuple[str, ...]],
    key=str,
    lasts=lambda texts, _now: bool(texts),
)
"""Texts given to a persona on a page, by its key: empty for the usual one. The last counts."""

MAX_PLACES = 2000


@dataclass(frozen=True, slots=True)
class Persona:
    """Who the bot is in its chats: its system prompt, the name it goes by, and what else it is
    called; the language of its prompts, empty for that of each conversation.

    `examples` stand behind the system prompt as messages. `model` answers, the engine's own where
    it is None; `temperature` is None where none is sent; tools of `denied` names are not used.
    """

    prompt: str
    name: str
    aliases: tuple[str, ...] = ()
    language: str = ""
    examples: tuple[Message, ...] = ()
    model: ChatModel | None = None
    temperature: float | None = None
    denied: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """All that it is called."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class House:
    """One group by the operator's file: the key of its persona, its house rules, how often the bot
    joins in there unasked, when it keeps quiet, and what its day may take; empty and None where
    that is as everywhere. `audiences` are those of tools there.
    """

    persona: str = ""
    rules: str = ""
    chance: float | None = None
    audiences: Mapping[str, Audience] = field(default_factory=dict)
    quiet: QuietChange = AS_EVERYWHERE
    day: LimitOverride | None = None

    def changed(self, rules: Rules) -> Rules:
        """The rules of all groups, as they are in this one."""
        return dataclasses.replace(
            rules,
            chance=rules.chance if self.chance is None else self.chance,
            quiet=self.quiet.over(rules.quiet),
        )


@dataclass(frozen=True, slots=True)
class Cast:
    """The usual persona and all others by key, whose groups are `claimed`, and the file's groups by
    number; `audiences` of tools where no group's own are.
    """

    usual: Persona
    others: Mapping[str, Persona] = field(default_factory=dict)
    claimed: Mapping[int, str] = field(default_factory=dict)
    houses: Mapping[int, House] = field(default_factory=dict)
    audiences: Mapping[str, Audience] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Here:
    """Who the bot is in one place, with the rules of the house behind its prompt."""

    key: str
    who: Persona
    names: tuple[str, ...]
    house: House | None


class Personas:
    """Who the bot is, where; `become` changes that from the next turn on."""

    def __init__(self, cast: Cast, *, settings: SettingsStore) -> None:
        self._cast = cast
        self._settings = settings
        self._day_limits: Callable[[Mapping[int, LimitOverride]], None] | None = None
        self._rules: dict[tuple[str, int], Rules] = {}
        # A message asks a dozen times; whatever changes the answer calls `_look_anew`.
        self._here = lru_cache(MAX_PLACES)(self._look)
        settings.follow(PERSONA, self._look_anew)
        settings.follow(PERSONA_TEXTS, self._look_anew)

    @property
    def cast(self) -> Cast:
        """All there are now."""
        return self._cast

    @property
    def chosen(self) -> Mapping[Conversation, str]:
        """The choices by command, where; empty keys: as the files say."""
        return self._settings.all(PERSONA)

    def follow_day_limits(self, changed: Callable[[Mapping[int, LimitOverride]], None]) -> None:
        """Call this with the limits of a day by the operator's file, by the group's number: now,
        and whenever the file was read again.
        """
        self._day_limits = changed
        changed(_days_of(self._cast))

    def become(self, cast: Cast) -> None:
        """Be these from the next turn on."""
        self._cast = cast
        self._look_anew()
        if self._day_limits is not None:
            self._day_limits(_days_of(cast))

    async def choose(self, where: Conversation, key: str) -> bool:
        """Be the persona of this key there, over restarts; as the files say where it is empty.
        False where that cannot be written down now: nothing is changed then.
        """
        return await self._settings.set(PERSONA, where, key)

    def text(self, key: str) -> str:
        """The text that the persona of this key has now; of one there is not, the usual's."""
        filed = self._cast.others.get(key, self._cast.usual).prompt
        changed = self._changed_text(key)
        return filed if changed is None else changed

    def is_changed(self, key: str) -> bool:
        """Whether it is told something else than its file says."""
        return self._changed_text(key) is not None

    async def change(self, key: str, text: str) -> bool:
        """Tell a persona to be this, whatever its file says, over restarts. False where that cannot
        be written down now, and for a key there is not.
        """
        if key and key not in self._cast.others:
            return False
        return await self._settings.update(
            PERSONA_TEXTS, key, lambda texts: (*(texts or ()), text)[-KEPT:]
        )

    async def go_back(self, key: str) -> bool:
        """Tell it what it was told before, in the end what its file says. False as for `change`,
        and where nothing was changed.
        """
        return await self._settings.update(
            PERSONA_TEXTS, key, lambda texts: texts[:-1] if texts else None
        )

    def key(self, where: Conversation) -> str:
        """The key of the persona there, empty for the usual one; one that is gone is passed by."""
        return self._here(where).key

    def of(self, where: Conversation) -> Persona:
        """The persona there, with the rules of the house behind its prompt."""
        return self._here(where).who

    def rules(self, where: Conversation, rules: Rules) -> Rules:
        """The rules of waking there: the names it has there, the chance and the quiet hours of the
        house.
        """
        here = self._here(where)
        if here.house is None and here.names == rules.names:
            return rules
        place = here.key, 0 if here.house is None else where.session_id
        if (told := self._rules.get(place)) is None:
            theirs = rules if here.house is None else here.house.changed(rules)
            told = self._rules[place] = dataclasses.replace(theirs, names=here.names)
        return told

    def audiences(self, where: Conversation) -> Mapping[str, Audience]:
        """For whom tools are there, by name, whatever they declare."""
        house = self._here(where).house
        return self._cast.audiences if house is None else house.audiences

    def _look(self, where: Conversation) -> _Here:
        group = where.session_id if where.is_group else 0
        house = self._cast.houses.get(group)
        keys = (
            self._settings.get(PERSONA, where) or "",
            "" if house is None else house.persona,
            self._cast.claimed.get(group, ""),
        )
        key = next((key for key in keys if key in self._cast.others), "")
        who = self._cast.others.get(key, self._cast.usual)
        if (text := self._changed_text(key)) is not None:
            who = dataclasses.replace(who, prompt=text)
        told = who
        if house is not None and house.rules:
            prompt = f"{who.prompt.strip()}\n\n{house.rules.strip()}"
            told = dataclasses.replace(who, prompt=prompt)
        return _Here(key, told, who.names, house)

    def _changed_text(self, key: str) -> str | None:
        texts = self._settings.get(PERSONA_TEXTS, key)
        return texts[-1] if texts else None

    def _look_anew(self) -> None:
        self._here.cache_clear()
        self._rules.clear()


def _days_of(cast: Cast) -> dict[int, LimitOverride]:
    return {group: house.day for group, house in cast.houses.items() if house.day is not None}
