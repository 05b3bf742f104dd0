"""`/digest`, the day so far beside yesterday, and the daily line to owners about yesterday."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeAlias, assert_never

from msgspec import Struct

from bot.commands.phrases import AWAY, IN_PRIVATE, money, tokens
from bot.commands.reasons import words_of
from bot.core.command import Asked, Command, command
from bot.core.journal import ENDINGS, Ending, PlaceSet, Undelivered, Unfinished
from bot.core.ports import Store
from bot.core.query_results import Choices, DaySum, JournalQueries, Spender, UsageSum
from bot.outbox.owner_alerts import Owner
from bot.policy.calendar_days import midnight, time_of_day
from bot.prompt.render import label
from bot.settings_store import NOWHERE
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.runs import Stop
from frostagent.types.traits import Audience

NO_NUMBER = ("群号应当是数字：/日报 群号", "A group is told by its number: /digest 123456")
LONGEST = 900  # characters of a digest
MODELS = REASONS = 5
NAME = 10  # characters of a nickname
GIB = 2**30
WAITS = {
    "call": ("调用", "calls"),
    "friend": ("好友申请", "friend requests"),
    "invite": ("群邀请", "invites"),
    "group": ("新群", "new groups"),
    "draft": ("草稿", "drafts"),
}

Either: TypeAlias = Callable[[str, str], str]
"""Chooses between Chinese and English."""


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
    """The names of a day and of the one before it; in Chinese and English."""

    this: tuple[str, str]
    before: tuple[str, str]


TODAY = Days(("今天", "Today"), ("昨天", "yesterday"))
YESTERDAY = Days(("昨天", "Yesterday"), ("前天", "the day before"))


def digest_command(books: JournalQueries, stands: Stands) -> Command:
    """`/digest`, `/digest GROUP`; for owners, in private."""

    @command(
        "digest",
        "日报",
        about=("今天的日报；日报 群号 看一个群", "the day so far; with a number, of that group"),
        audience=Audience.OWNER,
    )
    async def digest(asked: Asked) -> str:
        if asked.where.is_group:
            return asked.either(*IN_PRIVATE)
        named = next(iter(asked.words), "")
        if named and not (named.isascii() and named.isdigit() and len(named) <= 18):
            return asked.either(*NO_NUMBER)
        where = None
        if named:
            where = Conversation(asked.where.platform_id, "group", int(named))
        today, yesterday = midnight(asked.now), midnight(asked.now, later=-1)
        now = await books.day(since=today, until=asked.now + 1, where=where)
        before = await books.day(since=yesterday, until=today, where=where)
        if now is None or before is None:
            return asked.either(*AWAY)
        standing = await stands() if where is None else None
        return told_of(now, before, TODAY, asked.either, standing)

    return digest


def told_of(
    day: DaySum, before: DaySum, which: Days, either: Either, standing: Standing | None = None
) -> str:
    """How a day went beside the one before, and how things stand, in under 900 characters; what
    there is no room for at the end is left out.
    """
    this, that = either(*which.this), either(*which.before)
    answered, was = day.of(Stop.ANSWERED), before.of(Stop.ANSWERED)
    plural = "" if day.questions == 1 else "s"
    others = [_ended(one, count, either) for one in ENDINGS if (count := day.of(one))]
    if rest := sum(count for of, count in day.turns if of not in {*ENDINGS}):
        others.append(either(f"其他 {rest} 个", f"others {rest}"))  # of a newer version
    if day.unanswered:
        others.append(either(f"没有答 {day.unanswered} 个", f"not answered {day.unanswered}"))
    lines = [
        either(
            f"{this}：{day.questions} 个问题，答了 {answered} 个（{that} {was}）",
            f"{this}: {day.questions} question{plural}, {answered} answered ({that} {was})",
        )
        + "".join(either("，", ", ") + told for told in others if told)
    ]
    lines += _stands(standing, either)
    lines += _models(day, before, that, either)
    if day.published:
        told = either("，", ", ").join(
            f"{by or either('主人', 'an owner')} {count}" for by, count in day.published
        )
        lines.append(either(f"草稿发了：{told}", f"Drafts published: {told}"))
    if day.dropped:
        dropped = sorted(day.dropped, key=lambda one: -one[1])
        told = ", ".join(f"{either(*words_of(why))} {count}" for why, count in dropped[:REASONS])
        if rest := sum(count for _, count in dropped[REASONS:]):
            told += either(f", 其他 {rest}", f", others {rest}")
        lines.append(either(f"没有答：{told}", f"Not answered: {told}"))
    for kind in dict.fromkeys(kind for kind, _ in day.failed):
        ended = " ".join(run for of, run in day.failed if of == kind)
        lines.append(either(f"出错 {kind} {ended}", f"Error {kind} {ended}"))
    for name, takers in ((("群", "Groups"), day.groups), (("人", "People"), day.people)):
        if takers:
            most = ", ".join(map(_taker, takers))
            lines.append(either(f"用得最多的{name[0]}：{most}", f"{name[1]}: {most}"))
    text = "\n".join(lines)
    return text if len(text) < LONGEST else text[: LONGEST - 2] + "…"


def _ended(ending: Ending, count: int, either: Either) -> str:
    """How many questions ended like this; empty for those that the line begins with."""
    match ending:
        case Stop.ANSWERED:
            return ""
        case Stop.SILENT:
            return either(f"沉默 {count} 次", f"silent {count}")
        case Undelivered.NOT_DELIVERED:
            return either(f"没送到 {count} 个", f"not delivered {count}")
        case Undelivered.UNCONFIRMED:
            return either(f"QQ 没确认 {count} 个", f"not confirmed by QQ {count}")
        case Stop.FAILED:
            return either(f"失败 {count} 个", f"failed {count}")
        case Stop.STOPPED:
            return either(f"叫停 {count} 个", f"stopped {count}")
        case Stop.DENIED:
            return either(f"没得到允许 {count} 个", f"not allowed {count}")
        case Stop.OUT_OF_BUDGET:
            return either(f"预算用完 {count} 个", f"out of budget {count}")
        case Stop.INTERRUPTED:
            return either(f"被重启打断 {count} 个", f"interrupted {count}")
        case Unfinished.RUNNING:
            return either(f"还在答 {count} 个", f"being answered {count}")
        case Unfinished.WAITING:
            return either(f"在等主人 {count} 个", f"waiting for an owner {count}")
        case _:
            assert_never(ending)


def _models(day: DaySum, before: DaySum, that: str, either: Either) -> Iterator[str]:
    then = dict(before.models)
    for name, used in sorted(day.models, key=lambda one: -one[1].cost)[:MODELS]:
        read, was = _read(used), "0"
        if name in then:
            was = f"{_read(then[name])} token{either('，', 's, ')}{money(then[name])}"
        cached = 100 * used.cached // used.prompt if used.prompt else 0
        yield either(
            f"{name}：{read} token（缓存 {cached}%），{money(used)}（{that} {was}）",
            f"{name}: {read} tokens ({cached}% cached), {money(used)} ({that} {was})",
        )


def _read(used: UsageSum) -> str:
    return tokens(used.prompt + used.completion)


def _stands(standing: Standing | None, either: Either) -> Iterator[str]:
    if standing is None:
        return
    waits = [f"{either(*WAITS[kind])} {count}" for kind, count in standing.waiting.items() if count]
    if waits:
        told = ", ".join(waits)
        yield either(f"等主人发话的：{told}", f"Waits for an owner: {told}")
    if standing.absent:
        yield either(
            f"集群里有 {standing.absent} 个分区没有回答，那里等着的没算进来",
            f"Parts of the cluster that did not say what waits there: {standing.absent}",
        )
    if standing.free is not None:
        free = f"{standing.free / GIB:.1f} GB"
        yield either(f"磁盘还剩 {free}", f"Disk: {free} free")


def _taker(taker: Spender) -> str:
    name = label(taker.name, NAME)
    took = f"${taker.cost:.2f}" if taker.cost else tokens(taker.tokens)
    return f"{name}({taker.number}) {took}" if name else f"{taker.number} {took}"


SETTING = "digest"
DAILY_LOOK = 60.0  # seconds between two looks at the clock


class DailyDigest:
    """Sends the digest of yesterday once a day, also over restarts; later on the same day if the
    process was down. A day on which nothing happened is skipped.

    `at` is in seconds after midnight by the wall clock of TZ, None for never.
    """

    def __init__(
        self,
        *,
        at: float | None,
        tongue: Language,
        books: JournalQueries,
        stands: Stands,
        choices: Choices,
        store: Store,
        owner: Owner,
        clock: Clock,
    ) -> None:
        self._at = at
        self._tongue = tongue
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
        """Send it unless there is no need; False: try again. It is stored as sent before it is
        sent: sending it twice would be worse than not at all.
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
        words = told_of(day, other, YESTERDAY, self._tongue.either, await self._stands())
        if not await self._store.commit(PlaceSet(NOWHERE, SETTING, today)):
            return False
        self._owner.post(words)
        return True


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))
