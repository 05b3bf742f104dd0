"""`/me`: what is remembered of whoever asks."""

from __future__ import annotations

from bot.commands.phrases import AWAY
from bot.core.command import Asked, Command, command
from bot.core.memories import Kind, Memories, StoredFact
from bot.policy.memory_rules import may_surface

SHOWN = 15
ELSEWHERE = ("别处记下的，私聊问我。", "What I know from elsewhere, ask me in private.")
KINDS = {
    Kind.TASTE: ("口味", "taste"),
    Kind.LIFE: ("生活", "life"),
    Kind.NAME: ("称呼", "name"),
    Kind.PLAN: ("计划", "plan"),
}
NOTHING = ("我没有特意记下关于你的事。", "I have no facts written down about you.")
LAST = (
    "聊天记录按设置保留。全部删除：/忘记 我",
    "What was said is kept as the settings say. To erase it all: /forget me",
)


def me_command(memories: Memories) -> Command:
    """The facts about whoever asks, the latest first: in a group those that may be told there, in
    private all, with the groups they are from.
    """

    def line(asked: Asked, one: StoredFact) -> str:
        notes = [asked.either(*KINDS[one.kind])] if one.kind in KINDS else []
        if one.scope.is_group and not asked.where.is_group:
            notes.append(f"{asked.either('群', 'group')} {one.scope.session_id}")
        return f"· {one.text} ({', '.join(notes)})" if notes else f"· {one.text}"

    @command("me", "关于我", about=("我记得你什么", "what I remember of you"))
    async def me(asked: Asked) -> str:
        user, where = asked.asker.user_id, asked.where
        found = await memories.listed(subject=user)
        if found is None:
            return asked.either(*AWAY)
        facts = [
            line(asked, one)
            for one in found
            if not where.is_group or may_surface(one, where=where, asker=user)
        ]
        lines = facts[:SHOWN] or [asked.either(*NOTHING)]
        if len(facts) > SHOWN:
            more = len(facts) - SHOWN
            lines.append(asked.either(f"（另有 {more} 条）", f"(and {more} more)"))
        lines += [asked.either(*ELSEWHERE)] if where.is_group else []
        return "\n".join([*lines, asked.either(*LAST)])

    return me
