from __future__ import annotations

import asyncio

import pytest

from bot.budget.errands import MOST, Errands
from bot.budget.limits import Cap, DayLimits, LimitLevel
from bot.core.journal import ERRAND, UsageAdded
from bot.core.task_context import current_run, early_payer
from frostagent.types.errors import DaySpent, ModelRejected
from frostagent.types.messages import Completion, ModelRequest, ToolSpec, UserMessage
from tests.bot.budget.till import till_of, unlimited
from tests.fakes import GROUP, CountingIds, ManualClock, RecordingStore, ScriptedModel, words

REQUEST = ModelRequest((UserMessage("what was said?"),))


def errands(model: ScriptedModel, *, store: RecordingStore | None = None) -> Errands:
    store = store or RecordingStore()
    return Errands(model=model, store=store, spending=unlimited(), clock=ManualClock(), ids=CountingIds())


async def test_the_words_come_back_and_their_cost_is_written_for_the_payer() -> None:
    seen: list[object] = []

    async def answer(_: ModelRequest) -> Completion:
        seen.append((current_run.get().startswith(ERRAND), early_payer.get()))
        return words("  a lot ")

    store = RecordingStore()
    with ScriptedModel(answer) as model:
        assert await errands(model, store=store).ask(REQUEST, where=GROUP, who=777, within=5) == "a lot"
    assert seen == [(True, (GROUP, 777))]
    (added,) = store.entries
    assert isinstance(added, UsageAdded)
    assert (added.payer, added.turn_id.startswith(ERRAND)) == ((GROUP, 777), True)
    assert (current_run.get(), early_payer.get()) == ("", None)


async def test_nothing_is_asked_with_tools() -> None:
    with ScriptedModel() as model, pytest.raises(ModelRejected):
        await errands(model).ask(ModelRequest(REQUEST.messages, (ToolSpec("kick", "", {}),)), where=GROUP, within=5)


async def test_nothing_is_asked_once_the_day_of_who_pays_is_used_up() -> None:
    till = await till_of(DayLimits(user=Cap(tokens=100)))
    till.takes(100)
    with ScriptedModel(words("fine")) as model:
        own = Errands(model=model, store=RecordingStore(), spending=till.spending, clock=till.clock, ids=CountingIds())
        with pytest.raises(DaySpent):
            await own.ask(REQUEST, where=GROUP, who=777, within=5)
        assert own.level(GROUP, 777) is LimitLevel.SPENT
        assert await own.ask(REQUEST, where=GROUP, within=5) == "fine"  # the group pays for this


async def test_background_work_that_fails_ends_nothing_else_and_only_so_much_begins() -> None:
    done = asyncio.Event()

    async def fail() -> None:
        raise LookupError

    async def wait() -> None:
        await done.wait()

    with ScriptedModel() as model:
        own = errands(model)
        assert not own.start(fail(), "before it is open")
        async with asyncio.timeout(5), own.open():
            assert own.start(fail(), "what fails")
            await own.wait_idle()
            assert [own.start(wait(), "what waits") for _ in range(MOST + 1)] == [True] * MOST + [False]
            done.set()
            await own.wait_idle()
