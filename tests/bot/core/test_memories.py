from __future__ import annotations

from bot.core.codec import read, write
from bot.core.memories import StoredFact, Visibility
from tests.fakes import GROUP


def test_a_fact_is_kept_where_it_was_said_unless_somebody_says_otherwise() -> None:
    memory = StoredFact(memory_id="m1", scope=GROUP, subject=777, author=777, text="对花生过敏")
    assert memory.visibility is Visibility.HERE
    assert read(StoredFact, write(memory)) == memory
