from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from frostagent.clock import TRACE_ALPHABET, RandomIds, SystemClock
from frostagent.types.ports import Clock, Ids


def test_now_is_the_wall_time() -> None:
    before = time.time()
    assert before <= SystemClock().now() <= time.time()


def test_monotonic_time_never_goes_back() -> None:
    clock = SystemClock()
    times = [clock.monotonic() for _ in range(100)]
    assert times == sorted(times)


async def test_sleeping_takes_its_time_and_lets_others_run() -> None:
    clock: Clock = SystemClock()
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    before = clock.monotonic()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(other())
        await clock.sleep(0.01)
        ran.append("slept")
    assert ran == ["other", "slept"]
    assert clock.monotonic() - before >= 0.009  # a timer may fire one tick of the loop's clock early


def test_trace_ids_are_short_differ_and_can_be_read_aloud() -> None:
    ids: Ids = RandomIds()
    traces = {ids.trace() for _ in range(1000)}
    assert len(traces) == 1000
    assert all(len(trace) == 8 and set(trace) <= set(TRACE_ALPHABET) for trace in traces)
    assert not set("0o1il") & set(TRACE_ALPHABET)


def test_trace_ids_rise_so_that_the_journal_keeps_new_ones_together_and_no_process_begins_where_another_did() -> None:
    ids = RandomIds()
    traces = [ids.trace() for _ in range(1000)]
    assert sum(later < earlier for earlier, later in pairwise(traces)) <= 1  # after the last there comes the first
    assert len({trace[-3:] for trace in traces}) > 900
    assert len({RandomIds().trace()[:4] for _ in range(100)}) > 90


def test_jitter_is_a_number_from_zero_up_to_one() -> None:
    assert all(0 <= RandomIds().jitter() < 1 for _ in range(1000))
