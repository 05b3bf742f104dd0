from __future__ import annotations

from adapters.storage.migrations.versions import r0010_uncalled, r0011_tools
from adapters.storage.tables import SHARED


def test_it_follows_the_one_before_and_has_the_sums_that_are_kept() -> None:
    assert (r0011_tools.revision, r0011_tools.down_revision) == ("0011", r0010_uncalled.revision)
    assert r0011_tools.SUMS == SHARED
