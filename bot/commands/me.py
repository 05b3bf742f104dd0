"""`/me`: what is remembered of whoever asks."""

from __future__ import annotations

from bot.domain.command import Asked, Command, command
from bot.domain.notebook import Memories
from bot.policy.remembering import surfaces

SHOWN = 15
NOTHING = ("我没有特意记下关于你的事。", "I have no facts written down about you.")
LAST = (
    "聊天记录按设置保留。全部删除：/忘记 我",
    "What was said is kept as the settings say. To erase it all: /forget me",
)


def me_command(memories: Memories) -> Command:
    """The facts that may be told where it is asked, the latest first."""

    @command("me", "关于我", about=("我记得你什么", "what I remember of you"))
    async def me(asked: Asked) -> str:
        user, where = asked.asker.user_id, asked.where
        found = await memories.listed(subject=user)
        facts = [one.text for one in found if surfaces(one, where=where, asker=user)]
        lines = [f"· {text}" for text in facts[:SHOWN]] or [asked.either(*NOTHING)]
        if len(facts) > SHOWN:
            more = len(facts) - SHOWN
            lines.append(asked.either(f"（另有 {more} 条）", f"(and {more} more)"))
        return "\n".join([*lines, asked.either(*LAST)])

    return me
