from __future__ import annotations

from adapters.storage.migrations.versions import r0008_place_settings, r0009_console

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_eighth() -> None:
    assert (r0009_console.revision, r0009_console.down_revision) == ("0009", r0008_place_settings.revision)
