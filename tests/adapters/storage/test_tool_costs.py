"""What tools cost is the same from rows and from sums of days, and all together what everything cost."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.sums import costs, tool_costs
from adapters.storage.retention import LATE, add_up
from adapters.storage.tables import day_tools
from bot.core.calendar_days import midnight
from bot.core.console_views import CostSum
from bot.core.journal import Entry, UsageAdded
from bot.core.query_results import UsageSum
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, ToolMessage, Usage
from frostagent.types.runs import StepFinished
from tests.adapters.storage.entries import NOW, began, ended, opening, read
from tests.adapters.storage.test_books import write
from tests.adapters.storage.test_closed_days import close

SINCE, FIRST = midnight(NOW, later=-30), midnight(NOW, later=-1)


def asked(turn_id: str, number: int, cost: float | None = 1.0) -> StepFinished:
    completion = Completion(AssistantMessage("x"), FinishReason.STOP, Usage(101, 7, 51, 1, cost), model="demo")
    return StepFinished(run_id=turn_id, step=number, completion=completion, seconds=0.5)


def called(turn_id: str, step: int, *names: str, is_made: bool = True) -> list[Entry]:
    """A step with these calls, all of which got a result."""
    told = list[Entry]()
    for place, name in enumerate(names):
        call_id = f"c{place}"
        told += [began(turn_id, step, call_id, name)] if is_made else []
        told.append(ended(turn_id, ToolMessage(call_id, name, "x"), step))
    return told


def an_evening() -> list[Entry]:
    """Six steps of two turns and a request beside them: weather alone; weather twice and versions; one denied."""
    return [
        opening("a", at=FIRST),
        asked("a", 1),
        *called("a", 1, "weather"),
        asked("a", 2),
        *called("a", 2, "weather", "versions", "weather"),
        asked("a", 3, None),
        UsageAdded(turn_id="a", model="demo", usage=Usage(101, 7, 51, 1, 1.0), at=FIRST),
        opening("b", at=FIRST),
        asked("b", 1),
        *called("b", 1, "denied", is_made=False),
        asked("b", 2),
        asked("b", 3),  # after no call: a step that was asked again
    ]


EXPECTED = {
    "": UsageSum(4, 404, 204, 28, 4.0, 0),
    "weather": UsageSum(2, 168, 85, 12, 1.0, 1),
    "denied": UsageSum(1, 101, 51, 7, 1.0, 0),
    "versions": UsageSum(0, 34, 17, 2, 0.0, 1),
}


def by_name(sums: tuple[CostSum, ...]) -> dict[str, UsageSum]:
    return {one.name: one.usage for one in sums}


@pytest.mark.parametrize("is_over", [False, True], ids=["today", "added up"])
def test_a_request_counts_for_the_tools_whose_results_it_was_the_first_to_read(
    batches: EntryBatches, database: Database, is_over: bool
) -> None:
    write(batches, *an_evening())
    if is_over:
        assert close(batches, midnight(NOW, later=2) + LATE)
    sums = read(database, costs, SINCE, "tool")
    assert by_name(sums) == EXPECTED
    assert sums[0].name == ""
    (whole,) = read(database, costs, SINCE, "model")
    assert sum(one.usage.cost for one in sums) == pytest.approx(whole.usage.cost)
    assert sum(one.usage.requests for one in sums) == whole.usage.requests
    for name in ("prompt", "completion", "cached"):
        assert 0 <= getattr(whole.usage, name) - sum(getattr(one.usage, name) for one in sums) < len(sums)
    assert read(database, tool_costs, midnight(NOW, later=3)) == []


def test_days_from_before_there_were_sums_by_tool_are_added_up_one_after_the_other(
    batches: EntryBatches, database: Database
) -> None:
    write(batches, *an_evening())
    later = midnight(NOW, later=2) + LATE
    assert close(batches, later) == 2
    batches.run(lambda connection: bool(connection.execute(delete(day_tools)).rowcount))
    write(batches, UsageAdded(turn_id="a", model="demo", usage=Usage(1, 1, 0, 0, 2.0), at=later))
    assert by_name(read(database, costs, SINCE, "tool"))[""].cost == 6.0
    assert close(batches, later) == 2
    assert batches.run(lambda connection: add_up(connection, now=later)) is False
    sums = by_name(read(database, costs, SINCE, "tool"))
    assert (sums["weather"], sums[""].cost) == (EXPECTED["weather"], 6.0)
