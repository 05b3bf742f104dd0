"""`/me`: what the bot remembers about the asker."""

from __future__ import annotations

from bot.core.command import AWAY, Asked, Command, command
from bot.core.language import CATALOGUE, Phrase
from bot.core.memories import Kind, Memories, StoredFact
from bot.policy.memory_rules import may_surface

SHOWN = 15
ELSEWHERE = Phrase("别处记下的，私聊问我。", "For what I know from elsewhere, ask me in private.")
KINDS = {
    Kind.TASTE: Phrase("口味", "taste"),
    Kind.LIFE: Phrase("生活", "life"),
    Kind.NAME: Phrase("称呼", "name"),
    Kind.PLAN: Phrase("计划", "plan"),
}
NOTHING = Phrase("我没有特意记下关于你的事。", "I have no facts about you.")
LAST = Phrase(
    "聊天记录按设置保留。全部删除：/忘记 我",
    "Messages are kept as the settings say. To erase everything: /forget me",
)
GROUP = Phrase("群", "group")
MORE = Phrase("（另有 {more} 条）", "(and {more} more)")
CATALOGUE.register(__name__, globals())


def me_command(memories: Memories) -> Command:
    """The facts about the asker, latest first: in a group those that may be shown there, in private
    all of them with their groups.
    """

    def line(asked: Asked, one: StoredFact) -> str:
        notes = [KINDS[one.kind].format(asked.language)] if one.kind in KINDS else []
        if one.scope.is_group and not asked.where.is_group:
            notes.append(f"{GROUP.format(asked.language)} {one.scope.session_id}")
        return f"· {one.text} ({', '.join(notes)})" if notes else f"· {one.text}"

    @command("me", "关于我", about=("我记得你什么", "what I remember of you"))
    async def me(asked: Asked) -> str:
        user, where = asked.user_id, asked.where
        found = await memories.listed(subject=user)
        if found is None:
            return AWAY.format(asked.language)
        facts = [
            line(asked, one)
            for one in found
            if not where.is_group or may_surface(one, where=where, asker=user)
        ]
        lines = facts[:SHOWN] or [NOTHING.format(asked.language)]
        if len(facts) > SHOWN:
            more = len(facts) - SHOWN
            lines.append(MORE.format(asked.language, more=more))
        lines += [ELSEWHERE.format(asked.language)] if where.is_group else []
        return "\n".join([*lines, LAST.format(asked.language)])

    return me
