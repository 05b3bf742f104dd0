"""Facts as the journal has them, for tests: read from the entries of a store in a list."""

from __future__ import annotations

from collections.abc import Collection

from bot.core.conversation import Conversation
from bot.core.memories import MemoriesForgotten, MemoryKept, StoredFact
from bot.policy.memory_rules import fact_terms
from tests.fakes import RecordingStore


class KeptFacts:
    """Fits `Memories`; finds too much rather than too little: who asks must look at each."""

    def __init__(self, store: RecordingStore) -> None:
        self._store = store

    async def has_any(self, where: Conversation, asker: int) -> bool:
        return True

    async def recall(self, where: Conversation, asker: int, terms: Collection[str]) -> tuple[StoredFact, ...]:
        return tuple(one for one in self._facts() if set(terms) & {*fact_terms(one), *one.text})

    async def listed(self, *, scope: Conversation | None = None, subject: int | None = None) -> tuple[StoredFact, ...]:
        return tuple(
            one for one in self._facts() if scope in {None, one.scope} and (subject is None or subject == one.subject)
        )

    def _facts(self) -> list[StoredFact]:
        facts: dict[str, StoredFact] = {}
        for entry in self._store.entries:
            match entry:
                case MemoryKept(memory=memory):
                    facts[memory.memory_id] = memory
                case MemoriesForgotten(memory_ids=ids):
                    facts = {id_: one for id_, one in facts.items() if id_ not in ids}
                case _:
                    pass
        return list(facts.values())
