from __future__ import annotations

import asyncio

from bot.conversation.queue.overflow import Overflow
from bot.domain.actions import React
from bot.speaking.gestures import NOT_NOW, Gestures
from tests.fakes import GROUP, ManualClock, RecordingTransport, said, until


async def test_each_question_that_nobody_comes_to_is_counted_and_gets_a_sign() -> None:
    transport = RecordingTransport()
    gestures = Gestures(transport=transport, clock=ManualClock())
    overflow = Overflow(gestures=gestures)
    async with asyncio.timeout(5), gestures.open():
        overflow.take(said("?", message_id="1"))
        overflow.take(said("?", message_id="2"))
        await until(lambda: len(transport.gestures) == 2)
    assert transport.gestures == [React(GROUP, "1", NOT_NOW), React(GROUP, "2", NOT_NOW)]
    assert overflow.count == 2
