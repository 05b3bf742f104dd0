"""A table of cases as one test: all of them are tried, and every failure is reported with its case.

For cases that differ in a word or two, which cost a tenth of what pytest takes for a test of each. `parametrize` stays
for cases that need fixtures of their own, or are slow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

import pytest

Test: TypeAlias = Callable[..., Any]
FAILURES = (Exception, pytest.fail.Exception)  # a skip or a stop ends the test


def each_case(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, in one test, which raises an ExceptionGroup with every case's failure. Not for
    tests with fixtures: all cases would share them.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [dict(zip(columns, _values(value, len(columns)), strict=True)) for value in values]
    if not rows:
        raise ValueError(f"there is no case of {columns}")

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for row in rows:
                try:
                    test(**fixtures, **row)
                except FAILURES as error:
                    failures.append(_noted(error, row))
            _report(failures, len(rows))

        @wraps(test)
        async def run_async(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for row in rows:
                try:
                    await test(**fixtures, **row)
                except FAILURES as error:
                    failures.append(_noted(error, row))
            _report(failures, len(rows))

        made: Any = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in columns]
        made.__signature__ = signature.replace(parameters=left)  # for a table around this one; no fixtures
        return made  # type: ignore[no-any-return]  # a function with another signature

    return decorate


def _values(value: Any, columns: int) -> Sequence[Any]:
    if hasattr(value, "marks") and hasattr(value, "values"):  # pytest.param
        if value.marks:
            raise ValueError("a case with a mark needs parametrize")
        return tuple(value.values)
    return tuple(value) if columns > 1 else (value,)


def _noted(error: BaseException, row: Mapping[str, Any]) -> Exception:
    case = ", ".join(f"{name}={value!r}" for name, value in row.items())
    failure = error if isinstance(error, Exception) else AssertionError(str(error))
    failure.add_note(f"in the case {case}")
    return failure


def _report(failures: Sequence[Exception], tried: int) -> None:
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {tried} cases", failures)
