"""A table of cases fails as a whole, and says which."""

from __future__ import annotations

import pytest

from tests.cases import each_case


def test_every_case_is_tried_and_every_failure_names_its_case() -> None:
    tried = []

    @each_case("number, word", [(1, "a"), (2, "b"), pytest.param(3, "c", id="third")])
    def check(number: int, word: str) -> None:
        tried.append(number)
        if number == 2:
            pytest.fail("two")
        assert number == 1, word

    with pytest.raises(ExceptionGroup) as raised:
        check()
    assert tried == [1, 2, 3]
    assert raised.value.message == "2 of 3 cases"
    assert [error.__notes__ for error in raised.value.exceptions] == [
        ["in the case number=2, word='b'"],
        ["in the case number=3, word='c'"],
    ]


async def test_a_coroutine_is_awaited_for_each_case_and_tables_multiply() -> None:
    tried = []

    @each_case("left", ["a", "b"])
    @each_case("right", [1, 2])
    async def check(left: str, right: int) -> None:
        tried.append((left, right))

    await check()
    assert tried == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_a_table_without_a_case_or_with_a_mark_is_refused() -> None:
    for values in ([], [pytest.param(1, marks=pytest.mark.system)]):
        with pytest.raises(ValueError, match="case"):
            each_case("number", values)
