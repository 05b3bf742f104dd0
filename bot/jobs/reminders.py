"""Creating, listing, moving and cancelling jobs, with the rights and limits for each. Fits
`Reminders` and `Subscriptions`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec.structs import replace

from bot.core import codec
from bot.core.actions import JobWords
from bot.core.command import Asked, at_time
from bot.core.conversation import Conversation
from bot.core.jobs import (
    Job,
    JobChanged,
    JobKind,
    JobMade,
    JobQueries,
    JobState,
    Reminders,
    Subscriptions,
)
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.ports import Store, Web
from bot.core.run_ids import number_of, place_of
from bot.jobs.changes import JobChanges
from bot.jobs.feeds import MAX_URL, FeedNotes, read_news, read_notes
from bot.jobs.rules import (
    CRON,
    EVERY,
    MINUTE,
    RuleProblem,
    next_moment,
    read_moment,
    read_rule,
    tell_date,
    tell_moment,
    tell_rule,
)
from bot.policy.permissions import WAIT
from bot.prompt.compose import Question
from bot.recap import DAILY_RECAP, OFF
from bot.settings_store import PlaceSetting, SettingsStore
from frostagent.engine.authority import lowest_authority, may_call, must_be_confirmed
from frostagent.text.visible_text import visible_text
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolFailed
from frostagent.types.ports import Clock
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker
from frostagent.types.speech import Text
from frostagent.types.suspension import Suspend
from frostagent.types.tools import ToolContext
from frostagent.types.traits import Audience

MAX_OF_PERSON: Final = 20
MAX_OF_PLACE: Final = 50
MAX_WORDS: Final = 500  # characters

SET = Phrase(
    "已设好 J{number}：{moment}{rule}。内容：{words}",
    "Set J{number}: {moment}{rule}. Words: {words}",
)
MOVED = Phrase("J{number} 改为 {moment}{rule}。", "J{number} is now {moment}{rule}.")
CANCELLED = Phrase("已取消 J{number}：{words}", "Cancelled J{number}: {words}")
IN_BRACKETS = Phrase("（{rule}）", " ({rule})")
LINE = Phrase("J{number} {moment}{rule} {words}", "J{number} {moment}{rule} {words}")
ASKS = Phrase("（到时回答）", " (asked then)")
WHY_SAID = Phrase(
    "提醒 J{number}：{made} 定的，{due}{rule}。说了 {fired} 次，错过 {missed} 次，不经过模型。",
    "Reminder J{number}: set {made}, {due}{rule}. Sent: {fired}, missed: {missed}. Without a "
    "model.",
)
WHY_ASKED = Phrase(
    "任务 J{number}：{made} 定的，{due}{rule}。做了 {fired} 次，错过 {missed} 次。",
    "Task J{number}: set {made}, {due}{rule}. Done: {fired}, missed: {missed}.",
)
WHY_NEWS = Phrase(
    "订阅 J{number}：{made} 订的{rule}。发了 {fired} 次新内容，不经过模型。",
    "Feed J{number}: subscribed {made}{rule}. Messages with news: {fired}. Without a model.",
)
WHY_SUMMED = Phrase(
    "订阅 J{number}：{made} 订的{rule}。发了 {fired} 次新内容，概括由便宜的模型来写，"
    "费用算在{payer}上。",
    "Feed J{number}: subscribed {made}{rule}. News {fired} times; the cheap model writes the "
    "summaries, at the cost of {payer}.",
)
THE_GROUP = Phrase("群", "the group")
THE_MAKER = Phrase("订的人", "the subscriber")
WHY_DEAD = Phrase(
    "订阅 J{number}：{made} 订的{rule}，现在连续 {failures} 次没读到，所以隔更久才再试。",
    "Feed J{number}: subscribed {made}{rule}. The last {failures} attempts to read it failed, so "
    "it is tried less often.",
)
WHY_RECAP = Phrase(
    "这是{rule}的省流（J{number}），说过 {fired} 次。便宜的模型只读了这个群的消息，费用算在群上；"
    "管理员可以用 /省流 每天 关 关掉。",
    "The recap {rule} (J{number}), said {fired} times. The cheap model read only the messages of "
    "this group; the cost is the group's. Admins turn it off with /recap daily off.",
)
WHY_MISSED = Phrase(
    "J{number}：{made} 定的，{due}{rule}，没能按时说：那时我不在、被禁言或发不出去，超过了期限。"
    "说了 {fired} 次，错过 {missed} 次。",
    "J{number}: set {made}, {due}{rule}, not said in time: I was offline, muted or could not send "
    "for too long. Sent: {fired}, missed: {missed}.",
)
NONE = Phrase("没有定好的提醒。", "No reminders are set.")
APPROVE = Phrase(
    "定时让机器人自己做：{moment}{rule} {words}",
    "Have the bot do this by itself: {moment}{rule} {words}",
)
APPROVE_CANCEL = Phrase("取消 J{number}：{words}", "Cancel J{number}: {words}")
APPROVE_MOVE = Phrase(
    "J{number} 改为 {moment}{rule}：{words}", "Move J{number} to {moment}{rule}: {words}"
)

SUBSCRIBED = Phrase(
    "已订阅 J{number}：{title}（{rule}看一次，现有的不算新）",
    "Subscribed J{number}: {title} (read {rule}; its present entries do not count as new)",
)
SUBSCRIBED_SUMMED = Phrase(
    "已订阅 J{number}：{title}（{rule}看一次，现有的不算新；新的每条带一句概括）",
    "Subscribed J{number}: {title} (read {rule}; its present entries do not count as new; "
    "new ones come with a summary)",
)
RECAP = Phrase("群里的省流", "recap of the group")
APPROVE_FEED = Phrase("订阅 {url}", "Subscribe to {url}")
CATALOGUE.register(__name__, globals())

NO_WORDS = "words: what is to be said, or done, is missing"
TOO_LONG = f"words: at most {MAX_WORDS} characters"
NO_MOMENT = "when: say when, or give a rule"
MOMENT_AND_RULE = "when: it repeats by five fields of cron: change the rule and leave when out"
NO_SUCH = "number: there is no {number} here; list names them"
NOT_YOURS = "only whoever set {number}, an admin of the group or an owner of the bot may change it"
NOT_MOVED = "{number} is the daily recap: admins set its time with the command /recap daily 22:00"
BUSY = "{number} is being said right now; try again in a minute"
TOO_MANY = f"they have {MAX_OF_PERSON} reminders already: one must be cancelled first"
TOO_MANY_HERE = f"there are {MAX_OF_PLACE} reminders here already: one must be cancelled first"
NO_REPEATED_RUNS = (
    "only admins of the group and owners of the bot may have a task repeated; a reminder in words "
    "may repeat for everybody: kind text"
)
NO_FEEDS = "only admins of the group and owners of the bot may subscribe to a feed here"
NO_URL = f"url: write the address of the feed, https://…, at most {MAX_URL} characters"
NO_RUNS_BY_RUNS = "a task that runs by itself sets no other one"
NOT_NOW = "the journal cannot be used at the moment; try again later"

NUMBER = re.compile(r"[jJＪｊ]?\s*(\d{1,9})")

WANTED = re.compile(
    r"提醒|闹钟|定时|叫[我醒]|喊我|别忘|倒计时|到点|每(?:天|日|晚|早|周|隔|月|年|小时|个?(?:工作日|星期|礼拜))"
    r"|(?:分钟|小时|钟头|天|周|星期)(?:之|以)?后|\bj\d"
    r"|\bremind|\balarm|\bschedul|\btimer\b|\bwake (?:me|us)\b|\bping me\b"
    r"|\bevery (?:day|morning|evening|night|week|month|hour|mon|tue|wed|thu|fri|sat|sun|\d)"
    r"|\bin (?:an?|\d+|half an) ?(?:minute|hour)",
)
"""Matches lower-case questions that may want a reminder. From a conversation's first such question
on, the tool is offered for good, so that other conversations spend no tokens on it and a prompt
keeps its cached prefix.
"""

FEED = re.compile(r"订阅|(?<![a-z])(?:rss|feeds?|atom)(?![a-z])|subscri")
"""Matches lower-case questions that may want news of a feed, but not "feedback"."""

HINT = re.compile(
    "提醒|闹钟|定时|叫|喊我|别忘|倒计时|到点|每|后|remind|alarm|schedul|timer|wake |ping |every "
    "|minute|hour|j|订阅|rss|feed|atom|subscri"
)
"""Matches wherever WANTED or FEED does. Plain words, so most questions cost one quick search."""

FEEDS_OFFERED: Final = PlaceSetting[str]("feeds", read=lambda text: text or None)
OFFERED: Final = PlaceSetting[str]("reminders", read=lambda text: text or None)
DEMANDS: Final = ((OFFERED, Reminders, WANTED), (FEEDS_OFFERED, Subscriptions, FEED))


class JobBook:
    """All jobs, for tools and commands. `look` makes the timer look again. `web` reads feeds and
    must be a client that checks addresses.
    """

    def __init__(
        self,
        *,
        jobs: JobQueries,
        changes: JobChanges,
        store: Store,
        settings: SettingsStore,
        owners: Collection[int],
        zone: str,
        clock: Clock,
        look: Callable[[], None],
        web: Web,
    ) -> None:
        self._jobs = jobs
        self._changes = changes
        self._store = store
        self._settings = settings
        self._owners = owners
        self._zone = zone
        self._clock = clock
        self._look = look
        self._web = web
        self._making = asyncio.Lock()
        self._recapping = asyncio.Lock()
        self._given: dict[int, int] = {}  # the highest number given to a job of each account

    def on_demand(self, question: Question) -> Mapping[type, object]:
        """The ports of the tools that this question, or an earlier one of the conversation, may
        want.
        """
        where, words = question.message.conversation, ""
        for line in (*question.lines, question.message):  # each question comes here: no calls
            for segment in line.segments:
                if isinstance(segment, Text):
                    words += segment.text
            words += "\n"
        words = words.casefold()
        has_hint = HINT.search(words) is not None
        ports: dict[type, object] = {}
        for setting, port, wanted in DEMANDS:
            if self._settings.get(setting, where) is None:
                if not (has_hint and wanted.search(words)):
                    continue
                self._settings.put(setting, where, "1")
            ports[port] = self
        if Subscriptions in ports:
            ports[Reminders] = self  # this tool also lists and cancels feeds
        return ports

    # --- for the tool -----------------------------------------------------------------------------

    async def create(
        self, context: ToolContext, words: str, *, when: str, rule: str, kind: JobKind
    ) -> ToolResult:
        """Make a job; the result says when it fires. Raises InvalidArguments, ToolDenied,
        ToolFailed; Suspend for a repeated run if others' words may have led to it.
        """
        asker, where, now = context.asker, place_of(context), self._clock.now()
        words = visible_text(words).strip()
        if not words:
            raise InvalidArguments(NO_WORDS)
        if len(words) > MAX_WORDS:
            raise InvalidArguments(TOO_LONG)
        repeats, due = self._moment(when, self._rule(rule), now)
        job = Job(
            number=0,
            where=where,
            maker=number_of(asker),
            kind=kind,
            words=words,
            made=now,
            due=due,
            wake=due,
            rule=repeats,
            zone=self._zone,
            message_id=context.asked[-1] if context.asked else "",
            authority=self._authority(context),
            language=context.port(Language).either("zh", "en"),
        )
        if kind is JobKind.RUN:
            self._check_run(context, job)
        job = await self._make(job)
        language = context.port(Language)
        told = SET.format(language, number=job.number, words=words, **self._told(job, language))
        return ToolResult(told, sources=context.asked)

    async def listed(self, context: ToolContext) -> ToolResult:
        """The jobs that the asker may see there, one a line. Raises ToolFailed."""
        asker, where = context.asker, place_of(context)
        is_admin = may_call(asker, Audience.GROUP_ADMIN)
        found = await self.visible(where, 0 if is_admin else number_of(asker))
        if found is None:
            raise ToolFailed(NOT_NOW)
        return _result(self.told(found, context.port(Language)), found, context)

    async def cancel(self, context: ToolContext, number: str) -> ToolResult:
        """End a job. Raises InvalidArguments, ToolDenied, ToolFailed; Suspend if others' words may
        have led to it.
        """
        job = await self._find(context.asker, place_of(context), number)
        if _must_be_confirmed(context, job):
            words = APPROVE_CANCEL.format(
                context.port(Language), number=job.number, words=job.short_words
            )
            raise Suspend(words, seconds=WAIT)
        return _result(await self.end(job, context.port(Language)), (job,), context)

    async def move(self, context: ToolContext, number: str, *, when: str, rule: str) -> ToolResult:
        """Change a job's moment or rule; the result says when it fires next. Raises the same as
        `create`.
        """
        job = await self._find(context.asker, place_of(context), number)
        if job.kind is JobKind.RECAP:
            raise ToolDenied(NOT_MOVED.format(number=number))
        if job.state is not JobState.WAITING:
            raise ToolFailed(BUSY.format(number=number))
        wanted = self._rule(rule) if rule.strip() else job.rule
        repeats, due = self._moment(when, wanted, self._clock.now())
        lowest = lowest_authority((job.authority, self._authority(context)))
        job = replace(job, rule=repeats, zone=self._zone, due=due, wake=due, authority=lowest)
        if job.kind is JobKind.RUN:
            self._check_run(context, job)
        told = self._told(job, context.port(Language))
        if _must_be_confirmed(context, job):
            words = APPROVE_MOVE.format(
                context.port(Language), number=job.number, words=job.short_words, **told
            )
            raise Suspend(words, seconds=WAIT)
        if not await self._store.commit(JobChanged(job)):
            raise ToolFailed(NOT_NOW)
        self._look()
        return ToolResult(MOVED.format(context.port(Language), number=job.number, **told))

    # --- for commands, too ------------------------------------------------------------------------

    async def visible(self, where: Conversation, maker: int) -> tuple[Job, ...] | None:
        """The jobs of a conversation made by this person (0: by anyone); None if they cannot be
        read.
        """
        return await self._jobs.listed(where.platform_id, where=where, maker=maker)

    async def everywhere(self, account: int) -> tuple[Job, ...] | None:
        """All jobs of the account; None if they cannot be read."""
        return await self._jobs.listed(account)

    async def end(self, job: Job, language: Language) -> str:
        """End the job. Returns the line that confirms it. Raises ToolFailed."""
        if not await self._end(job):
            raise ToolFailed(NOT_NOW)
        return CANCELLED.format(language, number=job.number, words=job.short_words)

    async def explain(self, asked: Asked) -> str:
        """Explain the quoted message by its jobs, one a line, if it is a reminder, news, the latest
        answer to a task, or a report of missed ones; else empty.
        """
        said = await self._jobs.said_as(asked.where, asked.quoted) if asked.quoted else None
        return "" if said is None else "\n".join(_why(job, said.words, asked) for job in said.jobs)

    async def cancel_in(self, where: Conversation, number: int) -> bool:
        """End the job with this number there. False if there is none or the journal cannot be used
        now.
        """
        try:
            job = await self._numbered(where.platform_id, number)
        except ToolFailed:
            return False
        if job is None or job.where != where:
            return False
        return await self._end(job)

    async def _end(self, job: Job) -> bool:
        if job.kind is JobKind.RECAP:  # else it would soon be made again
            self._settings.put(DAILY_RECAP, job.where, OFF)
        return await self._store.commit(JobChanged(replace(job, state=JobState.ENDED)))

    async def _find(self, asker: Asker, where: Conversation, number: str) -> Job:
        """The job with this number, if the asker may change it. Raises InvalidArguments,
        ToolDenied, ToolFailed.
        """
        if not (found := NUMBER.fullmatch(number.strip())):
            raise InvalidArguments(NO_SUCH.format(number=number[:20]))
        job = await self._numbered(where.platform_id, int(found[1]))
        if job is None or not may_see(asker, job, where=where):
            raise InvalidArguments(NO_SUCH.format(number=f"J{found[1]}"))
        if not may_change(asker, job):
            raise ToolDenied(NOT_YOURS.format(number=f"J{found[1]}"))
        return job

    async def _numbered(self, account: int, number: int) -> Job | None:
        """The account's job with this number as it is now, so that nothing is undone by writing it
        back before the next await. Raises ToolFailed.
        """
        while True:
            since = self._changes.count
            found = await self._jobs.listed(account, number=number)
            if found is None:
                raise ToolFailed(NOT_NOW)
            if not found or self._changes.is_current(found[0], since=since):
                return found[0] if found else None

    async def find(self, asker: Asker, where: Conversation, number: str) -> Job | None:
        """The job with this number; None if it does not exist or the asker may not change it.
        Raises ToolFailed.
        """
        try:
            return await self._find(asker, where, number)
        except (InvalidArguments, ToolDenied):
            return None

    def told(self, jobs: Collection[Job], language: Language, *, places: bool = False) -> str:
        """The jobs, one a line; with `places`, each with its conversation."""
        lines = []
        for job in jobs:
            place = f"[{job.where.session_id}] " if places else ""
            asks = ASKS.format(language) if job.kind is JobKind.RUN else ""
            words = f"{place}{job.short_words}{asks}"
            line = LINE.format(
                language, number=job.number, words=words, **self._told(job, language)
            )
            lines.append(line)
        return "\n".join(lines) or NONE.format(language)

    def _told(self, job: Job, language: Language) -> dict[str, str]:
        now = self._clock.now()
        rule = tell_rule(job.rule, language)
        return {
            "moment": tell_moment(job.due, zone=job.zone, now=now, language=language),
            "rule": IN_BRACKETS.format(language, rule=rule) if rule else "",
        }

    # --- recaps -----------------------------------------------------------------------------------

    async def schedule_recap(self, where: Conversation, time: str, language: Language) -> bool:
        """Have the group's recap made every day at this local time (`22:00`); not at all if it is
        empty. Returns False if the journal cannot be used now, or the recap is just being said.
        """
        async with self._recapping:
            since, now = self._changes.count, self._clock.now()
            if (found := await self.visible(where, 0)) is None:
                return False
            job = next((one for one in found if one.kind is JobKind.RECAP), None)
            hour, _, minute = time.partition(":")
            rule = f"{CRON} {int(minute)} {int(hour)} * * *" if time else ""
            if (job.rule, job.zone) == (rule, self._zone) if job else not rule:
                return True
            if job is not None and not self._changes.is_current(job, since=since):
                return False
            if not rule and job is not None:
                return await self._store.commit(JobChanged(replace(job, state=JobState.ENDED)))
            if (due := next_moment(rule, zone=self._zone, due=now, after=now)) is None:
                return False
            if job is not None:
                if job.state is not JobState.WAITING:
                    return False
                moved = replace(job, rule=rule, zone=self._zone, due=due, wake=due)
                is_moved = await self._store.commit(JobChanged(moved))
                self._look()
                return is_moved
            job = Job(
                number=0,
                where=where,
                maker=0,
                kind=JobKind.RECAP,
                words=RECAP.format(language),
                made=now,
                due=due,
                wake=due,
                rule=rule,
                zone=self._zone,
                language=language.either("zh", "en"),
            )
            try:
                await self._make(job)
            except ToolFailed:
                return False
            return True

    # --- rights and limits ------------------------------------------------------------------------

    async def subscribe(
        self, context: ToolContext, url: str, *, minutes: int, summary: bool
    ) -> ToolResult:
        """Make a job for a feed, which is read at once: its present entries do not count as new.
        Raises InvalidArguments, ToolDenied, ToolFailed; Suspend if others' words may have led to
        it.
        """
        asker, where, now = context.asker, place_of(context), self._clock.now()
        url = url.strip()
        if not url.startswith(("http://", "https://")) or len(url) > MAX_URL:
            raise InvalidArguments(NO_URL)
        if not may_call(asker, Audience.GROUP_ADMIN):
            raise ToolDenied(NO_FEEDS)
        if must_be_confirmed(asker, Audience.GROUP_ADMIN) and not context.allowed:
            raise Suspend(APPROVE_FEED.format(context.port(Language), url=url), seconds=WAIT)
        title, notes = await read_news(self._web, FeedNotes(url, summary=summary), is_first=True)
        job = Job(
            number=0,
            where=where,
            maker=number_of(asker),
            kind=JobKind.FEED,
            words=title or url,
            made=now,
            due=now + minutes * MINUTE,
            wake=now + minutes * MINUTE,
            rule=f"{EVERY} {minutes}",
            zone=self._zone,
            message_id=context.asked[-1] if context.asked else "",
            language=context.port(Language).either("zh", "en"),
            notes=codec.write(notes),
        )
        job = await self._make(job)
        rule = tell_rule(job.rule, context.port(Language))
        words = (SUBSCRIBED_SUMMED if summary else SUBSCRIBED).format(
            context.port(Language), number=job.number, title=job.words, rule=rule
        )
        return ToolResult(words, sources=context.asked, authority=Audience.EVERYONE)

    async def _make(self, job: Job) -> Job:
        """Number the job and write it. Raises ToolDenied, ToolFailed."""
        account = job.where.platform_id
        async with self._making:
            await self._check_limits(job)
            latest = await self._jobs.latest_number(account) if await self._store.commit() else None
            if latest is None:
                raise ToolFailed(NOT_NOW)
            # The latest job may have been erased, and a call about it may wait for an owner.
            number = self._given[account] = max(latest, self._given.get(account, 0)) + 1
            job = replace(job, number=number)
            if not await self._store.commit(JobMade(job)):
                # It may still be written: nobody knows of it, so it must not fire.
                self._store.put(JobChanged(replace(job, state=JobState.ENDED)))
                raise ToolFailed(NOT_NOW)
        self._look()
        return job

    def _rule(self, text: str) -> str:
        """Raises InvalidArguments."""
        try:
            return read_rule(text, zone=self._zone, now=self._clock.now())
        except RuleProblem as problem:
            raise InvalidArguments(str(problem)) from None

    def _moment(self, when: str, rule: str, now: float) -> tuple[str, float]:
        """The rule and its first moment, in seconds since 1970. Raises InvalidArguments."""
        if when.strip():
            if rule.startswith(CRON):
                raise InvalidArguments(MOMENT_AND_RULE)
            try:
                return rule, read_moment(when, zone=self._zone, now=now)
            except RuleProblem as problem:
                raise InvalidArguments(str(problem)) from None
        first = next_moment(rule, zone=self._zone, due=now, after=now)
        if first is None:
            raise InvalidArguments(NO_MOMENT)
        return rule, first

    def _authority(self, context: ToolContext) -> Audience:
        """The upper limit of what the job's run may do: the lowest authority of its maker and of
        all whose words may have led to the job. If an owner has allowed this call, only the maker's
        counts.
        """
        asker = context.asker
        own = Audience.EVERYONE
        if number_of(asker) in self._owners:
            own = Audience.OWNER
        elif place_of(context).is_group and asker.role in {"owner", "admin"}:
            own = Audience.GROUP_ADMIN
        led = Audience.EVERYONE if asker.read else Audience.OWNER
        if context.allowed:
            return own
        return lowest_authority((own, asker.authority, asker.overheard, led))

    def _check_run(self, context: ToolContext, job: Job) -> None:
        """Raises ToolDenied; Suspend if an owner is to decide."""
        if not context.asked:
            raise ToolDenied(NO_RUNS_BY_RUNS)
        if not job.rule:
            return
        if not may_call(context.asker, Audience.GROUP_ADMIN):
            raise ToolDenied(NO_REPEATED_RUNS)
        if must_be_confirmed(context.asker, Audience.GROUP_ADMIN) and not context.allowed:
            language = context.port(Language)
            told = self._told(job, language)
            raise Suspend(APPROVE.format(language, words=job.words, **told), seconds=WAIT)

    async def _check_limits(self, job: Job) -> None:
        if not job.maker:
            return
        theirs = await self._jobs.listed(job.where.platform_id, maker=job.maker)
        here = await self._jobs.listed(job.where.platform_id, where=job.where)
        if theirs is None or here is None:
            raise ToolFailed(NOT_NOW)
        if len(theirs) >= MAX_OF_PERSON:
            raise ToolDenied(TOO_MANY)
        if job.where.is_group and len(here) >= MAX_OF_PLACE:
            raise ToolDenied(TOO_MANY_HERE)


def may_see(asker: Asker, job: Job, *, where: Conversation) -> bool:
    """Whether a job may be shown to the asker in this conversation. A job of another conversation
    is shown only in private, to its maker and to owners.
    """
    if job.where == where:
        return True
    return not where.is_group and (job.maker == number_of(asker) or asker.is_owner)


def may_change(asker: Asker, job: Job) -> bool:
    if job.maker == number_of(asker):
        return True
    return may_call(asker, Audience.GROUP_ADMIN)


def _why(job: Job, words: JobWords, asked: Asked) -> str:
    language, failures = asked.language, 0
    match words, job.kind:
        case JobWords.MISSED, _:
            why = WHY_MISSED
        case JobWords.DEAD_FEED, _:
            why, failures = WHY_DEAD, read_notes(job.notes).failures
        case _, JobKind.FEED if read_notes(job.notes).summary:
            why = WHY_SUMMED
        case _, JobKind.FEED:
            why = WHY_NEWS
        case _, JobKind.RECAP:
            return WHY_RECAP.format(
                language, number=job.number, rule=tell_rule(job.rule, language), fired=job.fired
            )
        case _, JobKind.RUN:
            why = WHY_ASKED
        case _:
            why = WHY_SAID
    rule = tell_rule(job.rule, language)
    return why.format(
        language,
        number=job.number,
        made=at_time(job.made, asked.now),
        due=tell_date(job.due, zone=job.zone, now=asked.now, language=language),
        rule=IN_BRACKETS.format(language, rule=rule) if rule else "",
        fired=job.fired,
        missed=job.missed,
        failures=failures,
        payer=(THE_GROUP if job.where.is_group else THE_MAKER).format(language),
    )


def _must_be_confirmed(context: ToolContext, job: Job) -> bool:
    """Whether an owner decides about a change of this job: outside text was read before, or it is
    another's job and people were overheard who may not change it.
    """
    is_own = job.maker == number_of(context.asker)
    audience = Audience.EVERYONE if is_own else Audience.GROUP_ADMIN
    return not context.allowed and must_be_confirmed(context.asker, audience, goes_beyond=True)


def _result(words: str, jobs: Collection[Job], context: ToolContext) -> ToolResult:
    """A result about these jobs, with the lowest authority of those whose words it contains."""
    least = (
        job.authority if job.maker == number_of(context.asker) else Audience.EVERYONE
        for job in jobs
    )
    here = (job.message_id for job in jobs if job.where == place_of(context))
    sources = tuple(dict.fromkeys(filter(None, here)))
    return ToolResult(words, sources=sources, authority=lowest_authority(least))
