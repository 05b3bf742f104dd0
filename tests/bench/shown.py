"""What the console reads of a journal of 300,000 turns: `python -m tests.bench.shown sqlite:////tmp/big.db`.

The turns of tests are copied within the database, over 90 days; then each page's reading is timed, and told beside
the goal. A database that has them already is only read.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sqlalchemy import Connection, Table, Text, cast, create_engine, func, insert, literal, select, text

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.queries.conversations import chat, chats
from adapters.storage.queries.sums import costs, day_counts, ends, tool_uses
from adapters.storage.queries.turns import rows, trace
from adapters.storage.retention import add_up
from adapters.storage.tables import messages, requests, runs, sends, steps, tool_calls, turns, usage, verdicts
from adapters.storage.url import read_url
from bot.core.calendar_days import midnight
from bot.core.console_views import UNANSWERED, TurnQuery
from bot.core.journal import Entry
from frostagent.types.runs import Stop
from tests.adapters.storage.entries import NOW, put
from tests.adapters.storage.test_books import ELSEWHERE, whole
from tests.adapters.storage.test_turn_rows import asked, silent
from tests.fakes import GROUP

TURNS, SPREAD = 300_000, 90 * 86_400.0
TABLES = messages, turns, runs, steps, tool_calls, sends, usage, requests, verdicts
NAMES = {"turn_id", "run_id", "message_id", "send_id"}
END = NOW + SPREAD + 1
MOMENTS = {"time", "taken", "opened", "closed", "at", "queued", "changed", "started"}
ROUNDS = 5
COSTS = "day", "conversation", "asker", "model", "tool"


def pattern() -> Iterator[Entry]:
    """Ten turns and five messages that nobody answered."""
    yield from whole()
    for number in range(9):
        where = (GROUP, ELSEWHERE)[number % 2]
        yield from asked(f"p{number}", NOW + number, where=where, user=1000 + number)
    for number in range(5):
        yield from silent(f"q{number}", user=2000 + number)


def seed(url: str, count: int) -> None:
    """The pattern, copied until there are so many turns, and one that failed; days that are over are added up."""
    database = Database(url, migrate=migrate)
    batches = EntryBatches(database, stamp=lambda: "now")
    batches.write(put(*pattern()))
    batches.close()
    engine = create_engine(read_url(url))
    with engine.begin() as connection:
        first = connection.scalar(select(func.count()).select_from(turns)) or 1
        numbers = select(literal(1).label("n")).cte("numbers", recursive=True)
        numbers = numbers.union_all(select(numbers.c.n + 1).where(numbers.c.n < count // first))
        for table in TABLES:
            connection.execute(_copies(table, numbers, SPREAD * first / count))
    batches.write(put(*asked("rare", END, stop=Stop.FAILED, error="auth: no")))
    batches.close()
    with engine.begin() as connection:
        while add_up(connection, now=END):
            pass
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))


def _copies(table: Table, numbers: Any, apart: float) -> Any:
    told: list[Any] = []
    for column in table.columns:
        if column.name in NAMES:
            told.append(column.concat("-").concat(cast(numbers.c.n, Text)).label(column.name))
        elif column.name in MOMENTS:
            told.append((column + numbers.c.n * apart).label(column.name))
        elif column.name != "id":
            told.append(column)
    query = select(*told).select_from(table.join(numbers, text("1 = 1"))).order_by(numbers.c.n, table.c.id)
    return insert(table).from_select([column.name for column in query.selected_columns], query)


def readings(middle: int) -> dict[str, Callable[[Connection], object]]:
    """What a page reads, by its name; `middle` is the id of a turn and a verdict far down."""
    queries = {
        "turns": TurnQuery(),
        "turns, far down": TurnQuery(turn=middle, verdict=middle),
        "turns of a chat": TurnQuery(where=str(ELSEWHERE), turn=middle),
        "turns of a person": TurnQuery(asker=1003),
        "turns of nobody": TurnQuery(asker=5),
        "turns that failed": TurnQuery(outcome="failed"),
        "turns that were stopped": TurnQuery(outcome="stopped"),
        "not answered": TurnQuery(outcome=UNANSWERED, verdict=middle),
        "turns with a tool": TurnQuery(tool="get_weather"),
        "turns with no such tool": TurnQuery(tool="none"),
        "turns with no such model": TurnQuery(model="none"),
        "turns that cost a dollar": TurnQuery(cost=1.0),
        "turns of a day": TurnQuery(since=NOW + SPREAD / 2, until=NOW + SPREAD / 2 + 86_400),
        "a chat's turns of a day": TurnQuery(where=str(GROUP), until=NOW + SPREAD / 2),
    }
    today, month = midnight(END), midnight(END, later=-30)
    return {
        **{name: partial(rows, query=query) for name, query in queries.items()},
        "a trace": partial(trace, turn_id="t1-9"),
        "a chat": partial(chat, where=GROUP, before=0),
        "chats": partial(chats, before=0),
        "today": partial(day_counts, since=today, until=END + 1),
        **{f"cost by {by}": partial(costs, since=month, by=by) for by in COSTS},
        "runs that failed": partial(ends, since=month),
        "tools": tool_uses,
    }


def main(url: str, count: int = TURNS) -> None:
    """Seed where there is nothing, and print the median of some readings of each."""
    database = Database(url, migrate=migrate)
    batches = EntryBatches(database, stamp=lambda: "now")
    batches.write([])  # the schema
    batches.close()
    with database.reading() as connection:
        there = connection.scalar(select(func.max(turns.c.id)))
    if not there:
        seed(url, count)
    with database.reading() as connection:
        last = connection.scalar(select(func.max(turns.c.id))) or 0
        for name, query in readings(last // 2).items():
            times = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                query(connection)
                times.append(time.perf_counter() - begin)
            sys.stdout.write(f"{name:28} {1000 * statistics.median(times):8.1f} ms\n")
    database.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
