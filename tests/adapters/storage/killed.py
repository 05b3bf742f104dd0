"""Real processes that are no more: one that wrote into a journal, and work that is killed at any of its steps.

It is loaded by each of them, so it takes little with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from adapters.storage.backup import restore
from tests.bot.cli.commands import PATIENCE, loaded

SCRIPT = """
import sys
from adapters.storage.batches import Put
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


CHANGING = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.utime"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def do_and_die(place: int, work: Callable[[], object], folder: str) -> None:
    """In a process of its own: killed before the change of this number in the folder."""
    left = place

    def die(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        changes = event in CHANGING or (event == "open" and bool(int(str(arguments[2])) & WRITING))
        if changes and str(arguments[0]).startswith(folder):
            left -= 1
            if left < 0:
                os._exit(9)

    sys.addaudithook(die)
    work()
    os._exit(0)


def killed(place: int, work: Callable[[], object], folder: Path) -> bool:
    """Whether the work was cut off there; else it is done."""
    process = loaded().Process(target=do_and_die, args=(place, work, str(folder)))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode in {0, 9}
    return process.exitcode == 9


def restore_from(journal: Path, file: Path) -> None:
    """A restore, as work."""
    with file.open("rb") as stream:
        restore(journal, stream, version="1.0", stamp="then", shown=file.name)
