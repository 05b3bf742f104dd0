from __future__ import annotations

from adapters.storage.migrations.versions import r0003_applied, r0004_group

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_third() -> None:
    assert (r0004_group.revision, r0004_group.down_revision) == ("0004", r0003_applied.revision)
