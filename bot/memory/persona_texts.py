"""Texts of personas that were changed without their files, over restarts: the latest counts, until
somebody goes back to the one before, in the end to the file's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bot.domain.books import Choices
from bot.domain.notes import ALONE, Neighbours
from bot.domain.ports import Store
from bot.memory.row import Row

SETTING: Final = "persona_texts"
KEPT: Final = 10  # texts of a persona


class PersonaTexts(Row[str, tuple[str, ...]]):
    """Keeps them, by the key of the persona; the usual one has an empty key."""

    def __init__(self, *, store: Store, choices: Choices, neighbours: Neighbours = ALONE) -> None:
        kind = dict[str, tuple[str, ...]]
        super().__init__(
            SETTING,
            kind,
            key=str,
            lasts=bool,
            store=store,
            choices=choices,
            neighbours=neighbours,
        )

    @property
    def latest(self) -> Mapping[str, str]:
        """The text that counts, of each persona that has one."""
        return {key: texts[-1] for key, texts in self._values.items()}

    async def change(self, key: str, text: str) -> bool:
        """Say this from now on. False where that cannot be written down now: nothing is changed
        then.
        """
        return await self._renew(key, lambda texts: (*(texts or ()), text)[-KEPT:])

    async def go_back(self, key: str) -> bool:
        """Say again what was said before; False as for `change`, and where nothing was changed."""
        return await self._renew(key, lambda texts: texts[:-1] if texts else None)
