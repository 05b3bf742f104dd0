from __future__ import annotations

from bot.runtime.version import version


def test_the_version_is_a_word() -> None:
    assert version()
