from __future__ import annotations

from adapters.storage.statements import plain


def test_a_nul_which_postgresql_does_not_take_is_told_by_a_mark() -> None:
    assert plain("a\0b") == "a\ufffdb"
    assert plain("小明") == "小明"
