from __future__ import annotations

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.scanning import SLACK
from adapters.storage.queries.turns import rows
from bot.core.console_views import TurnQuery
from tests.adapters.storage.entries import NOW, put, read
from tests.adapters.storage.test_turn_rows import asked, silent


def test_a_day_is_found_by_its_ids_though_they_are_not_quite_in_the_order_of_their_times(
    batches: EntryBatches, database: Database
) -> None:
    hours = [0, 1, 3, 2, 5, 4, 7, 6, 9, 8]
    for hour in hours:
        batches.write(put(*asked(f"t{hour}", NOW + hour * SLACK), *silent(f"s{hour}"), at=NOW + hour * SLACK))
    for since in range(9):
        query = TurnQuery(since=NOW + since * SLACK, until=NOW + (since + 2) * SLACK)
        told = {one.turn_id or one.message_id for one in read(database, rows, query).rows}
        assert told == {f"{kind}{hour}" for kind in "ts" for hour in (since, since + 1)}, since
