"""`/digest`: today compared with yesterday; and the daily message to owners about yesterday."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeAlias, assert_never

from msgspec import Struct

from bot.commands.reasons import words_of
from bot.core.calendar_days import midnight, time_of_day
from bot.core.command import AWAY, IN_PRIVATE, Asked, Command, command, money, tokens
from bot.core.conversation import NOWHERE, Conversation
from bot.core.journal import ENDINGS, Ending, PlaceSet, Undelivered, Unfinished
from bot.core.language import CATALOGUE, Language, Phrase, text_in
from bot.core.ports import Store
from bot.core.query_results import Choices, DaySum, JournalQueries, Spender, UsageSum
from bot.outbox.owner_alerts import Owner
from bot.prompt.render import label
from frostagent.types.ports import Clock
from frostagent.types.runs import Stop
from frostagent.types.traits import Audience

NO_NUMBER = Phrase("群号应当是数字：/日报 群号", "Name a group by its number: /digest 123456")
LONGEST = 900  # characters of a digest
MODELS = REASONS = 5
NAME = 10  # characters of a nickname
GIB = 2**30
WAITS = {
    "call": Phrase("调用", "calls"),
    "friend": Phrase("好友申请", "friend requests"),
    "invite": Phrase("群邀请", "invites"),
    "apply": Phrase("入群申请", "applicants"),
    "group": Phrase("新群", "new groups"),
    "draft": Phrase("草稿", "drafts"),
}


GROUPS = Phrase("用得最多的群：{most}", "Groups: {most}")
PEOPLE = Phrase("用得最多的人：{most}", "People: {most}")
QUESTIONS = Phrase(
    "{day}：{questions} 个问题，答了 {answered} 个（{that} {was}）",
    "{day}: {questions} questions, {answered} answered ({that} {was})",
)
ONE_QUESTION = Phrase(
    QUESTIONS.zh,
    "{day}: {questions} question, {answered} answered ({that} {was})",
)


class Standing(Struct, frozen=True):
    """The current status: how many decisions of each kind wait for an owner, and the bytes free on
    the journal's disk (None: unknown). `absent` parts of a cluster did not answer.
    """

    waiting: Mapping[str, int] = {}
    free: int | None = None
    absent: int = 0


Stands: TypeAlias = Callable[[], Awaitable[Standing]]
"""Reads the current status."""


class Days(Struct, frozen=True):
    """The names of a day and of the one before it."""

    this: Phrase
    before: Phrase


TODAY = Days(Phrase("今天", "Today"), Phrase("昨天", "yesterday"))
YESTERDAY = Days(Phrase("昨天", "Yesterday"), Phrase("前天", "the day before"))
OTHERS = Phrase("其他 {rest} 个", "others {rest}")
UNANSWERED = Phrase("没有答 {unanswered} 个", "not answered {unanswered}")
COMMA = Phrase("，", ", ")
AN_OWNER = Phrase("主人", "an owner")
PUBLISHED = Phrase("草稿发了：{told}", "Drafts published: {told}")
OTHER_REASONS = Phrase(", 其他 {rest}", ", others {rest}")
DROPPED = Phrase("没有答：{told}", "Not answered: {told}")
ERROR = Phrase("出错 {kind} {ended}", "Error {kind} {ended}")
SILENT = Phrase("沉默 {count} 次", "silent {count}")
NOT_DELIVERED = Phrase("没送到 {count} 个", "not delivered {count}")
UNCONFIRMED = Phrase("QQ 没确认 {count} 个", "not confirmed by QQ {count}")
FAILED = Phrase("失败 {count} 个", "failed {count}")
STOPPED = Phrase("叫停 {count} 个", "stopped {count}")
NOT_ALLOWED = Phrase("没得到允许 {count} 个", "not allowed {count}")
OUT_OF_BUDGET = Phrase("预算用完 {count} 个", "out of budget {count}")
INTERRUPTED = Phrase("被重启打断 {count} 个", "interrupted {count}")
RUNNING = Phrase("还在答 {count} 个", "being answered {count}")
WAITING = Phrase("在等主人 {count} 个", "waiting for an owner {count}")
PLURAL_COMMA = Phrase("，", "s, ")
MODEL = Phrase(
    "{name}：{read} token（缓存 {cached}%），{used}（{that} {was}）",
    "{name}: {read} tokens ({cached}% cached), {used} ({that} {was})",
)
WAITS_FOR_OWNER = Phrase("等主人发话的：{told}", "Waiting for an owner: {told}")
ABSENT = Phrase(
    "集群里有 {absent} 个分区没有回答，那里等着的没算进来",
    "Parts of the cluster that did not report what is waiting: {absent}",
)
DISK = Phrase("磁盘还剩 {free}", "Disk: {free} free")
CATALOGUE.register(__name__, globals())


def digest_command(books: JournalQueries, stands: Stands) -> Command:
    """`/digest`, `/digest GROUP`; for owners, in private."""

    @command(
        "digest",
        "日报",
        about=("今天的日报；日报 群号 看一个群", "the day so far; with a number, that group"),
        audience=Audience.OWNER,
    )
    async def digest(asked: Asked) -> str:
        if asked.where.is_group:
            return IN_PRIVATE.format(asked.language)
        named = next(iter(asked.words), "")
        if named and not (named.isascii() and named.isdigit() and len(named) <= 18):
            return NO_NUMBER.format(asked.language)
        where = None
        if named:
            where = Conversation(asked.where.platform_id, "group", int(named))
        today, yesterday = midnight(asked.now), midnight(asked.now, later=-1)
        now = await books.day(since=today, until=asked.now + 1, where=where)
        before = await books.day(since=yesterday, until=today, where=where)
        if now is None or before is None:
            return AWAY.format(asked.language)
        standing = await stands() if where is None else None
        return told_of(now, before, TODAY, asked.language, standing)

    return digest


def told_of(
    day: DaySum,
    before: DaySum,
    which: Days,
    language: Language,
    standing: Standing | None = None,
) -> str:
    """A day compared with the one before, and the current status, in under 900 characters; the end
    is left out if there is no room.
    """
    that = which.before.format(language)
    answered, was = day.of(Stop.ANSWERED), before.of(Stop.ANSWERED)
    others = [_ended(one, count, language) for one in ENDINGS if (count := day.of(one))]
    if rest := sum(count for of, count in day.turns if of not in {*ENDINGS}):
        others.append(OTHERS.format(language, rest=rest))  # of a newer version
    if day.unanswered:
        others.append(UNANSWERED.format(language, unanswered=day.unanswered))
    lines = [
        (ONE_QUESTION if day.questions == 1 else QUESTIONS).format(
            language,
            day=which.this,
            questions=day.questions,
            answered=answered,
            that=that,
            was=was,
        )
        + "".join(COMMA.format(language) + told for told in others if told)
    ]
    lines += _stands(standing, language)
    lines += _models(day, before, that, language)
    if day.published:
        told = COMMA.format(language).join(
            f"{by or AN_OWNER.format(language)} {count}" for by, count in day.published
        )
        lines.append(PUBLISHED.format(language, told=told))
    if day.dropped:
        dropped = sorted(day.dropped, key=lambda one: -one[1])
        told = ", ".join(
            f"{text_in(language, words_of(why))} {count}" for why, count in dropped[:REASONS]
        )
        if rest := sum(count for _, count in dropped[REASONS:]):
            told += OTHER_REASONS.format(language, rest=rest)
        lines.append(DROPPED.format(language, told=told))
    for kind in dict.fromkeys(kind for kind, _ in day.failed):
        ended = " ".join(run for of, run in day.failed if of == kind)
        lines.append(ERROR.format(language, kind=kind, ended=ended))
    for name, takers in ((GROUPS, day.groups), (PEOPLE, day.people)):
        if takers:
            most = ", ".join(map(_taker, takers))
            lines.append(name.format(language, most=most))
    text = "\n".join(lines)
    return text if len(text) < LONGEST else text[: LONGEST - 2] + "…"


def _ended(ending: Ending, count: int, language: Language) -> str:
    """The number of questions that ended like this; empty for those in the first line."""
    match ending:
        case Stop.ANSWERED:
            return ""
        case Stop.SILENT:
            return SILENT.format(language, count=count)
        case Undelivered.NOT_DELIVERED:
            return NOT_DELIVERED.format(language, count=count)
        case Undelivered.UNCONFIRMED:
            return UNCONFIRMED.format(language, count=count)
        case Stop.FAILED:
            return FAILED.format(language, count=count)
        case Stop.STOPPED:
            return STOPPED.format(language, count=count)
        case Stop.DENIED:
            return NOT_ALLOWED.format(language, count=count)
        case Stop.OUT_OF_BUDGET:
            return OUT_OF_BUDGET.format(language, count=count)
        case Stop.INTERRUPTED:
            return INTERRUPTED.format(language, count=count)
        case Unfinished.RUNNING:
            return RUNNING.format(language, count=count)
        case Unfinished.WAITING:
            return WAITING.format(language, count=count)
        case _:
            assert_never(ending)


def _models(day: DaySum, before: DaySum, that: str, language: Language) -> Iterator[str]:
    then = dict(before.models)
    for name, used in sorted(day.models, key=lambda one: -one[1].cost)[:MODELS]:
        read, was = _read(used), "0"
        if name in then:
            was = f"{_read(then[name])} token{PLURAL_COMMA.format(language)}{money(then[name])}"
        cached = 100 * used.cached // used.prompt if used.prompt else 0
        yield MODEL.format(
            language, name=name, read=read, cached=cached, used=money(used), that=that, was=was
        )


def _read(used: UsageSum) -> str:
    return tokens(used.prompt + used.completion)


def _stands(standing: Standing | None, language: Language) -> Iterator[str]:
    if standing is None:
        return
    waits = [
        f"{WAITS[kind].format(language)} {count}"
        for kind, count in standing.waiting.items()
        if count
    ]
    if waits:
        told = ", ".join(waits)
        yield WAITS_FOR_OWNER.format(language, told=told)
    if standing.absent:
        yield ABSENT.format(language, absent=standing.absent)
    if standing.free is not None:
        free = f"{standing.free / GIB:.1f} GB"
        yield DISK.format(language, free=free)


def _taker(taker: Spender) -> str:
    name = label(taker.name, NAME)
    took = f"${taker.cost:.2f}" if taker.cost else tokens(taker.tokens)
    return f"{name}({taker.number}) {took}" if name else f"{taker.number} {took}"


SETTING = "digest"
DAILY_LOOK = 60.0  # seconds between two checks of the clock


class DailyDigest:
    """Sends the digest of yesterday once a day, also over restarts, and later on the same day if
    the process was down. A day without events is skipped. `at` is in seconds after midnight, local
    time of TZ, None for never.
    """

    def __init__(
        self,
        *,
        at: float | None,
        language: Language,
        books: JournalQueries,
        stands: Stands,
        choices: Choices,
        store: Store,
        owner: Owner,
        clock: Clock,
    ) -> None:
        self._at = at
        self._language = language
        self._books = books
        self._stands = stands
        self._choices = choices
        self._store = store
        self._owner = owner
        self._clock = clock
        self._done = ""  # the day that is sent, or skipped

    async def run(self) -> None:
        """Send it whenever it is due, until cancelled."""
        while self._at is not None:
            now = self._clock.now()
            due = time_of_day(now, self._at)
            today = _date(now)
            if self._done != today and now >= due and await self._tell(now, today):
                self._done = today
            wait = due - self._clock.now()
            await self._clock.sleep(min(DAILY_LOOK, wait) if wait > 0 else DAILY_LOOK)

    async def _tell(self, now: float, today: str) -> bool:
        """Send the digest if needed; False means try again. It is stored as sent before it is sent:
        twice would be worse than not at all.
        """
        if not self._owner.is_reachable:
            return False
        told = await self._choices.settings(SETTING)
        if told is None:
            return False
        # After a clock was set back over midnight, the following day counts as sent.
        if today <= told.get(NOWHERE, "") <= _date(midnight(now, later=1)):
            return True
        ends = midnight(now)
        begins, before = midnight(now, later=-1), midnight(now, later=-2)
        day = await self._books.day(since=begins, until=ends)
        other = await self._books.day(since=before, until=begins)
        if day is None or other is None:
            return False
        if day == DaySum():
            return True
        words = told_of(day, other, YESTERDAY, self._language, await self._stands())
        if not await self._store.commit(PlaceSet(NOWHERE, SETTING, today)):
            return False
        self._owner.post(words)
        return True


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))
