"""Which persona the bot has in each conversation: the one chosen by command, else the one of
GROUPS_FILE, else the persona that lists the group, else the default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from bot.budget.limits import LimitOverride
from bot.core.conversation import Conversation
from bot.policy.join_rules import JoinRule
from bot.policy.wake import Rules
from bot.quiet.rule import AS_EVERYWHERE, QuietChange
from bot.settings_store import PERSONA, SettingsStore, TableSetting
from frostagent.types.messages import Message
from frostagent.types.ports import ChatModel
from frostagent.types.traits import Audience

KEPT: Final = 10  # texts per persona
PERSONA_TEXTS: Final = TableSetting[str, tuple[str, ...]](
    "persona_texts",
    dict[str, tuple[str, ...]],
    key=str,
    lasts=lambda texts, _now: bool(texts),
)
"""Texts given to a persona on a page, by its key (empty: the default); the last is used."""

MAX_PLACES = 2000


@dataclass(frozen=True, slots=True)
class Persona:
    """System prompt, name and aliases of the bot. `language` is that of its prompts, or empty for
    the conversation's language.

    `examples` are messages after the system prompt. `model` None means the engine's model,
    `temperature` None means that none is sent. `denied` are names of tools that are not offered.
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
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class House:
    """One group by the operator's file: the key of its persona, its house rules, how often the bot
    joins in there unasked, when it keeps quiet, and what its day may take; empty and None where
    that is as everywhere. `audiences` are those of tools there; `welcome` and `farewell` are said
    of people who join and leave; `recap` is the time of the daily recap (`22:00`, empty: none);
    `join` decides about applicants.
    """

    persona: str = ""
    rules: str = ""
    chance: float | None = None
    audiences: Mapping[str, Audience] = field(default_factory=dict)
    quiet: QuietChange = AS_EVERYWHERE
    day: LimitOverride | None = None
    welcome: str = ""
    farewell: str = ""
    recap: str | None = None
    join: tuple[JoinRule, ...] = ()
    chime_in: float | None = None

    def changed(self, rules: Rules) -> Rules:
        """Apply the group's overrides to the general rules."""
        return dataclasses.replace(
            rules,
            chance=rules.chance if self.chance is None else self.chance,
            chime_in=self._chime_in(rules),
            quiet=self.quiet.over(rules.quiet),
        )

    def _chime_in(self, rules: Rules) -> float:
        """A group with a chance of its own has that in place of everybody's `chime_in`."""
        if self.chime_in is None:
            return rules.chime_in if self.chance is None else 0.0
        return self.chime_in if rules.chime_in else 0.0


@dataclass(frozen=True, slots=True)
class Cast:
    """All personas: the default and the others by key. `claimed` are groups that personas list;
    `houses` are the rows of GROUPS_FILE by group number. `audiences` are those of tools without an
    override.
    """

    usual: Persona
    others: Mapping[str, Persona] = field(default_factory=dict)
    claimed: Mapping[int, str] = field(default_factory=dict)
    houses: Mapping[int, House] = field(default_factory=dict)
    audiences: Mapping[str, Audience] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Here:
    """The persona of one conversation, with the house rules appended to its prompt."""

    key: str
    who: Persona
    names: tuple[str, ...]
    house: House | None


class Personas:
    """The persona of each conversation; changes apply from the next turn on."""

    def __init__(self, cast: Cast, *, settings: SettingsStore) -> None:
        self._cast = cast
        self._settings = settings
        self._day_limits: Callable[[Mapping[int, LimitOverride]], None] | None = None
        self._rules: dict[tuple[str, int], Rules] = {}
        # A message asks a dozen times. All changes call `_look_anew`.
        self._here = lru_cache(MAX_PLACES)(self._look)
        settings.follow(PERSONA, self._look_anew)
        settings.follow(PERSONA_TEXTS, self._look_anew)

    @property
    def cast(self) -> Cast:
        return self._cast

    @property
    def chosen(self) -> Mapping[Conversation, str]:
        """The choices by command; an empty key means "as the files say"."""
        return self._settings.all(PERSONA)

    def follow_day_limits(self, changed: Callable[[Mapping[int, LimitOverride]], None]) -> None:
        """Call this with the daily limits of GROUPS_FILE by group: now, and after each reload."""
        self._day_limits = changed
        changed(_days_of(self._cast))

    def become(self, cast: Cast) -> None:
        """Use these personas from the next turn on."""
        self._cast = cast
        self._look_anew()
        if self._day_limits is not None:
            self._day_limits(_days_of(cast))

    async def choose(self, where: Conversation, key: str) -> bool:
        """Choose a persona by key, across restarts; an empty key goes back to the files. Returns
        False, without a change, if it cannot be stored.
        """
        return await self._settings.set(PERSONA, where, key)

    def text(self, key: str) -> str:
        """Return the current text of a persona, or the default persona's for an unknown key."""
        filed = self._cast.others.get(key, self._cast.usual).prompt
        changed = self._changed_text(key)
        return filed if changed is None else changed

    def is_changed(self, key: str) -> bool:
        """Whether the text was changed on a page."""
        return self._changed_text(key) is not None

    async def change(self, key: str, text: str) -> bool:
        """Replace a persona's text for good. Returns False if not stored or for an unknown key."""
        if key and key not in self._cast.others:
            return False
        return await self._settings.update(
            PERSONA_TEXTS, key, lambda texts: (*(texts or ()), text)[-KEPT:]
        )

    async def go_back(self, key: str) -> bool:
        """Undo the latest `change`. Returns False if it cannot be stored or there is none."""
        return await self._settings.update(
            PERSONA_TEXTS, key, lambda texts: texts[:-1] if texts else None
        )

    def key(self, where: Conversation) -> str:
        """Return the persona's key, empty for the default. Keys of removed ones are ignored."""
        return self._here(where).key

    def of(self, where: Conversation) -> Persona:
        """Return the persona, with the house rules appended to its prompt."""
        return self._here(where).who

    def rules(self, where: Conversation, rules: Rules) -> Rules:
        """Return the wake rules with the names, chance and quiet hours of this conversation."""
        here = self._here(where)
        if here.house is None and here.names == rules.names:
            return rules
        place = here.key, 0 if here.house is None else where.session_id
        if (told := self._rules.get(place)) is None:
            theirs = rules if here.house is None else here.house.changed(rules)
            told = self._rules[place] = dataclasses.replace(theirs, names=here.names)
        return told

    def audiences(self, where: Conversation) -> Mapping[str, Audience]:
        """Return the audience of tools by name, which overrides their declared one."""
        house = self._here(where).house
        return self._cast.audiences if house is None else house.audiences

    def house(self, where: Conversation) -> House:
        """What the operator's file says of a group; nothing if it does not name it."""
        return self._here(where).house or House()

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
