from __future__ import annotations

from bot.domain.chat import AssistantMessage, UserMessage
from bot.domain.journal import Suspended, TurnClosed
from bot.domain.run import Stop
from tests.bot.conversation.test_turn import living
from tests.fakes import said


async def test_a_suspended_run_that_cannot_be_read_is_closed_as_interrupted() -> None:
    """Else every start would look at it again."""
    async with living() as house:
        assert house.suspensions.restore(Suspended("t9", "{}", 0.0, said("x"), UserMessage("x"))) is None
        await house.turns.resume("t9", {})
        assert house.transport.sent == []
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.turn_id, closed.stop) == ("t9", Stop.INTERRUPTED)
        assert closed.round[:2] == (UserMessage("x"), AssistantMessage("(noted)"))
        assert closed.round[2:] == (UserMessage("[系统记录]\n  你没有回答上面的提问。"),)
