from __future__ import annotations

from adapters.storage.migrations.versions import r0012_recalled, r0013_day_totals

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_twelfth() -> None:
    assert (r0013_day_totals.revision, r0013_day_totals.down_revision) == ("0013", r0012_recalled.revision)
