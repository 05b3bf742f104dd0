"""The programs Coder knows run, and print what their comments say."""

from __future__ import annotations

import pytest

from adapters.offline.phrases import SAMPLES, Sample, asks_other_language, find_sample
from tests.cases import each_case


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.asked.pattern)
def test_a_sample_does_what_it_says(sample: Sample, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(sample.code, "sample", "exec"), {})
    printed = capsys.readouterr().out
    *_, last = sample.code.splitlines()
    if "# " in last:
        assert printed.strip() == last.split("# ")[1]
    else:
        assert printed.strip()


@each_case(
    ("task", "part"),
    [
        ("写一个快排", "quicksort"),
        ("冒泡排序", "bubble_sort"),
        ("斐波那契数列", "fibonacci"),
        ("a factorial function", "factorial"),
        ("判断素数", "is_prime"),
        ("palindrome check", "is_palindrome"),
        ("FizzBuzz please", "Fizz"),
        ("reversing a string", "reverse"),
        ("Hello, World", "print"),
    ],
)
def test_a_sample_is_found_by_its_words(task: str, part: str) -> None:
    assert part in str(find_sample(task))


def test_what_is_not_known_is_not_made_up() -> None:
    assert find_sample("an operating system") is None


@each_case(("task", "other"), [("in Java", True), ("用C++写", True), ("in Python", False), ("快速排序", False)])
def test_another_language_is_noticed(task: str, other: bool) -> None:
    assert asks_other_language(task) is other
