from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.core.erasure import SubjectErased
from bot.core.query_results import UsageSum
from bot.core.trial_group import Source, Trial, TrialLimits, TrialOptions
from bot.trial import trial_manager as module
from bot.trial.trial_manager import COST, IDLE, REQUESTS, TOKENS, TrialManager, ceiling_of
from config.settings import Settings
from frostagent.cancellation import background
from tests.adapters.console.trials import CEILING, ListTrial
from tests.adapters.console.visiting import Journal
from tests.cases import each_case
from tests.fakes import SteppedClock, until

DEEPSEEK = {"base_url": "https://api.deepseek.com/v1", "api_key": "k", "model": "deepseek-chat"}
TOOK = UsageSum(2, 900, 0, 100, 0.01)


@dataclass
class Opened:
    """What was opened and what ended, in order; `broken` is raised while one is open."""

    trials: list[ListTrial] = field(default_factory=list)
    ledger: list[str] = field(default_factory=list)
    told: list[UsageSum] = field(default_factory=list)
    fails: bool = False
    trouble: str = ""
    breaks: asyncio.Event = field(default_factory=asyncio.Event)
    slow: asyncio.Event | None = None

    @asynccontextmanager
    async def opening(self, wanted: TrialOptions) -> AsyncIterator[Trial]:
        if self.fails:
            raise OSError("there is no room")
        if self.slow is not None:
            await self.slow.wait()
        number = len(self.trials)
        self.trials.append(trial := ListTrial(Journal(), wanted=wanted, spent=TOOK, trouble=self.trouble))
        self.ledger.append(f"opens {number}")
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(self.break_down())
                yield trial
                task.cancel()
        finally:
            self.ledger.append(f"ends {number}")

    async def break_down(self) -> None:
        await self.breaks.wait()
        raise RuntimeError("a service that breaks down")


def lacking(word: str) -> Callable[[TrialLimits], Awaitable[str]]:
    async def find_lack(ceiling: TrialLimits) -> str:
        assert ceiling == CEILING
        return word

    return find_lack


def trials(opened: Opened, clock: SteppedClock, **more: Any) -> TrialManager:
    given = {"ceiling": lambda: CEILING, "find_lack": lacking("")} | more
    return TrialManager(opened.opening, on_end=opened.told.append, clock=clock, **given)


async def test_one_is_open_at_a_time_and_the_next_takes_its_place() -> None:
    opened = Opened()
    trying = trials(opened, SteppedClock())
    async with background(trying.run()):
        assert (trying.current, trying.can_end) == (None, False)
        await asyncio.gather(trying.open(TrialOptions()), trying.open(TrialOptions(key="k")))
        assert opened.ledger == ["opens 0", "ends 0", "opens 1"]
        assert trying.current is opened.trials[1]
        assert trying.can_end
        await trying.end()
        assert trying.current is None
        assert opened.ledger[-1] == "ends 1"
        await trying.end()
        assert await trying.open(TrialOptions()) == ""
    assert opened.ledger[-1] == "ends 2"
    assert not opened.told  # the demo model costs nothing


async def test_it_ends_when_nobody_was_at_it_for_ten_minutes() -> None:
    opened, clock = Opened(), SteppedClock()
    trying = trials(opened, clock)
    async with background(trying.run()):
        await trying.open(TrialOptions())
        await clock.advance(IDLE - 1)
        trying.touch()
        await clock.advance(IDLE - 1)
        assert opened.ledger == ["opens 0"]
        await clock.advance(2)
        await until(lambda: trying.current is None)
    assert opened.ledger == ["opens 0", "ends 0"]


async def test_what_a_real_model_took_is_told_when_it_is_over() -> None:
    opened = Opened()
    trying = trials(opened, SteppedClock())
    async with background(trying.run()):
        for _ in range(2):
            await trying.open(TrialOptions(is_real=True))
        assert (opened.told, trying.last) == ([TOOK], TOOK)
        await trying.open(TrialOptions(is_real=True))
    assert opened.told == [TOOK] * 3  # also where the process ends


async def test_one_with_the_bots_own_model_is_opened_if_there_is_one_and_nothing_is_lacking() -> None:
    opened, clock = Opened(), SteppedClock()
    demo, real = (ListTrial(Journal(), wanted=TrialOptions(is_real=is_real)) for is_real in (False, True))
    for more, said in (
        ({"ceiling": lambda: None}, "failed"),
        ({"find_lack": lacking("spent")}, "spent"),
        ({"home": demo}, "failed"),
        ({"home": real}, ""),
    ):
        trying = trials(opened, clock, **more)
        async with background(trying.run()):
            assert await trying.open(TrialOptions(is_real=True)) == said
            assert opened.ledger == ["opens 0"] * (not said)
            if said == "spent":
                assert await trying.open(TrialOptions()) == ""  # the demo model costs nothing
        opened.ledger.clear()
        opened.trials.clear()


async def test_the_group_of_a_terminal_is_there_whenever_no_other_is() -> None:
    opened, home = Opened(), ListTrial(Journal())
    trying = trials(opened, SteppedClock(), home=home)
    async with background(trying.run()):
        await trying.end()
        assert (trying.current, trying.can_end) == (home, False)
        await trying.open(TrialOptions())
        assert trying.current is opened.trials[0]
        await trying.end()
        assert trying.current is home


async def test_one_that_cannot_be_opened_or_breaks_down_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    opened = Opened(fails=True)
    trying = trials(opened, SteppedClock())
    async with background(trying.run()):
        assert await trying.open(TrialOptions()) == "failed"
        opened.fails = False
        assert await trying.open(TrialOptions(is_real=True)) == ""
        opened.breaks.set()
        await until(lambda: trying.current is None)
        await until(lambda: opened.ledger == ["opens 0", "ends 0"])
        opened.breaks.clear()
        assert await trying.open(TrialOptions()) == ""
    assert opened.told == [TOOK]
    assert len([one for one in caplog.records if one.levelno == logging.WARNING]) == 2


async def test_one_that_is_not_as_it_was_wanted_is_not_held_open() -> None:
    opened = Opened(trouble="persona")
    trying = trials(opened, SteppedClock())
    async with background(trying.run()):
        assert await trying.open(TrialOptions(key="gone")) == "persona"
        await until(lambda: opened.ledger == ["opens 0", "ends 0"])
        assert trying.current is None
        opened.trouble = ""
        assert await trying.open(TrialOptions()) == ""


async def test_one_with_words_of_somebody_who_is_forgotten_ends_and_no_other() -> None:
    opened = Opened()
    trying = trials(opened, SteppedClock())
    async with background(trying.run()):
        trying.forget(SubjectErased(user=777))
        await trying.open(TrialOptions())
        opened.trials[0].propose("小明", "伞？", Source(777, 4242))
        trying.forget(SubjectErased(user=778, group=4243))
        await asyncio.sleep(0)
        assert (trying.current, opened.ledger) == (opened.trials[0], ["opens 0"])
        trying.forget(SubjectErased(user=777))
        assert opened.trials[0].draft is None  # at once
        await until(lambda: trying.current is None)
        await until(lambda: opened.ledger == ["opens 0", "ends 0"])


@each_case("is_first", [True, False])
async def test_one_for_a_question_of_somebody_who_is_forgotten_before_it_is_open_is_not_opened(is_first: bool) -> None:
    opened = Opened(slow=asyncio.Event())
    assert opened.slow is not None
    trying = trials(opened, SteppedClock())
    asked = TrialOptions(is_real=True, asker="小明", question="伞？", source=Source(777, 4242))
    async with background(trying.run()), asyncio.TaskGroup() as group:
        before = None if is_first else group.create_task(trying.open(TrialOptions()))
        await asyncio.sleep(0)
        opening = group.create_task(trying.open(asked))
        await until(lambda: len(trying._waiting) == 2 - is_first)
        trying.forget(SubjectErased(user=778, group=4243))
        trying.forget(SubjectErased(group=4242))
        opened.slow.set()
        assert await opening == "forgotten"
        assert before is None or await before == ""  # another's is open until then
        await until(lambda: opened.ledger[-2:] == [f"opens {1 - is_first}", f"ends {1 - is_first}"])
        assert trying.current is None
        assert await trying.open(asked) == ""  # asked since then


async def test_one_that_nobody_waits_for_any_more_is_not_held_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_WITHIN", 0.02)
    opened = Opened(slow=asyncio.Event())
    trying = trials(opened, SteppedClock())
    async with background(trying.run()):
        with pytest.raises(TimeoutError):
            await trying.open(TrialOptions(is_real=True))
        assert opened.slow is not None
        opened.slow.set()
        await until(lambda: opened.ledger == ["opens 0", "ends 0"])
        assert trying.current is None
        monkeypatch.setattr(module, "OPEN_WITHIN", 20.0)
        assert await trying.open(TrialOptions()) == ""
        assert trying.current is opened.trials[1]


@each_case(
    ("more", "unpriced"),
    [
        ({}, ()),
        ({"llm_model": "mine"}, ("mine",)),
        ({"llm_model": "mine", "llm_fallbacks": [DEEPSEEK]}, ("mine",)),
        ({"llm_vision_model": "eye", "llm_cheap_model": "small", "coder_model": "hand"}, ("small", "hand", "eye")),
    ],
)
def test_the_most_a_trial_may_take_is_told_with_those_whose_price_nobody_knows(
    more: dict[str, Any], unpriced: tuple[str, ...]
) -> None:
    given = {"llm_base_url": "https://api.deepseek.com/v1", "llm_model": "deepseek-chat", **more}
    # What has a price, a fallback or the vendor's own figure, is bounded also where the main model has none.
    assert ceiling_of(Settings.model_validate(given)) == TrialLimits(
        given["llm_model"], COST, TOKENS, REQUESTS, unpriced
    )


def test_without_a_model_there_is_no_trial_of_it() -> None:
    assert ceiling_of(Settings()) is None
