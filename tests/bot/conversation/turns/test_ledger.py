from __future__ import annotations

from bot.domain.chat import (
    Completion,
    ModelRequest,
)
from bot.domain.journal import TurnClosed, TurnOpened
from bot.domain.run import Stop
from tests.bot.conversation.turns.test_turn import living
from tests.fakes import (
    GROUP,
    said,
    words,
)


async def test_a_turn_is_committed_before_its_model_request_and_closed_with_its_round() -> None:
    async def think(request: ModelRequest) -> Completion:
        (opened,) = house.store.of("turn_opened")
        assert isinstance(opened, TurnOpened)
        assert request.messages[-1].text.startswith(f"{opened.user.text}\n[此刻] ")
        assert house.store.durable == len(house.store.entries)
        return words("yes")

    async with living(think) as house:
        question = said("hi")
        await house.turns.take(question)
        closed = house.store.entries[-1]
        assert isinstance(closed, TurnClosed)
        assert closed.round == house.history.messages(GROUP)
        assert (closed.stop, closed.steps, closed.usage.prompt) == (Stop.ANSWERED, 1, 10)
