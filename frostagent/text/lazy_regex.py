"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import re
from typing import Any, Final, cast

METHODS: Final = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")


class _LazyPattern:
    """Holds the methods of the compiled pattern once one of them was asked for, so that later calls
    cost what they cost on the pattern itself.
    """

    __slots__ = ("_flags", "_source", *METHODS)

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._source, self._flags)
        for method in METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, for patterns of a module that are large or seldom used: all of them compiled at
    import took a seventh of the start. What it returns has the methods and attributes of a pattern
    but cannot be handed to functions of `re`. A mistake in the pattern is raised at the first use.
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
