from __future__ import annotations

from adapters.storage.migrations.versions import r0004_group, r0005_memories

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_fourth() -> None:
    assert (r0005_memories.revision, r0005_memories.down_revision) == ("0005", r0004_group.revision)
