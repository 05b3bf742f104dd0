"""A database on a disk, and the processes that write into it: one that lives, dies or ends, and others beside it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from sqlalchemy import select

from adapters.storage.ahead import AheadBatches, batches_for
from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.tables import messages


class Place:
    """A database, the batches of one process, and what it writes ahead."""

    def __init__(self, url: str) -> None:
        self.database = Database(url, migrate=migrate)
        assert self.database.file is not None
        self.file: Path = self.database.file
        self.lines = self.file.with_name(f"{self.file.name}-ahead")
        self.begin()
        assert self.batches.open() == ""

    def begin(self) -> None:
        self.batches = AheadBatches(self.database, self.file, stamp=lambda: "now")
        self.ahead = self.batches.ahead

    def another_process(self) -> None:
        """Connects, applies what it finds, and ends."""
        database = Database(f"sqlite:///{self.file}", migrate=migrate)
        with closing(database):
            batches_for(database, stamp=str).settle()

    def die(self) -> None:
        """As by SIGKILL: nothing is tidied up, and nothing is locked any more; the next process has not begun."""
        os.close(self.ahead._descriptor)
        self.batches.close()
        self.begin()

    def messages(self) -> list[str]:
        with self.database.reading() as connection:
            return list(connection.scalars(select(messages.c.message_id).order_by(messages.c.id)))

    def waiting(self) -> int:
        return len(lines_of(self.lines.read_bytes())) if self.lines.exists() else 0

    def close(self) -> None:
        self.ahead.close()
        self.batches.close()
        self.database.close()


def lines_of(text: bytes) -> list[bytes]:
    return [line for line in text.split(b"\n") if line]
