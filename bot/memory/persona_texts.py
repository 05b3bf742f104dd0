"""Texts of personas that were changed without their files, over restarts: the latest counts, until
somebody goes back to the one before, in the end to the file's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from bot.domain import codec
from bot.domain.books import Choices
from bot.domain.events import Conversation
from bot.domain.journal import PlaceSet
from bot.domain.ports import Store

SETTING: Final = "persona_texts"
NOWHERE: Final = Conversation(0, "private", 0)
KEPT: Final = 10  # texts of a persona


class PersonaTexts:
    """Keeps them, by the key of the persona; the usual one has an empty key."""

    def __init__(self, *, store: Store, choices: Choices) -> None:
        self._store = store
        self._choices = choices
        self._kept: dict[str, tuple[str, ...]] = {}
        self._is_read = False
        self._writing = asyncio.Lock()

    async def start(self) -> bool:
        """Read them, unless that was done; False where they cannot be read now."""
        if self._is_read:
            return True
        if (stored := await self._choices.settings(SETTING)) is None:
            return False
        self._kept = codec.read(dict[str, tuple[str, ...]], stored.get(NOWHERE) or "{}")
        self._is_read = True
        return True

    @property
    def latest(self) -> Mapping[str, str]:
        """The text that counts, of each persona that has one."""
        return {key: texts[-1] for key, texts in self._kept.items()}

    async def change(self, key: str, text: str) -> bool:
        """Say this from now on. False where that cannot be written down now: nothing is changed
        then.
        """
        async with self._writing:
            return await self._write(key, (*self._kept.get(key, ()), text)[-KEPT:])

    async def go_back(self, key: str) -> bool:
        """Say again what was said before; False as for `change`, and where nothing was changed."""
        async with self._writing:
            texts = self._kept.get(key, ())
            return bool(texts) and await self._write(key, texts[:-1])

    async def _write(self, key: str, texts: tuple[str, ...]) -> bool:
        if not self._is_read:
            return False
        kept = {one: told for one, told in {**self._kept, key: texts}.items() if told}
        if not await self._store.commit(PlaceSet(NOWHERE, SETTING, codec.write(kept))):
            return False
        self._kept = kept
        return True
