"""Patterns that are compiled when they are needed."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest

from frostagent.text.lazy_regex import lazy_regex


def test_it_finds_what_the_compiled_pattern_finds_and_compiles_once() -> None:
    with patch("re.compile", wraps=re.compile) as compiled:
        word = lazy_regex(r"(?P<letter>F)rost", re.IGNORECASE)
        assert not compiled.called
        assert [found["letter"] for found in word.finditer("frost, Frost")] == ["f", "F"]
        assert word.fullmatch("FROST")
        assert word.sub("ice", "a frost") == "a ice"
    assert compiled.call_count == 1
    assert (word.pattern, word.groupindex) == (r"(?P<letter>F)rost", {"letter": 1})


def test_a_mistake_in_it_is_raised_at_the_first_use() -> None:
    broken = lazy_regex("(")
    with pytest.raises(re.error):
        broken.search("text")
