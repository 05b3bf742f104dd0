from __future__ import annotations

from adapters.storage.migrations.versions import r0007_kinds, r0008_place_settings

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_seventh() -> None:
    assert (r0008_place_settings.revision, r0008_place_settings.down_revision) == ("0008", r0007_kinds.revision)
