"""Which tests the time goes to: `pytest -p tests.costs` writes a row a test to the file COSTS names (costs.tsv).

A row: file, test, seconds of wall, of this process's processor, of its ended children's; with set-up and teardown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

OUT = Path(os.environ.get("COSTS", "costs.tsv"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    began, before = time.perf_counter(), os.times()
    try:
        return (yield)
    finally:
        after = os.times()
        own = after.user + after.system - before.user - before.system
        children = after.children_user + after.children_system - before.children_user - before.children_system
        file, _, name = item.nodeid.partition("::")
        wall = time.perf_counter() - began
        with OUT.open("a") as out:
            out.write(f"{file}\t{name}\t{wall:.3f}\t{own:.3f}\t{children:.3f}\n")
