from __future__ import annotations

from adapters.storage.migrations.versions import r0014_reserved, r0015_until

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_fourteenth() -> None:
    assert (r0015_until.revision, r0015_until.down_revision) == ("0015", r0014_reserved.revision)
