from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.sums import tool_uses
from adapters.storage.tables import tool_calls
from bot.core.console_views import ToolUse
from frostagent.types.messages import ToolMessage
from tests.adapters.storage.entries import began, ended, opening, read
from tests.adapters.storage.test_books import whole, write


def test_tools_are_told_with_how_often_they_were_called_and_failed(batches: EntryBatches, database: Database) -> None:
    write(batches, *whole())
    assert read(database, tool_uses) == (ToolUse("get_weather", 1, 0, "", 1.5, lately=(0, 1)),)
    write(batches, ended("t1", ToolMessage("c2", "get_weather", "late"), step=2, code="TOOL_TIMEOUT", seconds=3.0))
    assert read(database, tool_uses) == (
        ToolUse("get_weather", 2, 1, "TOOL_TIMEOUT", 3.0, lately=(1, 2), error="late"),
    )


CODES = st.sampled_from(("ok", "TOOL_TIMEOUT", "TOOL_DENIED", "TOOL_CANCELLED", "of_its_own", ""))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(st.tuples(st.sampled_from("ab"), CODES), max_size=40))
def test_the_calls_of_a_tool_are_those_that_were_fine_failed_or_go_on_whatever_became_of_them(
    database: Database, calls: list[tuple[str, str]]
) -> None:
    with database.connect() as connection, connection.begin():
        connection.execute(tool_calls.delete())
    batches = EntryBatches(database, stamp=lambda: "now")
    write(batches, opening("t1"))
    for number, (name, code) in enumerate(calls):
        call_id = f"c{number}"
        write(batches, began("t1", 1, call_id, name))
        if code:
            write(batches, ended("t1", ToolMessage(call_id, name, f"said {number}"), code=code))
    batches.close()
    told = {one.name: one for one in read(database, tool_uses)}
    assert sorted(told) == sorted({name for name, _ in calls})
    for name, one in told.items():
        codes = [code for of, code in calls if of == name]
        assert (one.calls, one.fine, one.going_on) == (len(codes), codes.count("ok"), codes.count(""))
        assert one.fine + one.failed + one.going_on == one.calls
        telling = [code for code in reversed(codes) if code in {"ok", "TOOL_TIMEOUT", "of_its_own"}][:10]
        assert one.lately == (len([code for code in telling if code != "ok"]), len(telling))
        last = [number for number, (of, code) in enumerate(calls) if of == name and code not in {"ok", ""}][-1:]
        assert one.error == (f"said {last[0]}" if last else "")
