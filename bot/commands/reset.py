"""`/reset`: starts the conversation over."""

from __future__ import annotations

from bot.core.command import NOT_NOW, Asked, Command, command
from bot.core.journal import ConversationReset
from bot.core.language import CATALOGUE, Phrase
from bot.core.ports import Store
from bot.memory.history import History
from frostagent.types.traits import Audience

DONE = Phrase(
    "好，从这里重新开始；之前说的我不再带上。",
    "OK, we start over here; I carry nothing over from before.",
)
CATALOGUE.register(__name__, globals())


def reset_command(store: Store, history: History) -> Command:
    """For a group's admins, and for everyone in private."""

    @command(
        "reset",
        "重来",
        about=("重新开始，不再带上之前的对话", "start over, without what was said before"),
        audience=Audience.GROUP_ADMIN,
    )
    async def reset(asked: Asked) -> str:
        if not await store.commit(ConversationReset(asked.where)):
            return NOT_NOW.format(asked.language)
        await history.reread()
        return DONE.format(asked.language)

    return reset
