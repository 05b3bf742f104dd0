from __future__ import annotations

from bot.domain.chat import AssistantMessage, ToolMessage, UserMessage
from tests.bot.conversation.turns.test_turn import living
from tests.fakes import GROUP, calls, said, words
from tools.stay_silent import stay_silent


async def test_whoever_stays_silent_says_nothing_and_the_next_prompt_knows_it() -> None:
    async with living(calls(("stay_silent", ""), text="They talk about me.")) as house:
        house.toolset.register(stay_silent)
        await house.turns.take(said("小霜真可爱"))
    assert house.transport.sent == []
    assert [type(message) for message in house.history.messages(GROUP)] == [
        UserMessage,
        AssistantMessage,
        ToolMessage,
    ]


async def test_it_is_called_alone_or_not_at_all() -> None:
    both = calls(("stay_silent", ""), ("stay_silent", ""))
    async with living(both, words("I am here")) as house:
        house.toolset.register(stay_silent)
        await house.turns.take(said("小霜在吗"))
    assert house.transport.texts == ["I am here"]
