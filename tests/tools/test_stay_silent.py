from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

from frostagent.models.openai.answer import RawAnswer
from frostagent.models.openai.dialects import named_dialect
from frostagent.models.openai.wire import read_answer
from frostagent.types.messages import AssistantMessage, Completion, ModelRequest, ToolMessage, UserMessage
from frostagent.types.tools import tool
from tests.bot.chat.test_turn import living
from tests.cases import each_case
from tests.fakes import GROUP, calls, said, words
from tests.frostagent.openai.test_wire import ORIGIN
from tools.stay_silent import stay_silent


async def test_whoever_stays_silent_says_nothing_and_the_next_prompt_knows_it() -> None:
    async with living(calls(("stay_silent", ""), text="They talk about me.")) as house:
        house.toolset.register(stay_silent)
        await house.turns.answer(said("小霜真可爱"))
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
        await house.turns.answer(said("小霜在吗"))
    assert house.transport.texts == ["I am here"]


async def test_who_writes_the_call_out_says_nothing_whatever_its_service() -> None:
    for dialect in ("plain", "openai"):
        for text in ("stay_silent", "[NO_REPLY]", "他们在聊我。\nAction: stay_silent\nAction Input: {}"):
            async with living(written(text, dialect)) as house:
                house.toolset.register(stay_silent)
                await house.turns.answer(said("小霜在吗"))
            assert (house.transport.sent, len(house.model.requests)) == ([], 1), text


@each_case("text", ["Action: look_up\nAction Input: 香山", 'look_up{"word": "香山"}'])
async def test_a_call_that_is_written_out_is_made_and_not_said(text: str) -> None:
    looked: list[str] = []

    @tool(side_effects="read")
    async def look_up(word: str) -> str:
        """Looks a word up."""
        looked.append(word)
        return "a hill"

    async with living(written(text, "openai"), words("A hill.")) as house:
        house.toolset.register(look_up)
        await house.turns.answer(said("香山是什么"))
    assert (looked, house.transport.texts) == (["香山"], ["A hill."])


def written(text: str, dialect: str) -> Callable[[ModelRequest], Awaitable[Completion]]:
    """A model whose service answers with this text."""
    numbers = count(1)

    async def answer(request: ModelRequest) -> Completion:
        return read_answer(
            RawAnswer(text=text, finish_reason="stop"),
            request=request,
            origin=ORIGIN,
            dialect=named_dialect(dialect),
            new_id=lambda: f"new{next(numbers)}",
        )

    return answer
