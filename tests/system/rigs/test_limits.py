from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import limits
from tests.bench.limits import Added, measure_limits, subjects, told


def test_a_slice_is_compared_with_the_one_beside_it_and_the_median_is_told() -> None:
    steady = Added("rates", (1.0, 2.06, 30.0), (1.0, 2.0, 10.0))
    assert [f"{ratio:.2f}" for ratio in steady.ratios] == ["1.00", "1.03", "3.00"]
    slower = Added("days", (1.1, 2.2, 3.3), (1.0, 2.0, 3.0))
    rows = told([steady, slower]).splitlines()
    assert rows[0].split()[:3] == ["processor,", "3", "slices"]
    assert [row.split()[-1] for row in rows[1:]] == ["holds", "SLIPPED"]
    assert "1.030x" in rows[1]
    assert "1.100x" in rows[2]
    assert limits.as_json([slower]) == {"days": {"used": (1.1, 2.2, 3.3), "ratio": pytest.approx(1.1)}}


def test_only_limits_differ_between_the_bots() -> None:
    bots = {one.name: one.parts[0] for one in subjects(Path(), Path("prices.toml"))}
    plain = bots["no limits"]
    assert plain == bots["no limits again"] == {"LLM_PRICES": "prices.toml"}
    added = {name: {key for key in settings if key not in plain} for name, settings in bots.items()}
    assert added["rates"] == {"BOT_USER_RATE", "BOT_GROUP_RATE"}
    assert added["rates and days"] - added["rates"] == {
        f"BOT_DAY_{kind}_{whose}" for kind in ("COST", "TOKENS") for whose in ("USER", "GROUP", "ALL")
    }


async def test_every_bot_is_asked_in_every_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WARM_UP", 2)
    added = await measure_limits(1)
    assert [one.name for one in added] == ["no limits", "no limits again", "rates", "rates and days"]
    assert all(used > 0 for one in added for used in one.used)
    assert [len(one.used) for one in added] == [1] * 4
