from __future__ import annotations

from adapters.storage.reading import SqlMemories
from bot.core.memories import Memories, Notebook
from bot.memory.remembering import Remembering
from tests.bot.memory.facts import KeptFacts


def test_what_is_plugged_in_has_what_the_protocols_ask_for() -> None:
    for fits, port in ((SqlMemories, Memories), (KeptFacts, Memories), (Remembering, Notebook)):
        wanted = {name for name, value in vars(port).items() if callable(value) and not name.startswith("_")}
        assert wanted
        assert wanted <= set(dir(fits))
