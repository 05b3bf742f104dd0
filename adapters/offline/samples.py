"""The programs the demo's Coder can write: a few, in Python, known by heart."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A program, and the words by which it is asked for."""

    asked: re.Pattern[str]
    code: str


def _sample(asked: str, code: str) -> Sample:
    return Sample(re.compile(asked, re.IGNORECASE), code.strip())


SAMPLES = (
    _sample(
        r"快速排序|快排|quick ?sort",
        """
def quicksort(items):
    if len(items) <= 1:
        return items
    pivot = items[len(items) // 2]
    smaller = [item for item in items if item < pivot]
    equal = [item for item in items if item == pivot]
    larger = [item for item in items if item > pivot]
    return quicksort(smaller) + equal + quicksort(larger)


print(quicksort([5, 3, 8, 1, 3]))  # [1, 3, 3, 5, 8]
""",
    ),
    _sample(
        r"冒泡|bubble ?sort",
        """
def bubble_sort(items):
    items = list(items)
    for end in range(len(items) - 1, 0, -1):
        for i in range(end):
            if items[i] > items[i + 1]:
                items[i], items[i + 1] = items[i + 1], items[i]
    return items


print(bubble_sort([5, 3, 8, 1, 3]))  # [1, 3, 3, 5, 8]
""",
    ),
    _sample(
        r"斐波那契|fibonacci",
        """
def fibonacci(count):
    numbers, a, b = [], 0, 1
    for _ in range(count):
        numbers.append(a)
        a, b = b, a + b
    return numbers


print(fibonacci(10))  # [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
""",
    ),
    _sample(
        r"阶乘|factorial",
        """
def factorial(n):
    result = 1
    for factor in range(2, n + 1):
        result *= factor
    return result


print(factorial(10))  # 3628800
""",
    ),
    _sample(
        r"素数|质数|\bprimes?\b",
        """
def is_prime(n):
    if n < 2:
        return False
    return all(n % divisor for divisor in range(2, int(n**0.5) + 1))


print([n for n in range(30) if is_prime(n)])  # [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
""",
    ),
    _sample(
        r"回文|palindrome",
        """
def is_palindrome(text):
    letters = [letter.lower() for letter in text if letter.isalnum()]
    return letters == letters[::-1]


print(is_palindrome("A man, a plan, a canal: Panama"))  # True
""",
    ),
    _sample(
        r"fizz ?buzz",
        """
for n in range(1, 16):
    print("Fizz" * (n % 3 == 0) + "Buzz" * (n % 5 == 0) or n)
""",
    ),
    _sample(
        r"反转|倒序|revers(?:e|ing)",
        """
def reverse(text):
    return text[::-1]


print(reverse("FrostAgent"))  # tnegAtsorF
""",
    ),
    _sample(r"hello,? ?world|你好,?，?世界", 'print("Hello, world!")'),
)

OTHER_LANGUAGE = re.compile(
    r"javascript|typescript|\bjava\b|c\+\+|c#|c语言|\bgo\b|golang|\brust\b|\bsql\b|\bhtml\b|\bphp\b|\bruby\b",
    re.IGNORECASE,
)


def find_sample(task: str) -> str | None:
    """The program asked for, None where there is none."""
    return next((sample.code for sample in SAMPLES if sample.asked.search(task)), None)


def asks_other_language(task: str) -> bool:
    """The task names a language that is not Python."""
    return OTHER_LANGUAGE.search(task) is not None
