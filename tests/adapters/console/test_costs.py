from __future__ import annotations

import re

import pytest

from adapters.console.language import date, day
from bot.core.calendar_days import midnight
from bot.core.console_views import CostSum, ModelState, State
from bot.core.query_results import UsageSum
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
        assert "0 of 0 runs failed" in text
        place.journal.ended = (200, 6)
        text = (await place.ask("GET", "/cost", headers=ENGLISH))[1]
        assert "<b>3%</b>" in text
        assert "6 of 200 runs failed" in text
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


async def test_what_is_spent_stands_beside_a_forecast_that_fits_it() -> None:
    """Whenever the first request was, and with the same mark for what has no known price."""
    cases = {
        "nothing yet": ({}, "$0.0000"),
        "today alone, some without a price": ({0: UsageSum(3, cost=0.0753, unpriced=1)}, "$2.26+?"),
        "today alone, all without a price": ({0: UsageSum(3, unpriced=3)}, "$?"),
        "since the day before yesterday": ({0: UsageSum(1, cost=9.0), 2: UsageSum(1, cost=3.0)}, "$45.00"),
        "for weeks": ({n: UsageSum(1, cost=1.0) for n in range(20)}, "$30.00"),
        "not for a week": ({0: UsageSum(1, cost=2.0), 20: UsageSum(1, cost=1.0)}, "$60.00"),
    }
    async with visiting() as place:
        await place.log_in()
        now = place.clock.now()
        for case, (used, forecast) in cases.items():
            place.journal.sums["day"] = tuple(CostSum(str(midnight(now, later=-n)), one) for n, one in used.items())
            _, text, _ = await place.ask("GET", "/cost", headers=ENGLISH)
            figures = re.findall(r'<div class="card"><b>([^<]*)</b>', text)
            assert figures[1] == forecast, case


async def test_a_missing_price_is_told_once_and_no_more_once_there_is_one() -> None:
    async with visiting() as place:
        await place.log_in()
        lacking = tuple(CostSum(name, UsageSum(4, cost=1.0, unpriced=3)) for name in ("a", "b", "c"))
        place.journal.sums["model"] = (*lacking, CostSum("free", UsageSum(1)))
        place.state = State(models=(ModelState("a"), ModelState("b", is_priced=True), ModelState("free")))
        for by in ("model", "chat"):
            _, text, _ = await place.ask("GET", f"/cost?by={by}", headers=ENGLISH)
            assert text.count("LLM_PRICES") == 1
            assert "No price is known for a, c: the sums" in text
            assert "3 requests of b were made before the price was known" in text
        place.state = State(models=tuple(ModelState(name, is_priced=True) for name in "abc"))
        _, text, _ = await place.ask("GET", "/cost", headers=ENGLISH)
        assert "LLM_PRICES" not in text
        assert "9 requests of a, b, c were made before" in text
        place.journal.sums["model"] = (CostSum("a", UsageSum(4, cost=1.0, unpriced=1)),)
        assert "1 request of a was made before" in (await place.ask("GET", "/cost", headers=ENGLISH))[1]


async def test_the_chart_has_a_scale_that_its_dearest_day_fits_on() -> None:
    async with visiting() as place:
        await place.log_in()
        now = place.clock.now()
        scales = (
            (0.0753, "$0.1000"),
            (0.1, "$0.1000"),
            (3.0, "$5.00"),
            (180.0, "$200.00"),
            (0.0, ""),
            (0.3, "$0.5000"),
        )
        for cost, top in scales:
            place.journal.sums["day"] = (CostSum(str(midnight(now)), UsageSum(1, cost=cost)),)
            _, text, _ = await place.ask("GET", "/cost", headers=ENGLISH)
            scale = re.search(r'<div class="scale[^>]*><span>([^<]*)</span><span>[^<]*</span><span>\$0', text)
            assert (scale[1] if scale else "") == top, cost
            heights = [float(number) for number in re.findall(r'<rect x="[^"]*" y="([^"]*)"', text)]
            if cost:
                assert min(heights) == pytest.approx(100 - 100 * cost / float(top.removeprefix("$")))


async def test_what_is_beyond_the_dearest_is_told_as_one_row() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.sums["asker"] = (
            CostSum("5", UsageSum(1, cost=2.0)),
            CostSum("", UsageSum(9, cost=1.5), others=7),
        )
        _, text, _ = await place.ask("GET", "/cost?by=person", headers=ENGLISH)
        assert '<span class="quiet">7 others</span>' in text
        assert "(nobody" not in text
        assert (await place.ask("GET", "/cost/csv?by=person"))[1].splitlines()[2].startswith("…,9,")


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


async def test_chats_are_named_as_elsewhere_with_the_account_if_there_are_several() -> None:
    async with visiting() as place:
        await place.log_in()
        one, other = CostSum("10001:group:7", UsageSum(1), "学习群"), CostSum("10001:private:5", UsageSum(1))
        place.journal.sums["conversation"] = (one, other, CostSum("", UsageSum(1), others=2))
        _, text, _ = await place.ask("GET", "/cost", headers=ENGLISH)
        assert re.findall(r"<tr><td>([^<]+)<svg", text) == ["学习群 (group 7)", "private chat 5"]
        place.journal.sums["conversation"] = (one, CostSum("10002:group:7", UsageSum(1)))
        _, text, _ = await place.ask("GET", "/cost", headers=ENGLISH)
        assert re.findall(r"<tr><td>([^<]+)<svg", text) == ["学习群 (group 7, account 10001)", "group 7, account 10002"]
        place.journal.sums["conversation"] = (CostSum("10001:group:7", UsageSum(1, cost=0.1 + 0.2)),)
        assert (await place.ask("GET", "/cost/csv?by=chat"))[1].splitlines()[1] == "10001:group:7,1,0,0,0,0.3,0"
