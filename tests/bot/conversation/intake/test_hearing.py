from __future__ import annotations

from bot.domain.chat import UserMessage
from bot.domain.journal import MessageErased
from tests.bot.hall import hall, recalled
from tests.fakes import GROUP, said, words


async def test_a_recalled_remark_is_not_read() -> None:
    async with hall(words("ok")) as house:
        await house.take(said("my password is 1234", message_id="63", at=False), recalled("63"), said("hi"))
        user = house.history.messages(GROUP)[0]
        assert isinstance(user, UserMessage)
        assert "1234" not in user.text
        assert house.store.of("message_erased") == [MessageErased(GROUP, "63")]
