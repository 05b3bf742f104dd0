from __future__ import annotations

from adapters.storage.migrations.versions import r0006_choices, r0007_place_settings

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_sixth() -> None:
    assert (r0007_place_settings.revision, r0007_place_settings.down_revision) == ("0007", r0006_choices.revision)
