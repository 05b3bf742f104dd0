"""`/usage`: what was spent today, in 7 and in 30 days."""

from __future__ import annotations

from collections.abc import Iterator

from bot.commands.phrases import money, tokens, used_words
from bot.core.command import Asked, Command, command
from bot.core.language import CATALOGUE
from bot.core.query_results import JournalQueries, UsageSum
from bot.memory.marks import Whose
from bot.memory.spending import ALL as EVERYBODY
from bot.memory.spending import Spending
from bot.policy.calendar_days import midnight
from bot.policy.day_limits import NO_CAP
from frostagent.text.language import Phrase

DAY = 86_400.0
ME, HERE, ALL = (
    frozenset({"me", "我"}),
    frozenset({"group", "here", "群"}),
    frozenset({"all", "全部"}),
)
AWAY = Phrase("现在读不到账。", "The books cannot be read now.")
OWNERS_ONLY = Phrase("全部的账只给主人看。", "All of it is for the owner.")
TODAY = Phrase("今天", "today")
WEEK = Phrase("7 天", "7 days")
MONTH = Phrase("30 天", "30 days")
IN_ALL = Phrase("合计", "all")
THIS_GROUP = Phrase("本群", "this group")
YOU = Phrase("你", "you")
YOURS_TOOK = Phrase("你问的问题用了：", "Your questions took:")
ALL_TOOK = Phrase("总共用了：", "In all:")
CHAT_TOOK = Phrase("这里用了：", "This chat took:")
SPENT = Phrase(
    "{name}：{requests} 次请求，{read} token（缓存 {cached}），{spent}",
    "{name}: {requests} requests, {read} tokens ({cached} cached), {spent}",
)
SPENT_ONE = Phrase(SPENT.zh, "{name}: {requests} request, {read} tokens ({cached} cached), {spent}")
CATALOGUE.register(__name__, globals())


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
            return OWNERS_ONLY.format(asked.language)
        lines = [_heading(asked, whose)]
        for name, since in _periods(asked):
            spent = await books.usage(since=since, where=where, asker=asker)
            if spent is None:
                return AWAY.format(asked.language)
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
        (TODAY.format(asked.language), today),
        (WEEK.format(asked.language), week),
        (MONTH.format(asked.language), month),
    )


def _holders(asked: Asked, whose: str) -> Iterator[tuple[str, Whose]]:
    """Whose limits count; an owner has none of his own."""
    if whose in ALL:
        yield IN_ALL.format(asked.language), EVERYBODY
        return
    if whose not in ME and asked.where.is_group:
        yield THIS_GROUP.format(asked.language), asked.where
    if not asked.asker.is_owner:
        yield YOU.format(asked.language), asked.asker.user_id


def _heading(asked: Asked, whose: str) -> str:
    if whose in ME:
        return YOURS_TOOK.format(asked.language)
    if whose in ALL:
        return ALL_TOOK.format(asked.language)
    return CHAT_TOOK.format(asked.language)


def _line(asked: Asked, name: str, spent: UsageSum) -> str:
    return (SPENT_ONE if spent.requests == 1 else SPENT).format(
        asked.language,
        name=name,
        requests=spent.requests,
        read=tokens(spent.prompt + spent.completion),
        cached=f"{100 * spent.cached // spent.prompt}%" if spent.prompt else "0%",
        spent=money(spent),
    )
