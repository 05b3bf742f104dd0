"""How the bot is in each group: as somebody decided, else as BOT_NEW_GROUP has it in new ones."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.memory.kept_settings import KeptSettings
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock


class Mode(StrEnum):
    """How the bot is in a group. ASKING: no owner has decided, nor may have heard of it; ASKED: one
    has heard. It only observes in both, and where it is OFF. In a SHADOW what it would say is a
    draft for the owners.
    """

    LIVE = "live"
    SHADOW = "shadow"
    OFF = "off"
    ASKING = "asking"
    ASKED = "asked"


SETTING = "mode"
OPEN = frozenset({Mode.ASKING, Mode.ASKED})

NAMES: Final = {
    Mode.LIVE: ("上线", "live"),
    Mode.SHADOW: ("影子", "shadow"),
    Mode.OFF: ("忽略", "off"),
    Mode.ASKING: ("等主人的话，还没问到", "waits for an owner, none was reached"),
    Mode.ASKED: ("等主人的话", "waits for an owner"),
}


def mode_of_new_groups(setting: str, *, has_owners: bool, has_listed_groups: bool) -> Mode:
    """How the bot is in groups that it does not know, by BOT_NEW_GROUP. If only some groups are
    listed they are live, and without owners nobody can be asked.
    """
    if has_listed_groups or (setting == "ask" and not has_owners):
        return Mode.LIVE
    return Mode.ASKING if setting == "ask" else Mode(setting)


def _read(value: str) -> Mode | None:
    return Mode(value) if value in {mode.value for mode in Mode} else None


class Modes(KeptSettings[Mode]):
    """Keeps them, over restarts. Where anybody is to hear of new groups, those that the journal
    knows already are none; `told` says so where they are live at once.
    """

    def __init__(
        self,
        *,
        store: Store,
        choices: Choices,
        clock: Clock,
        usual: Mode = Mode.LIVE,
        told: bool = False,
    ) -> None:
        super().__init__(SETTING, read=_read, store=store, choices=choices, clock=clock)
        self._usual = usual
        self._tells = told or usual is not Mode.LIVE

    async def start(self) -> bool:
        """Read what was decided, and which groups are known; False where that cannot be read:
        `run` goes on trying.
        """
        if not await super().start():
            return False
        if self._usual is Mode.LIVE:  # nobody is asked any more, so nobody is waited for
            for where in self.open:
                del self._values[where]
        if not self._tells:
            return True
        self._is_read = False
        if (known := await self._choices.groups()) is None:
            return False
        for where in known:
            self._values.setdefault(where, Mode.LIVE)
        self._is_read = True
        return True

    def of(self, where: Conversation) -> Mode:
        """How it is there; in private it always speaks."""
        if not where.is_group:
            return Mode.LIVE
        return self._values.get(where, self._usual) if self._values else self._usual

    def is_new(self, where: Conversation) -> bool:
        """Whether nothing is known of a group; never before all that is known was read."""
        return self._is_read and where not in self._values

    def is_news(self, where: Conversation) -> bool:
        """Whether it is a new group of which somebody is to hear."""
        return self._tells and self.is_new(where) and where.is_group

    @property
    def open(self) -> Mapping[Conversation, Mode]:
        """The groups that wait for an owner's word."""
        return {where: mode for where, mode in self._values.items() if mode in OPEN}

    def put(self, where: Conversation, mode: Mode) -> None:
        """So it is there from now on; written down before all that is written after it."""
        self._put(where, mode, mode.value)

    async def keep(self, where: Conversation, mode: Mode) -> bool:
        """The same, once it is written down. False where that cannot be: nothing is changed."""
        return await self._commit(where, mode, mode.value)
