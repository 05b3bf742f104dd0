"""The kill test (tests/torture), as much of it as CI has time for; `make torture` tries all of its moments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.processes import Nursery
from tests.torture.report import describe
from tests.torture.series import MOMENTS, SEED, choose, rehearse
from tests.torture.trial import try_moment

KILLS, STOPS = 40, 8
PARTS = 4  # so that they can be spread over processors


@pytest.mark.timeout(180)
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_service_that_dies_at_any_moment_loses_nothing_and_says_nothing_twice(
    part: int, tmp_path: Path
) -> None:
    async with Nursery(tmp_path / "victims.log") as nursery:
        rehearsal = await rehearse(nursery)
        trials = [rehearsal]
        if not rehearsal.verdict.complaints:
            chosen = choose(rehearsal)
            moments = [*chosen[:KILLS], *chosen[MOMENTS : MOMENTS + STOPS]]
            trials += [await try_moment(nursery, moment) for moment in moments[part::PARTS]]
    if failed := [describe(trial, SEED) for trial in trials if trial.verdict.complaints]:
        pytest.fail("\n".join(failed), pytrace=False)
