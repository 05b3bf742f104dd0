"""`/limit`: owners lift or set what a day may cost a person or a group, for today or for good."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.commands.phrases import cap_words, used_words
from bot.core.command import NOT_NOW, Asked, Command, command
from bot.core.events import read_id
from bot.core.language import CATALOGUE
from bot.core.ports import Members
from bot.memory.marks import Whose
from bot.memory.own_limits import Holder
from bot.memory.spending import ALL, Spending
from bot.policy.day_limits import LIFTED, LimitOverride
from frostagent.text.language import Phrase
from frostagent.types.conversation import Conversation
from frostagent.types.traits import Audience

GROUP = frozenset({"group", "here", "群", "本群"})
TODAY = frozenset({"today", "今天", "今日"})
OFF = frozenset({"off", "none", "不限", "关"})
USUAL = frozenset({"usual", "default", "照旧", "恢复"})
AMOUNT = re.compile(r"(\$?)([0-9]{1,9}(?:\.[0-9]{1,4})?)(k|m|万|)(t|tokens?|)", re.IGNORECASE)
TIMES = {"": 1, "k": 1000, "万": 10_000, "m": 1_000_000}

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
IN_ALL = Phrase("合计", "all")
IN_GROUP = Phrase("群", "group")
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class WantedLimit:
    """The limit that is to hold (None: the usual), and whether for today only."""

    cap: LimitOverride | None
    today: bool


def limit_command(spending: Spending, members: Members, owners: frozenset[int]) -> Command:
    """Without words the limits there are; with a name that one's; else it is set."""

    @command(
        "limit",
        "限额",
        about=("一个人或一个群每天最多用多少", "what a person or a group may use in a day"),
        audience=Audience.OWNER,
    )
    async def limit(asked: Asked) -> str:
        if not asked.words:
            return _listed(asked, spending)
        whose, rest = _holder(asked, members)
        if whose is None:
            is_number = asked.words[0].startswith("#")
            return (NOBODY if is_number else HOW).format(asked.language)
        if whose in owners:
            return EXEMPT.format(asked.language)
        name = asked.words[0] if isinstance(whose, int) else _name(asked, whose)
        told = ""
        if rest:
            wanted = read_wanted(rest)
            if wanted is None:
                return HOW.format(asked.language)
            until = spending.ends() if wanted.today else 0.0
            if not await spending.own.keep(whose, wanted.cap, until=until):
                return NOT_NOW.format(asked.language)
            told = (TODAY_ONLY if wanted.today else DONE).format(asked.language)
        return told + used_words(asked, name, spending.cap(whose), spending.taken(whose))

    return limit


def _listed(asked: Asked, spending: Spending) -> str:
    """The usual ones, that of all, and those that were set: in a group only its own."""
    usual = spending.limits
    lines = [
        EACH_PERSON.format(asked.language) + cap_words(asked, usual.user),
        EACH_GROUP.format(asked.language) + cap_words(asked, usual.group),
    ]
    holders: list[tuple[str, Whose]] = [(IN_ALL.format(asked.language), ALL)]
    holders += [
        (_name(asked, whose), whose)
        for whose in spending.own.all()
        if not asked.where.is_group or whose == asked.where
    ]
    lines += [
        used_words(asked, name, spending.cap(whose), spending.taken(whose))
        for name, whose in holders
    ]
    return "\n".join([*lines, HOW.format(asked.language)])


def read_wanted(words: tuple[str, ...]) -> WantedLimit | None:
    """`5 today`, `200k`, `off`, `today`, `usual`; None for what is none of that. An amount is of
    dollars or of tokens; the other is as usual.
    """
    left = [word.casefold() for word in words]
    today = any(word in TODAY for word in left)
    amount = "".join(word for word in left if word not in TODAY)
    if amount in OFF or (today and not amount):
        return WantedLimit(LIFTED, today)
    if amount in USUAL:
        return WantedLimit(None, today)
    found = AMOUNT.fullmatch(amount)
    if found is None or not float(found[2]):
        return None
    dollar, number, times, unit = found.groups()
    if not (times or unit):
        return WantedLimit(LimitOverride(cost=float(number)), today)
    tokens = int(float(number) * TIMES[times])
    return None if dollar or not tokens else WantedLimit(LimitOverride(tokens=tokens), today)


def _holder(asked: Asked, members: Members) -> tuple[Holder | None, tuple[str, ...]]:
    """Whose limit it is about, None where nobody is named; and the words behind that."""
    first, *rest = asked.words
    if first.casefold() in GROUP:
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
    return f"{IN_GROUP.format(asked.language)} {whose.session_id}"
