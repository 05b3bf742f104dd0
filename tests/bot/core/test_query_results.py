from __future__ import annotations

from adapters.storage.erasure import SqlErasing
from adapters.storage.reading import SqlJournalQueries
from bot.core.query_results import Eraser, JournalQueries, Story, UsageSum
from tests.bot.commands.books import PaperBooks


def test_what_is_plugged_in_has_what_the_protocols_ask_for() -> None:
    for fits, port in ((SqlJournalQueries, JournalQueries), (PaperBooks, JournalQueries), (SqlErasing, Eraser)):
        wanted = {name for name, value in vars(port).items() if callable(value) and not name.startswith("_")}
        assert wanted
        assert wanted <= set(dir(fits))


def test_of_what_nobody_knows_nothing_is_told() -> None:
    assert (UsageSum().cost, Story(asker=1).wakes, Story(asker=1).stop) == (0.0, None, "")
