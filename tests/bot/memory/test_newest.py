from __future__ import annotations

import asyncio

from bot.core.console_views import News
from bot.core.journal import Judged, MessageObserved
from bot.memory.newest import KEPT, Newest
from tests.adapters.storage.entries import closing, heard, opening, step
from tests.fakes import GROUP, said


def kept_silent(message_id: str) -> Judged:
    return Judged(conversation=GROUP, message_id=message_id, sender=7, wakes=False, reason="muted")


async def test_turns_and_what_nobody_answered_are_news_and_nothing_else_is() -> None:
    newest, opened = Newest(), opening("t1")
    message = MessageObserved(said("hi"), overheard=True, judged=kept_silent("5"))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(newest.after(0, within=5))
        await asyncio.sleep(0)
        for entry in (heard(), opened, step("t1"), closing(opened), kept_silent("4"), message):
            newest.see(entry)
    assert waiting.result() == tuple(News(number + 1, name) for number, name in enumerate(("t1", "t1", "4", "5")))
    assert await newest.after(3, within=5) == (News(4, "5"),)
    assert await newest.after(4, within=0.001) == ()


async def test_who_was_away_for_long_gets_the_last_ones() -> None:
    newest = Newest()
    for number in range(KEPT + 5):
        newest.see(kept_silent(str(number)))
    assert len(await newest.after(0, within=5)) == KEPT


async def test_what_became_of_an_answer_after_its_end_is_news_of_its_turn() -> None:
    newest = Newest()
    newest.settled("t1", "not_delivered")
    assert await newest.after(0, within=5) == (News(1, "t1"),)
