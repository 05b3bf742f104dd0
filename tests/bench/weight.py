"""What a part of the process keeps in memory: every object that can be reached from it, counted once.

Not what the system gave the process: that depends on what else ran there, and never shrinks.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, CoroutineType, FrameType, FunctionType, ModuleType
from typing import Any

PROGRAM = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, CoroutineType, FrameType)
OTHERS = ("asyncio", "_asyncio", "uvloop", "sqlalchemy", "sqlite3", "logging", "concurrent", "threading", "contextvars")
"""Whoever holds these holds the whole process."""


@dataclass(frozen=True, slots=True)
class Weight:
    """How many objects, and their bytes."""

    objects: int
    size: int


def weigh(root: object) -> Weight:
    """All that this keeps, the program itself and its event loop aside."""
    seen: dict[int, Any] = {id(root): root}
    ahead, size = [root], 0
    while ahead:
        one = ahead.pop()
        size += sys.getsizeof(one)
        for next_one in gc.get_referents(one):
            if id(next_one) not in seen and _is_kept(next_one):
                seen[id(next_one)] = next_one
                ahead.append(next_one)
    return Weight(len(seen), size)


def _is_kept(one: object) -> bool:
    if isinstance(one, PROGRAM):
        return False
    return type(one).__module__.partition(".")[0] not in OTHERS
