"""`/usage`: usage today, in 7 and in 30 days. `/limit`: owners lift or set the daily limit of a
person or a group, for today or permanently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.budget.limits import (
    ALL,
    LIFTED,
    NO_CAP,
    Amount,
    Cap,
    Holder,
    LimitOverride,
    Whose,
    percent_of,
)
from bot.budget.spending import Spending
from bot.core.calendar_days import midnight
from bot.core.command import NOT_NOW, Asked, Command, command, money, tokens
from bot.core.conversation import Conversation
from bot.core.events import read_id
from bot.core.language import CATALOGUE, Phrase
from bot.core.ports import Members
from bot.core.query_results import JournalQueries, UsageSum
from frostagent.types.traits import Audience

DAY = 86_400.0

ME_WORDS = frozenset({"me", "我"})
ALL_WORDS = frozenset({"all", "全部"})
GROUP_WORDS = frozenset({"group", "here", "群", "本群"})
TODAY_WORDS = frozenset({"today", "今天", "今日"})
OFF_WORDS = frozenset({"off", "none", "不限", "关"})
USUAL_WORDS = frozenset({"usual", "default", "照旧", "恢复"})
AMOUNT = re.compile(r"(\$?)([0-9]{1,9}(?:\.[0-9]{1,4})?)(k|m|万|)(t|tokens?|)", re.IGNORECASE)
TIMES = {"": 1, "k": 1000, "万": 10_000, "m": 1_000_000}

IN_ALL = Phrase("合计", "all")
NO_LIMIT = Phrase("不限", "no limit")
UNLIMITED = Phrase("{whose}每天{limit}", "{whose}: {limit}")
LIMITED = Phrase(
    "{whose}每天最多 {limit}，今天用了 {used}", "{whose}: at most {limit} a day, {used} used today"
)

BOOKS_AWAY = Phrase("现在读不到账。", "The books cannot be read now.")
OWNERS_ONLY = Phrase("全部的账只给主人看。", "All of it is for the owner.")
TODAY = Phrase("今天", "today")
WEEK = Phrase("7 天", "7 days")
MONTH = Phrase("30 天", "30 days")
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

IN_CHINESE = """\
给人：/限额 #3 5（美元）、/限额 #3 200k（token）、/限额 #3 不限、/限额 #3 照旧
给群：/限额 群 5；后面加「今天」只管今天
私聊里写 QQ 号，或「群」加群号"""
IN_ENGLISH = """\
A person: /limit #3 5 (dollars), /limit #3 200k (tokens), /limit #3 off, /limit #3 usual
A group: /limit group 5; with `today` behind it for today only
In private: an account, or `group` and its number"""
HOW = Phrase(IN_CHINESE, IN_ENGLISH)
DONE = Phrase("好：", "Fine: ")
TODAY_ONLY = Phrase("好，只管今天：", "Fine, today only: ")
NOBODY = Phrase("这里没有这个编号。", "Nobody here has that number.")
EXEMPT = Phrase("主人只受合计的限额管。", "An owner has no limit but that of all.")
EACH_PERSON = Phrase("每人每天：", "each person a day: ")
EACH_GROUP = Phrase("每群每天：", "each group a day: ")
GROUP = Phrase("群", "group")
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class WantedLimit:
    """The limit to set (None: the usual one), for today only or permanently."""

    cap: LimitOverride | None
    today: bool


def usage_command(books: JournalQueries, spending: Spending) -> Command:
    """`/usage`, `/usage me`, `/usage group`; for owners also `/usage all`. The reply ends with the
    limits that apply.
    """

    @command("usage", "用量", about=("用了多少：我、群、全部", "what was used: me, group, all"))
    async def usage(asked: Asked) -> str:
        whose = next(iter(asked.words), "").casefold()
        where = None if whose in ALL_WORDS or whose in ME_WORDS else asked.where
        asker = asked.user_id if whose in ME_WORDS else None
        if whose in ALL_WORDS and not asked.asker.is_owner:
            return OWNERS_ONLY.format(asked.language)
        lines = [_heading(asked, whose)]
        for period, since in (
            (TODAY, midnight(asked.now)),
            (WEEK, asked.now - 7 * DAY),
            (MONTH, asked.now - 30 * DAY),
        ):
            spent = await books.usage(since=since, where=where, asker=asker)
            if spent is None:
                return BOOKS_AWAY.format(asked.language)
            lines.append(_spent_line(asked, period.format(asked.language), spent))
        for name, key in _limit_holders(asked, whose):
            if spending.cap(key) != NO_CAP:
                lines.append(_used_line(asked, name, spending, key))
        return "\n".join(lines)

    return usage


def limit_command(spending: Spending, members: Members, owners: frozenset[int]) -> Command:
    """Without words it lists the limits; with a name it shows that limit, and with an amount it
    sets it.
    """

    @command(
        "limit",
        "限额",
        about=("一个人或一个群每天最多用多少", "what a person or a group may use in a day"),
        audience=Audience.OWNER,
    )
    async def limit(asked: Asked) -> str:
        if not asked.words:
            return _list_limits(asked, spending)
        whose, rest = _parse_holder(asked, members)
        if whose is None:
            is_number = asked.words[0].startswith("#")
            return (NOBODY if is_number else HOW).format(asked.language)
        if whose in owners:
            return EXEMPT.format(asked.language)
        name = asked.words[0] if isinstance(whose, int) else _name(asked, whose)
        told = ""
        if rest:
            wanted = parse_limit(rest)
            if wanted is None:
                return HOW.format(asked.language)
            until = spending.ends() if wanted.today else 0.0
            if not await spending.own.keep(whose, wanted.cap, until=until):
                return NOT_NOW.format(asked.language)
            told = (TODAY_ONLY if wanted.today else DONE).format(asked.language)
        return told + _used_line(asked, name, spending, whose)

    return limit


def parse_limit(words: tuple[str, ...]) -> WantedLimit | None:
    """`5 today`, `200k`, `off`, `today`, `usual`; None for anything else. An amount is in dollars
    or in tokens; the other unit keeps its usual limit.
    """
    left = [word.casefold() for word in words]
    today = any(word in TODAY_WORDS for word in left)
    amount = "".join(word for word in left if word not in TODAY_WORDS)
    if amount in OFF_WORDS or (today and not amount):
        return WantedLimit(LIFTED, today)
    if amount in USUAL_WORDS:
        return WantedLimit(None, today)
    found = AMOUNT.fullmatch(amount)
    if found is None or not float(found[2]):
        return None
    dollar, number, times, unit = found.groups()
    if not (times or unit):
        return WantedLimit(LimitOverride(cost=float(number)), today)
    limit = int(float(number) * TIMES[times])
    return None if dollar or not limit else WantedLimit(LimitOverride(tokens=limit), today)


def used_words(asked: Asked, whose: str, cap: Cap, taken: Amount) -> str:
    limit, used = _cap_words(asked, cap), f"{percent_of(cap.used(taken))}%"
    if cap == NO_CAP:
        return UNLIMITED.format(asked.language, whose=whose, limit=limit)
    return LIMITED.format(asked.language, whose=whose, limit=limit, used=used)


def _cap_words(asked: Asked, cap: Cap) -> str:
    parts = [f"${cap.cost:g}"] if cap.cost else []
    parts += [f"{tokens(cap.tokens)} token"] if cap.tokens else []
    return ", ".join(parts) or NO_LIMIT.format(asked.language)


def _used_line(asked: Asked, name: str, spending: Spending, key: Whose) -> str:
    return used_words(asked, name, spending.cap(key), spending.taken(key))


def _heading(asked: Asked, whose: str) -> str:
    if whose in ME_WORDS:
        return YOURS_TOOK.format(asked.language)
    return (ALL_TOOK if whose in ALL_WORDS else CHAT_TOOK).format(asked.language)


def _spent_line(asked: Asked, name: str, spent: UsageSum) -> str:
    return (SPENT_ONE if spent.requests == 1 else SPENT).format(
        asked.language,
        name=name,
        requests=spent.requests,
        read=tokens(spent.prompt + spent.completion),
        cached=f"{100 * spent.cached // spent.prompt}%" if spent.prompt else "0%",
        spent=money(spent),
    )


def _limit_holders(asked: Asked, whose: str) -> Iterator[tuple[str, Whose]]:
    """The holders whose limits apply, with their names; owners have none of their own."""
    if whose in ALL_WORDS:
        yield IN_ALL.format(asked.language), ALL
        return
    if whose not in ME_WORDS and asked.where.is_group:
        yield THIS_GROUP.format(asked.language), asked.where
    if not asked.asker.is_owner:
        yield YOU.format(asked.language), asked.user_id


def _list_limits(asked: Asked, spending: Spending) -> str:
    """The usual limits, the total limit, and the limits set by command: in a group only its own."""
    usual = spending.limits
    holders: list[tuple[str, Whose]] = [(IN_ALL.format(asked.language), ALL)]
    holders += [
        (_name(asked, whose), whose)
        for whose in spending.own.all()
        if not asked.where.is_group or whose == asked.where
    ]
    return "\n".join(
        [
            EACH_PERSON.format(asked.language) + _cap_words(asked, usual.user),
            EACH_GROUP.format(asked.language) + _cap_words(asked, usual.group),
            *(_used_line(asked, name, spending, whose) for name, whose in holders),
            HOW.format(asked.language),
        ]
    )


def _parse_holder(asked: Asked, members: Members) -> tuple[Holder | None, tuple[str, ...]]:
    """The holder that the first words name, if any, and the words after them."""
    first, *rest = asked.words
    if first.casefold() in GROUP_WORDS:
        if asked.where.is_group:
            return asked.where, tuple(rest)
        number, *rest = rest or [""]
        if not _is_account(number):
            return None, ()
        return Conversation(asked.where.platform_id, "group", int(number)), tuple(rest)
    if first.startswith("#"):
        return members.user_id(asked.where, read_id(first[1:]) or 0), tuple(rest)
    if first.startswith("@"):
        return read_id(first[1:]), tuple(rest)
    return (int(first) if _is_account(first) else None), tuple(rest)


def _is_account(word: str) -> bool:
    return word.isascii() and word.isdecimal() and 4 <= len(word) <= 12


def _name(asked: Asked, whose: Holder) -> str:
    if isinstance(whose, int):
        return str(whose)
    return f"{GROUP.format(asked.language)} {whose.session_id}"
