from __future__ import annotations

from adapters.storage.migrations.versions import r0005_memories, r0006_choices

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_fifth() -> None:
    assert (r0006_choices.revision, r0006_choices.down_revision) == ("0006", r0005_memories.revision)
