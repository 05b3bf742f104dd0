"""What is kept and what is dropped when memory is full."""

from __future__ import annotations

from bot.core.journal import Entry
from tests.adapters.storage.desk import desk
from tests.adapters.storage.entries import asked, closing, heard, opening, sending, step


async def test_chatter_is_dropped_first_and_the_oldest_of_it() -> None:
    async with desk(limit=100) as at:
        await at.fail()
        opened = opening("t1")
        precious: list[Entry] = [asked("hello?"), opened, step("t1"), sending("s1", "t1"), closing(opened)]
        chatter = [heard(str(number)) for number in range(100)]
        at.writer.put(*chatter[:50], *precious, *chatter[50:])
        await at.recover()
        assert [entry for entry in at.batches.written if entry in precious] == precious
        left = [entry for entry in at.batches.written if entry in chatter]
        assert left == chatter[-len(left) :]
        assert at.told[-1].endswith(f"{len(left) + 6} entries caught up, {100 - len(left)} lost.")
        assert 90 <= len(left) <= 95


async def test_then_the_details_of_turns_but_never_what_was_promised() -> None:
    async with desk(limit=100) as at:
        await at.fail()
        turns: list[Entry] = [opening(str(number)) for number in range(80)]
        details: list[Entry] = [step(str(number)) for number in range(80)]
        for turn, detail in zip(turns, details, strict=True):
            at.writer.put(turn, detail)
        await at.recover()
        assert [entry for entry in at.batches.written if entry in turns] == turns
        assert 15 <= len(at.batches.written) - len(turns) <= 21


async def test_memory_has_an_end_whatever_is_in_it() -> None:
    async with desk(limit=100) as at:
        await at.fail()
        for number in range(1000):
            at.writer.put(opening(str(number)))
        assert at.writer.waiting <= 203


async def test_after_an_outage_memory_is_as_small_as_before() -> None:
    async with desk(limit=100) as at:
        await at.fail()
        at.writer.put(*[opening(str(number)) for number in range(150)])
        await at.recover()
        at.batches.going_on.clear()
        at.writer.put(*[heard(str(number)) for number in range(120)])
        assert "it is too slow" in at.told[-1]
        at.batches.going_on.set()
        await at.recover()
