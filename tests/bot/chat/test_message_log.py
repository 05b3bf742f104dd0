from __future__ import annotations

from bot.chat.message_log import IGNORED
from bot.core.journal import MessageErased
from bot.core.query_results import Ignored
from bot.policy.wake import Rules
from frostagent.types.messages import UserMessage
from tests.bot.hall import hall, recalled
from tests.fakes import GROUP, said, words


async def test_a_recalled_remark_is_not_read() -> None:
    async with hall(words("ok")) as house:
        await house.take(said("my password is 1234", message_id="63", at=False), recalled("63"), said("hi"))
        user = house.history.messages(GROUP)[0]
        assert isinstance(user, UserMessage)
        assert "1234" not in user.text
        assert house.store.of("message_erased") == [MessageErased(GROUP, "63")]


async def test_of_what_may_not_be_heard_only_whose_it_was_and_why_is_known_for_a_while() -> None:
    async with hall(rules=Rules(blocked=frozenset({13}))) as house:
        await house.take(*(said("secret", message_id=str(number), user=13) for number in range(IGNORED + 1)))
        assert len(house.hearing.ignored) == IGNORED
        assert house.hearing.ignored[-1] == Ignored(GROUP, 13, "the sender is blocked", said("").time)
