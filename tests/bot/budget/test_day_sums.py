from __future__ import annotations

from bot.budget.limits import NOTHING, Amount, Cap, DayLimits, LimitOverride, OwnLimits
from bot.budget.spending import DaySums
from tests.fakes import GROUP, ManualClock, RecordingStore
from tests.settings import kept_settings

LIMITS = DayLimits(user=Cap(tokens=100), group=Cap(cost=2.0), all=Cap(tokens=1000, cost=10.0))


async def test_each_sum_is_its_keys_and_its_share_is_of_the_limit_of_its_kind() -> None:
    store = RecordingStore()
    own = OwnLimits(settings=kept_settings(store), clock=ManualClock())
    sums, keys = DaySums(LIMITS, own), ("all", GROUP, 777)
    assert await own.load()
    assert (sums.shares(keys), sums.of(777), dict(sums.all_shares())) == ([0.0, 0.0, 0.0], NOTHING, {})
    sums.add(keys, Amount(50, 1.0))
    sums.add(("all", 5), Amount(100, 2.0))
    assert sums.shares(keys) == sums.shares(keys) == [0.3, 0.5, 0.5]
    assert sums.all_shares() == {"all": 0.3, GROUP: 0.5, 777: 0.5, 5: 1.0}
    sums.add((777,), NOTHING.less(Amount(25)))
    assert (sums.of(777), sums.shares((777,))) == (Amount(25, 1.0), [0.25])
    assert await own.keep(777, LimitOverride(tokens=50))
    assert sums.shares((777, 5)) == [0.5, 1.0]
    assert await own.keep(777, None)
    assert sums.shares((777, 5)) == [0.25, 1.0]
    sums.clear()
    assert (sums.shares(keys), dict(sums.all_shares())) == ([0.0, 0.0, 0.0], {})
