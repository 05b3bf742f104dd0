from __future__ import annotations

import pytest
from msgspec.structs import replace

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.sums import day, spent
from bot.core.journal import Judged, MemberNumbered, SendChanged, SendState
from bot.core.query_results import DaySum, Spender
from tests.adapters.storage.entries import NOW, closing, opening, put, read, step
from tests.adapters.storage.test_books import ELSEWHERE, drafted, whole, write
from tests.fakes import GROUP, said


def test_a_day_counts_what_usage_counts_and_nothing_of_elsewhere(batches: EntryBatches, database: Database) -> None:
    write(batches, *whole(), MemberNumbered(conversation=GROUP, number=1, user_id=777, name="小明"))
    for reason in ("rate", "muted"):  # the last one about a message counts
        write(batches, Judged(conversation=GROUP, message_id="8", sender=888, wakes=False, reason=reason))
    told = read(database, day, 0.0, 1e12, GROUP)
    assert (told.questions, told.turns, told.dropped, told.failed) == (2, (("answered", 1),), (("muted", 1),), ())
    assert told.models == (("demo", read(database, spent, 0.0, None, None)),)
    assert (told.people, told.groups) == ((Spender(777, "小明", 30, 0.5),), (Spender(4242, "", 30, 0.5),))
    assert read(database, day, 0.0, 1e12, None) == told
    assert read(database, day, 0.0, 1e12, ELSEWHERE) == DaySum()
    assert read(database, day, 0.0, NOW - 100, None).models == ()


def test_a_day_tells_by_whom_its_drafts_were_published(batches: EntryBatches, database: Database) -> None:
    changed = SendChanged(send_id="draft-9-a", state=SendState.REWORDED, at=NOW + 60, reason="主人(999)")
    write(batches, *whole(), *drafted(), changed)
    assert read(database, day, 0.0, 1e12, GROUP).published == (("主人(999)", 2), ("控制台", 1))
    assert read(database, day, 0.0, NOW - 100, None).published == ()


@pytest.mark.parametrize("jump", [-48 * 3600.0, 48 * 3600.0])
def test_a_clock_that_was_days_off_for_a_while_hides_no_turn_of_the_day(
    batches: EntryBatches, database: Database, jump: float
) -> None:
    ahead = [0.0] * 4 + [jump] * 9 + [0.0] * 3
    for number, off in enumerate(ahead):
        at = NOW + number + off
        opened = replace(opening(f"t{number}", said("?", message_id=f"m{number}")), at=at)
        batches.write(put(opened, step(f"t{number}", 1), at=at))
        batches.write(put(replace(closing(opened), at=at), at=at))
    assert read(database, day, NOW - 60, NOW + 60, None).of("answered") == 7
    assert read(database, day, NOW + jump - 60, NOW + jump + 60, None).of("answered") == 9
