from __future__ import annotations

import random

import pytest
from rapidfuzz import fuzz

from frostagent.text.similarity import is_similar


@pytest.mark.parametrize("least", [60.0, 85.0, 90.0])
def test_texts_are_alike_where_they_share_so_much_and_never_other_ones_for_their_length(least: float) -> None:
    chance, found = random.Random(5), set[bool]()
    for _ in range(3000):
        one, other = ("".join(chance.choices("ab", k=chance.randint(0, 40))) for _ in range(2))
        longer = one + other[: chance.randint(0, 12)]
        for left, right in ((one, other), (one, longer), (longer, one)):
            found.add(is_similar(left, right, least=least))
            assert is_similar(left, right, least=least) == (fuzz.ratio(left, right) >= least), (left, right)
    assert found == {True, False}
