from __future__ import annotations

from adapters.storage.migrations.versions import r0009_console, r0010_uncalled

# What it makes: tests/adapters/storage/test_migrate.py


def test_it_follows_the_ninth() -> None:
    assert (r0010_uncalled.revision, r0010_uncalled.down_revision) == ("0010", r0009_console.revision)
