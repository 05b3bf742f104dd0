from __future__ import annotations

from bot.core.codec import read, write
from bot.core.journal import Audited, Entry


def test_what_was_done_is_an_entry_of_the_journal() -> None:
    done = Audited(at=1.0, login="a1b2", address="127.0.0.1", action="forget", object="10001:group:4242")
    assert read(Entry, write(done)) == done
