"""The collector is relaxed for good, and what was there is not looked at again."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc
import bot.__main__
from bot.runtime.garbage_collection import relax_collector
print(gc.get_threshold())
gc.set_threshold(700)
relax_collector()
print(gc.get_threshold(), gc.get_freeze_count() > 1000, gc.isenabled())
"""


def test_it_looks_rarely_from_the_first_import_on_and_never_at_what_was_there_at_the_start() -> None:
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=30)
    assert said.stdout.splitlines() == ["(500000, 50, 100)", "(100000, 50, 100) True True"]
