from __future__ import annotations

from prometheus_client import CollectorRegistry

from adapters.metrics.exposition import CountsCollector, DiskCollector, JobsCollector, TimesCollector
from adapters.metrics.metrics import Count, Family, Times
from bot.core.jobs import JobState


def test_times_show_as_a_histogram_with_its_bounds_as_they_are_written() -> None:
    registry, family = CollectorRegistry(), Family("wait_seconds", "Waits.", ("tool",), lambda: Times((0.5, 1)))
    registry.register(TimesCollector(family))
    for seconds in (0.5, 0.75, 1.0, 7.0):
        family.labels("a").observe(seconds)
    within = [
        registry.get_sample_value("wait_seconds_bucket", {"tool": "a", "le": le}) for le in ("0.5", "1.0", "+Inf")
    ]
    assert within == [1, 3, 4]
    assert registry.get_sample_value("wait_seconds_count", {"tool": "a"}) == 4
    assert registry.get_sample_value("wait_seconds_sum", {"tool": "a"}) == 9.25


def test_a_count_shows_from_the_first_time_it_is_asked_for() -> None:
    registry, family = CollectorRegistry(), Family("calls", "Calls.", ("tool",), Count)
    registry.register(CountsCollector(family))
    assert registry.get_sample_value("calls_total", {"tool": "a"}) is None
    family.labels("a")
    assert registry.get_sample_value("calls_total", {"tool": "a"}) == 0
    family.labels("a").inc(3)
    assert registry.get_sample_value("calls_total", {"tool": "a"}) == 3


def test_the_room_on_the_disk_shows_where_it_is_known() -> None:
    for free in (5, None):
        registry = CollectorRegistry()
        registry.register(DiskCollector(free))
        assert registry.get_sample_value("frostagent_disk_free_bytes") == free


def test_the_jobs_that_have_not_ended_show_by_state_if_the_journal_has_counted_them() -> None:
    registry = CollectorRegistry()
    registry.register(JobsCollector({"waiting": 7, "missed": 2}))
    shown = {state: registry.get_sample_value("frostagent_jobs_waiting", {"state": state}) for state in JobState}
    assert shown == {"waiting": 7, "firing": 0, "missed": 2, "reporting": 0, "ended": None}
    away = CollectorRegistry()
    away.register(JobsCollector(None))
    assert away.get_sample_value("frostagent_jobs_waiting", {"state": "waiting"}) is None
