"""Values that people set at run time and that outlive the process: by command, on a page of the
console, or by an answer to the bot.

A frozen descriptor names each value and its form in the journal. This module loads them at the
start, writes changes, and applies what other bots of the service set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar

from bot.core import codec
from bot.core.conversation import NOWHERE, Conversation
from bot.core.journal import PersonaChosen, PlaceSet
from bot.core.other_bots import ALONE, Announcer, PlaceChanged, RowChanged
from bot.core.ports import Store
from bot.core.query_results import Choices
from frostagent.types.ports import Clock

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Setting(Generic[K, V]):
    """Values by key, under a name in the journal: a PlaceSetting or a TableSetting."""

    name: str


@dataclass(frozen=True, eq=False)
class PlaceSetting(Setting[Conversation, V]):
    """A value per conversation, stored as the text that `write` makes of it. A text that `read`
    returns None for counts as unset. Changes of a value that `is_shared` are announced to other
    bots.
    """

    read: Callable[[str], V | None]
    write: Callable[[V], str] = str
    is_shared: bool = False


@dataclass(frozen=True, eq=False)
class TableSetting(Setting[K, V]):
    """Values by key, stored together in one row that belongs to no conversation. Keys are written
    by str() and read by `key`; a value that does not `last` at that time (seconds since 1970) is
    dropped at the next write. Changes are announced to other bots.
    """

    kind: type[dict[str, V]]
    key: Callable[[str], K]
    lasts: Callable[[V, float], bool]


AnySetting: TypeAlias = PlaceSetting[Any] | TableSetting[Any, Any]

PERSONA: Final = PlaceSetting[str]("persona", read=str)
"""The key of the persona chosen there. The journal has a column for it."""


@dataclass(slots=True)
class _Kept:
    setting: AnySetting
    values: dict[Any, Any] = field(default_factory=dict)
    newer: set[Conversation] = field(default_factory=set)  # set before the journal was read
    is_read: bool = False
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    followers: list[Callable[[], None]] = field(default_factory=list)

    def changed(self) -> None:
        for follower in self.followers:
            follower()


class SettingsStore:
    """Holds the values of these settings in memory, and writes each change to the journal."""

    def __init__(
        self,
        settings: Iterable[AnySetting],
        *,
        store: Store,
        choices: Choices,
        clock: Clock,
        announcer: Announcer = ALONE,
    ) -> None:
        self._store = store
        self._choices = choices
        self._clock = clock
        self._announcer = announcer
        self._kept = {setting.name: _Kept(setting) for setting in settings}

    # --- reading ------------------------------------------------------------------------------

    def get(self, setting: Setting[K, V], key: K) -> V | None:
        """Return the value; None if it is unset or not loaded yet."""
        values: dict[K, V] = self._kept[setting.name].values
        return values.get(key) if values else None

    def all(self, setting: Setting[K, V]) -> Mapping[K, V]:
        return self._kept[setting.name].values

    def follow(self, setting: AnySetting, changed: Callable[[], None]) -> None:
        """Call `changed` whenever values of the setting may have changed, here or elsewhere."""
        self._kept[setting.name].followers.append(changed)

    def is_loaded(self, *settings: AnySetting) -> bool:
        return all(self._kept[setting.name].is_read for setting in settings)

    async def load(self, *settings: AnySetting) -> bool:
        """Load these settings, or all if none are named. Returns False if the journal cannot be
        read now; call again then.
        """
        names = [setting.name for setting in settings] or list(self._kept)
        return all([await self._load(self._kept[name]) for name in names])

    async def _load(self, kept: _Kept) -> bool:
        if kept.is_read:
            return True
        if (stored := await self._fetch(kept.setting)) is None:
            return False
        if kept.is_read:  # another task loaded it, and values may have changed since
            return True
        before = kept.values
        kept.values = _parse(kept.setting, stored)
        for where in kept.newer:
            kept.values.pop(where, None)
            if where in before:
                kept.values[where] = before[where]
        kept.newer.clear()
        kept.is_read = True
        kept.changed()
        return True

    async def reload(self) -> None:
        """Read the shared settings again if the journal can be read now: changes by other bots may
        have been missed.
        """
        for kept in self._kept.values():
            if _is_shared(kept.setting):
                await self._reload(kept)

    async def _reload(self, kept: _Kept) -> None:
        if isinstance(kept.setting, TableSetting) and not kept.is_read:
            return
        if (stored := await self._fetch(kept.setting)) is not None:
            kept.values = _parse(kept.setting, stored)
            kept.newer.clear()
            kept.changed()

    async def _fetch(self, setting: AnySetting) -> Mapping[Conversation, str] | None:
        if setting is PERSONA:
            return await self._choices.choices()
        return await self._choices.settings(setting.name)

    # --- changing -----------------------------------------------------------------------------

    async def set(self, setting: PlaceSetting[V], where: Conversation, value: V | None) -> bool:
        """Set or unset the value. Returns False, without a change, if it cannot be written now."""
        text = "" if value is None else setting.write(value)
        if not await self._store.commit(_entry(setting, where, text)):
            return False
        self._keep(setting, where, value)
        if setting.is_shared:
            self._announcer.tell(PlaceChanged(where, setting.name, text))
        return True

    def put(self, setting: PlaceSetting[V], where: Conversation, value: V | None) -> None:
        """Like `set`, without waiting: it is written before all later entries."""
        text = "" if value is None else setting.write(value)
        self._keep(setting, where, value)
        self._store.put(_entry(setting, where, text))
        if setting.is_shared:
            self._announcer.tell(PlaceChanged(where, setting.name, text))

    async def update(
        self, setting: TableSetting[K, V], key: K, change: Callable[[V | None], V | None]
    ) -> bool:
        """Replace a value by the result of `change`, which gets None if it is unset and returns
        None to change nothing. Returns False if nothing was changed, including if the journal
        cannot be read or written now.
        """
        kept = self._kept[setting.name]
        async with kept.writing:
            await self._reload(kept)  # another bot may have changed another key
            if not kept.is_read or (value := change(kept.values.get(key))) is None:
                return False
            now = self._clock.now()
            after = {**kept.values, key: value}
            values = {one: value for one, value in after.items() if setting.lasts(value, now)}
            text = codec.write({str(one): value for one, value in values.items()})
            if not await self._store.commit(PlaceSet(NOWHERE, setting.name, text)):
                return False
            kept.values = values
            kept.changed()
            self._announcer.tell(RowChanged(setting.name, text))
            return True

    def apply(self, note: PlaceChanged | RowChanged) -> None:
        """Apply a change by another bot. An unknown setting is ignored, because the other bot may
        run another version.
        """
        match note, self._kept.get(note.name):
            case PlaceChanged(where, _, text), _Kept(setting=PlaceSetting(is_shared=True) as place):
                self._keep(place, where, place.read(text))
            case RowChanged(_, text), _Kept(setting=TableSetting() as table) as kept:
                kept.values = _parse(table, {NOWHERE: text})
                kept.changed()
            case _:
                pass

    def _keep(self, setting: PlaceSetting[V], where: Conversation, value: V | None) -> None:
        kept = self._kept[setting.name]
        if value is None:
            kept.values.pop(where, None)
        else:
            kept.values[where] = value
        if not kept.is_read:
            kept.newer.add(where)
        kept.changed()


def _is_shared(setting: AnySetting) -> bool:
    return isinstance(setting, TableSetting) or setting.is_shared


def _parse(setting: AnySetting, stored: Mapping[Conversation, str]) -> dict[Any, Any]:
    match setting:
        case PlaceSetting(read=read):
            found = {where: read(text) for where, text in stored.items()}
            return {where: value for where, value in found.items() if value is not None}
        case TableSetting(kind=kind, key=key):
            rows = codec.read(kind, stored.get(NOWHERE) or "{}")
            return {key(one): value for one, value in rows.items()}


def _entry(setting: PlaceSetting[Any], where: Conversation, text: str) -> PlaceSet | PersonaChosen:
    return PersonaChosen(where, text) if setting is PERSONA else PlaceSet(where, setting.name, text)
