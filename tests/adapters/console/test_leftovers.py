from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.console import rendering
from adapters.console.rendering import release_memory
from tests.adapters.console.visiting import visiting


class Knot:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _seldom() -> Iterator[None]:
    gc.disable()
    rendering.malloc_trim.cache_clear()
    yield
    rendering.malloc_trim.cache_clear()
    gc.enable()


def test_what_holds_itself_is_gone_and_the_c_library_is_asked_to_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    class Library:
        malloc_trim = staticmethod(asked.append)

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: Library())
    there = weakref.ref(Knot())
    assert there() is not None
    release_memory()
    assert (there(), asked) == (None, [0])


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_where_there_is_no_such_way_it_goes_without(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def library(_name: object) -> Any:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", library)
    there = weakref.ref(Knot())
    release_memory()
    assert there() is None


def test_the_library_of_this_machine_takes_it() -> None:
    release_memory()
    assert rendering.malloc_trim()(0) in {0, 1}


async def test_a_page_leaves_nothing_behind() -> None:
    async with visiting() as place:
        await place.log_in()
        there = weakref.ref(Knot())
        await place.ask("GET", "/access")
        assert there() is None
