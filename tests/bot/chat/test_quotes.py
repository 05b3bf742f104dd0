from __future__ import annotations

import asyncio

from bot.core.events import MessageReceived
from bot.core.journal import MessageOverheard
from bot.prompt import render
from bot.prompt.wording_zh import ZH
from frostagent.types.speech import Quote, Text
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, said, words


async def test_a_question_whose_quote_is_looked_up_while_stopping_is_not_begun() -> None:
    looking, gate = asyncio.Event(), asyncio.Event()

    async with hall() as house, asyncio.TaskGroup() as group:
        mine = said("mine", user=BOT, at=False, message_id="77")

        async def look_up(account: int, message_id: str) -> MessageReceived | None:
            looking.set()
            await gate.wait()
            return mine

        house.transport.get_message = look_up  # type: ignore[method-assign]  # one call of a fake is replaced
        await house.dispatcher.handle(said((Quote("77"), Text("why?")), at=False))
        await looking.wait()
        stopping = group.create_task(house.lanes.finish(within=5))
        await asyncio.sleep(0)
        gate.set()
        await stopping
        assert house.store.of("turn_opened") == house.store.of("message_overheard") == []


async def test_what_quotes_somebody_else_is_read_with_the_next_question() -> None:
    talk = said((Quote("77"), Text("I like tea")), user=5, at=False)
    async with hall(words("tea")) as house:
        house.transport.known["77"] = said("and you?", user=6, at=False, message_id="77")
        await house.take(talk)
        assert house.store.of("message_overheard") == [MessageOverheard(talk)]
        await house.take(said("what does she like?"))
        assert "I like tea" in str(house.history.messages(GROUP)[0])


async def test_a_name_in_what_quotes_somebody_else_wakes_and_an_empty_answer_to_it_is_none() -> None:
    async with hall(words("")) as house:
        house.transport.known["77"] = said("and you?", user=6, at=False, message_id="77")
        await house.take(said((Quote("77"), Text("小霜真可爱")), at=False))
        assert house.transport.sent == []
        assert house.history.messages(GROUP)[1:] == (render.history_note(ZH, ZH.about.silent),)
