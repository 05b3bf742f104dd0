"""The library alone: in its own words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from frostagent.words import ENGLISH, use_words, words_in_force


@pytest.fixture(autouse=True)
def _own_words() -> Iterator[None]:
    before = words_in_force()
    use_words(ENGLISH)
    yield
    use_words(before)
