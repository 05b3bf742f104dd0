"""`/usage`: what was spent today, in 7 and in 30 days."""

from __future__ import annotations

from collections.abc import Iterator

from bot.commands.phrases import money, tokens, used_words
from bot.core.command import Asked, Command, command
from bot.core.query_results import JournalQueries, UsageSum
from bot.memory.marks import Whose
from bot.memory.spending import ALL as EVERYBODY
from bot.memory.spending import Spending
from bot.policy.calendar_days import midnight
from bot.policy.day_limits import NO_CAP

DAY = 86_400.0
ME, HERE, ALL = (
    frozenset({"me", "我"}),
    frozenset({"group", "here", "群"}),
    frozenset({"all", "全部"}),
)
AWAY = ("现在读不到账。", "The books cannot be read now.")


def usage_command(books: JournalQueries, spending: Spending) -> Command:
    """`/usage`, `/usage me`, `/usage group`; owners also `/usage all`. With the limits that count
    for it.
    """

    @command("usage", "用量", about=("用了多少：我、群、全部", "what was used: me, group, all"))
    async def usage(asked: Asked) -> str:
        whose = next(iter(asked.words), "").casefold()
        where = None if whose in ALL or whose in ME else asked.where
        asker = asked.asker.user_id if whose in ME else None
        if whose in ALL and not asked.asker.is_owner:
            return asked.either("全部的账只给主人看。", "All of it is for the owner.")
        lines = [_heading(asked, whose)]
        for name, since in _periods(asked):
            spent = await books.usage(since=since, where=where, asker=asker)
            if spent is None:
                return asked.either(*AWAY)
            lines.append(_line(asked, name, spent))
        for name, key in _holders(asked, whose):
            if (cap := spending.cap(key)) != NO_CAP:
                lines.append(used_words(asked, name, cap, spending.taken(key)))
        return "\n".join(lines)

    return usage


def _periods(asked: Asked) -> tuple[tuple[str, float], ...]:
    today = midnight(asked.now)
    week, month = asked.now - 7 * DAY, asked.now - 30 * DAY
    return (
        (asked.either("今天", "today"), today),
        (asked.either("7 天", "7 days"), week),
        (asked.either("30 天", "30 days"), month),
    )


def _holders(asked: Asked, whose: str) -> Iterator[tuple[str, Whose]]:
    """Whose limits count; an owner has none of his own."""
    if whose in ALL:
        yield asked.either("合计", "all"), EVERYBODY
        return
    if whose not in ME and asked.where.is_group:
        yield asked.either("本群", "this group"), asked.where
    if not asked.asker.is_owner:
        yield asked.either("你", "you"), asked.asker.user_id


def _heading(asked: Asked, whose: str) -> str:
    if whose in ME:
        return asked.either("你问的问题用了：", "Your questions took:")
    if whose in ALL:
        return asked.either("总共用了：", "In all:")
    return asked.either("这里用了：", "This chat took:")


def _line(asked: Asked, name: str, spent: UsageSum) -> str:
    read, plural = tokens(spent.prompt + spent.completion), "" if spent.requests == 1 else "s"
    cached = f"{100 * spent.cached // spent.prompt}%" if spent.prompt else "0%"
    return asked.either(
        f"{name}：{spent.requests} 次请求，{read} token（缓存 {cached}），{money(spent)}",
        f"{name}: {spent.requests} request{plural}, {read} tokens ({cached} cached),"
        f" {money(spent)}",
    )
