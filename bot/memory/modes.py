"""The mode of each group: as decided by an owner, or as BOT_NEW_GROUP says for new groups."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, Phrase
from bot.core.query_results import Choices
from bot.settings_store import PlaceSetting, SettingsStore


class Mode(StrEnum):
    """The mode of a group. ASKING: no owner has decided, and none may have received the question;
    ASKED: an owner has received it. In ASKING, ASKED and OFF the bot only observes. In SHADOW its
    answers become drafts for the owners.
    """

    LIVE = "live"
    SHADOW = "shadow"
    OFF = "off"
    ASKING = "asking"
    ASKED = "asked"


OPEN: Final = frozenset({Mode.ASKING, Mode.ASKED})
SPEAKING: Final = frozenset({Mode.LIVE, Mode.SHADOW})

NAMES: Final = {
    Mode.LIVE: Phrase("上线", "live"),
    Mode.SHADOW: Phrase("影子", "shadow"),
    Mode.OFF: Phrase("忽略", "off"),
    Mode.ASKING: Phrase("等主人的话，还没问到", "waits for an owner, none was reached"),
    Mode.ASKED: Phrase("等主人的话", "waits for an owner"),
}
CATALOGUE.register(__name__, globals())


def mode_of_new_groups(setting: str, *, has_owners: bool, has_listed_groups: bool) -> Mode:
    """Return the mode of unknown groups from BOT_NEW_GROUP. It is LIVE if the allowed groups are
    listed, or if there is no owner to ask.
    """
    if has_listed_groups or (setting == "ask" and not has_owners):
        return Mode.LIVE
    return Mode.ASKING if setting == "ask" else Mode(setting)


def _read(value: str) -> Mode | None:
    return Mode(value) if value in {mode.value for mode in Mode} else None


MODE: Final = PlaceSetting[Mode]("mode", read=_read, write=lambda mode: mode.value)


class Modes:
    """The modes of groups. If new groups are reported or not live, groups in the journal do not
    count as new. `told` reports new groups although they are live.
    """

    def __init__(
        self,
        *,
        settings: SettingsStore,
        choices: Choices,
        usual: Mode = Mode.LIVE,
        told: bool = False,
    ) -> None:
        self._settings = settings
        self._choices = choices
        self._usual = usual
        self._tells = told or usual is not Mode.LIVE
        self._known: set[Conversation] = set()  # groups in the journal: live unless decided
        self._dropped: set[Conversation] = set()  # asked about earlier; the question was dropped
        self._is_read = False

    @property
    def is_read(self) -> bool:
        """Whether all decisions and known groups are loaded."""
        return self._is_read

    async def load(self) -> bool:
        """Load decisions and known groups. Returns False if unreadable now; call again later."""
        if self._is_read:
            return True
        if not await self._settings.load(MODE):
            return False
        if self._tells:
            if (known := await self._choices.groups()) is None:
                return False
            self._known.update(known)
        if self._usual is Mode.LIVE:
            self._dropped.update(self.open)
        self._is_read = True
        return True

    def of(self, where: Conversation) -> Mode:
        """Return the mode; a private chat is always live."""
        if not where.is_group:
            return Mode.LIVE
        decided = self._decided(where)
        return self._usual if decided is None else decided

    def is_held(self, where: Conversation) -> bool:
        """Whether no owner has let the bot speak there."""
        return self.of(where) not in SPEAKING

    def is_new(self, where: Conversation) -> bool:
        """Whether the group is unknown. Never before `load` has succeeded."""
        return self._is_read and self._decided(where) is None

    def is_news(self, where: Conversation) -> bool:
        """Whether it is a new group to report."""
        return self._tells and self.is_new(where) and where.is_group

    @property
    def open(self) -> Mapping[Conversation, Mode]:
        """The groups that wait for an owner's decision."""
        modes = self._settings.all(MODE).items()
        return {where: mode for where, mode in modes if mode in OPEN and where not in self._dropped}

    def put(self, where: Conversation, mode: Mode) -> None:
        """Set the mode at once; it is journalled before all later entries."""
        self._dropped.discard(where)
        self._settings.put(MODE, where, mode)

    async def keep(self, where: Conversation, mode: Mode) -> bool:
        """Set the mode once it is stored. Returns False, without a change, if that fails."""
        is_kept = await self._settings.set(MODE, where, mode)
        if is_kept:
            self._dropped.discard(where)
        return is_kept

    def _decided(self, where: Conversation) -> Mode | None:
        mode = self._settings.get(MODE, where)
        if mode is None or where in self._dropped:
            return Mode.LIVE if where in self._known else None
        return mode
