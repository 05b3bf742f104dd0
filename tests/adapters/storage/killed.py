"""A journal whose owner was killed: a real process that wrote into it, and is no more."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from adapters.storage.ahead import Put
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from tests.adapters.storage.entries import heard

batches = EntryBatches(Database(sys.argv[1], migrate=lambda _: None, owner=True), stamp=str)
for number in range(int(sys.argv[2])):
    assert not batches.write([Put(heard(message_id=str(number)), 1.0)]).failure
print("written", flush=True)
sys.stdin.read()
"""


def killed_in(folder: Path, *, messages: int = 5) -> Path:
    """The journal of a process that wrote so many messages and was killed then."""
    file = folder / "data" / "frost.db"
    words = [sys.executable, "-c", SCRIPT, f"sqlite:///{file}", str(messages)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    return file
