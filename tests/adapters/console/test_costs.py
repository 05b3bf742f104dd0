from __future__ import annotations

import re

from adapters.console.figures import date, day
from bot.domain.books import UsageSum
from bot.domain.shown import CostSum
from bot.policy.days import midnight
from tests.adapters.console.visiting import visiting

ENGLISH = {"Accept-Language": "en"}


async def test_costs_are_told_by_day_and_by_what_somebody_asks_for() -> None:
    async with visiting() as place:
        await place.log_in()
        now = place.clock.now()
        used = {0: 3.0, 1: 7.0, 7: 7.0, 8: 99.0}
        place.journal.sums = {
            "day": tuple(
                CostSum(str(midnight(now, later=-n)), UsageSum(2, 100, 71, 10, cost)) for n, cost in used.items()
            ),
            "model": (CostSum("free", UsageSum(1, unpriced=1)), CostSum("x", UsageSum(1, cost=1.0))),
            "conversation": (CostSum("=1+1", UsageSum(1, cost=12.1)), CostSum("", UsageSum(1, cost=1.0))),
        }
        _, text, _ = await place.ask("GET", "/cost", headers=ENGLISH)
        assert text.count("<title>") == 31  # the page's own, and thirty days
        assert "$60.00" in text  # thirty days like the last seven that are over: 14 / 7 * 30
        assert "71%" in text
        assert "free" in text
        assert "(nobody" in text
        assert "of 0 runs failed: 0" in text
        place.journal.ended = (200, 6)
        text = (await place.ask("GET", "/cost", headers=ENGLISH))[1]
        assert "<b>3%</b>" in text
        assert "of 200 runs failed: 6" in text
        assert place.journal.since[-1] == midnight(now, later=-29)
        status, text, answer = await place.ask("GET", "/cost/csv?by=chat")
        assert (status, answer.content_type) == (200, "text/csv")
        assert text.splitlines()[1].startswith("'=1+1,1,")
        assert "x,1" in (await place.ask("GET", "/cost/csv?by=model"))[1]
        _, text, _ = await place.ask("GET", "/cost/csv?by=day")
        assert text.splitlines()[1].startswith(f"{date(now)},2,100,")
        _, text, _ = await place.ask("GET", "/cost?by=day", headers=ENGLISH)
        assert f"<tr><td>{day(now)}<svg" in text
        place.journal.lines = None
        status, text, _ = await place.ask("GET", "/cost", headers=ENGLISH)
        assert status == 200
        assert "runs failed" not in text
        assert (await place.ask("GET", "/cost/csv"))[0] == 503


async def test_what_tools_cost_is_told_with_what_that_means_and_what_counts_for_none() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.sums["tool"] = (CostSum("", UsageSum(3, cost=2.0)), CostSum("get_weather", UsageSum(1, cost=1.0)))
        _, text, _ = await place.ask("GET", "/cost?by=tool", headers={"Accept-Language": "en"})
        links = re.findall(r'href="/cost\?by=(\w+)"', text.partition("cost/csv")[0])
        assert links == ["day", "chat", "person", "model", "tool"]
        for words in ("(no tool)", "get_weather", "the first to read", "$2.00"):
            assert words in text, words
        _, text, _ = await place.ask("GET", "/cost?by=model", headers={"Accept-Language": "en"})
        assert "the first to read" not in text
        status, text, _ = await place.ask("GET", "/cost/csv?by=tool")
        assert (status, text.splitlines()[1:]) == (200, [",3,0,0,0,2.0,0", "get_weather,1,0,0,0,1.0,0"])
