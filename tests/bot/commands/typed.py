"""Commands as the tests type them."""

from __future__ import annotations

from typing import Any

from bot.core.command import Asked, Command
from bot.core.conversation import Conversation
from frostagent.types.runs import Asker
from tests.fakes import GROUP

NOW = 1_700_000_000.0
SAID = NOW - 5  # by the server's clock
MING, HONG, OWNER = 777, 888, 999


def asked(
    *words: str,
    user: int = MING,
    role: str = "member",
    where: Conversation = GROUP,
    quoted: str = "",
    chinese: bool = True,
) -> Asked:
    asker = Asker(str(user), "小明", role, is_owner=user == OWNER)
    return Asked(where=where, asker=asker, words=words, quoted=quoted, now=NOW, chinese=chinese, said=SAID)


async def lines(command: Command, *words: str, **more: Any) -> list[str]:
    """The answer's lines."""
    return (await command.answer(asked(*words, **more))).splitlines()
