"""Fires each job once, when its moment comes.

One timer waits for the earliest moment of all jobs, then reads the due ones from the journal. The
words of a job, or its turn, and the claim on them are written in one commit. The outcome is looked
up in the journal afterwards, in the same way for a claim of this process and of an earlier one. A
lost message is retried for an hour; then the job's maker is informed that it was missed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cached_property, partial
from typing import Final

from msgspec.structs import replace

from bot.budget.errands import Errands
from bot.chat.backfill import read_history
from bot.chat.lanes import Lanes
from bot.chat.mutes import Mutes
from bot.chat.tasks import Scheduled, Task, Work
from bot.core import codec
from bot.core.actions import JobWords, SendMessage, send_name_of_jobs
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnsupported, TransportError
from bot.core.events import MessageReceived, Role, Sender, relayed
from bot.core.jobs import Fate, Job, JobChanged, JobKey, JobKind, JobQueries, JobsEnded, JobState
from bot.core.journal import Entry
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.lru import LRU, DefaultLRU
from bot.core.ports import Store, Transport, Web
from bot.core.segments import Mention, SendSegment
from bot.jobs.changes import JobChanges
from bot.jobs.feeds import DEAD, FeedNotes, read_news, read_notes, rest_of, tell_news
from bot.jobs.rules import (
    DAY,
    EVERY,
    HOUR,
    LATE,
    MINUTE,
    latest_moment,
    next_moment,
    tell_date,
    wall_clock,
)
from bot.memory.history import History
from bot.memory.modes import Mode, Modes
from bot.outbox.delivery import Postbox
from bot.outbox.outbox import Outbox
from bot.policy.answered_questions import lacks_answer
from bot.policy.permissions import authority_of
from bot.policy.wake import Wake, Why
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from bot.quiet.quiet_hours import QuietHours
from bot.recap import DailyRecaps, Recaps
from frostagent.engine.authority import lowest_authority
from frostagent.types.errors import ToolFailed
from frostagent.types.ports import Clock
from frostagent.types.speech import Confirmed, Quote, Receipt, Refused, Text

logger = logging.getLogger(__name__)

LOOK: Final = 60.0  # seconds between two looks at the clock, which may be set
RETRY: Final = 5.0  # seconds, if the journal cannot be used
UNREADABLE: Final = 1.0  # seconds between two looks while only jobs that cannot be read are due
CHECK: Final = 60.0  # seconds until the outcome of a firing is looked up
SOON: Final = 2.0  # seconds until a lost message is first sent again
AGAIN: Final = 30.0  # seconds until a job that was held is tried again
PATIENCE: Final = HOUR  # seconds of retries
OLDEST: Final = 12 * HOUR  # seconds; a later job is not said
UNSURE: Final = 10 * MINUTE  # seconds in which a history may still show the outcome
LAG: Final = 5.0  # seconds until a delivered message is in the history
MESSAGES: Final = 50  # requested from a history
GIVEN_UP: Final = 30 * 24 * HOUR  # seconds; an older miss is not reported
AT_ONCE: Final = 8  # jobs of each kind that wait for a server concurrently
RECAPS_AT_ONCE: Final = 2
RECAP_AGAIN: Final = 10 * MINUTE  # seconds until a recap that was not made or lost is made again
AN_HOUR: Final = 5  # messages about feeds per conversation
MAX_TRIED: Final = 10_000
MAX_SHOWN: Final = 10  # jobs in a report of missed ones; the others have another one

DEAD_FEED = Phrase(
    "📰 {title} 一直读不到，之后会少试几次。不要了就说：取消 J{number}",
    "📰 {title} cannot be read, so I try less often. If you no longer need it: cancel J{number}",
)
REMINDER = Phrase("⏰ 提醒：{words}{late}", "⏰ Reminder: {words}{late}")
MISSED = Phrase("⏰ 没能按时做到：\n{lines}", "⏰ I missed this:\n{lines}")
MISSED_LINE = Phrase("· {moment} {words}（J{number}）", "· {moment} {words} (J{number})")
QUESTION = Phrase(
    "[定时 J{number}，{moment}{late}] {words}", "[scheduled J{number}, {moment}{late}] {words}"
)
CATALOGUE.register(__name__, globals())


SAID: Final = {
    JobState.FIRING: JobWords.FIRED,
    JobState.REPORTING: JobWords.MISSED,
    JobState.WAITING: JobWords.DEAD_FEED,
}


class _Spoken:
    """When news of feeds was last sent to a conversation, in monotonic seconds."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=AN_HOUR)

    def wait(self, now: float) -> int:
        """The seconds until the next message may be sent; 0: now. Whole ones: added to the wall
        clock, a fraction of a microsecond would be lost, and the feed be due again at once.
        """
        return max(0, math.ceil(self._at[0] + HOUR - now)) if len(self._at) == AN_HOUR else 0

    def note(self, now: float) -> None:
        self._at.append(now)


class Scheduler:
    """Fires the jobs of the `accounts` connected to this process, except those made by `blocked`
    people. `count` takes the kind of a job and `said` or `missed`. `restored_at` is when a backup
    was last restored, in seconds since 1970 (0: never). A job that was due before that is not said:
    it may have been said after the backup was made.
    """

    def __init__(
        self,
        *,
        jobs: JobQueries,
        changes: JobChanges,
        store: Store,
        postbox: Postbox,
        outbox: Outbox,
        lanes: Lanes[Work],
        history: History,
        transport: Transport,
        mutes: Mutes,
        modes: Modes,
        quiet_hours: QuietHours,
        accounts: Callable[[], Collection[int]],
        restored_at: Callable[[], float],
        group_name: Callable[[Conversation], str],
        blocked: Collection[int],
        owners: Collection[int],
        web: Web,
        errands: Errands,
        recaps: Recaps,
        daily_recaps: DailyRecaps,
        clock: Clock,
        count: Callable[[str, str], None],
    ) -> None:
        self._jobs = jobs
        self._changes = changes
        self._store = store
        self._postbox = postbox
        self._outbox = outbox
        self._lanes = lanes
        self._history = history
        self._transport = transport
        self._mutes = mutes
        self._modes = modes
        self._quiet_hours = quiet_hours
        self._accounts = accounts
        self._restored_at = restored_at
        self._group_name = group_name
        self._blocked = blocked
        self._owners = owners
        self._web = web
        self._errands = errands
        self._recaps = recaps
        self._daily_recaps = daily_recaps
        self._spoken = DefaultLRU[Conversation, _Spoken](MAX_TRIED, _Spoken)
        self._clock = clock
        self._count = count
        # Since when each is retried, or looked for in histories, in monotonic seconds: the clock
        # may be set meanwhile.
        self._tried = LRU[JobKey, float](MAX_TRIED)
        self._unsure = LRU[JobKey, float](MAX_TRIED)
        self._looked_at = set[int]()
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._group: asyncio.TaskGroup | None = None
        self._slow: dict[JobKey, int] = {}  # the number of changes when their work began
        # Apart, so that slow feeds delay no task and no look-up of an outcome.
        self._places = {
            kind: asyncio.Semaphore(RECAPS_AT_ONCE if kind is JobKind.RECAP else AT_ONCE)
            for kind in JobKind
        }

    # --- the timer --------------------------------------------------------------------------------

    def look(self) -> None:
        """Look again at once: a job, the accounts or the clock has changed. Never waits."""
        self._changed.set()
        if self._group is not None:
            self._idle.clear()

    async def wait_idle(self) -> None:
        """Return once no job is being fired."""
        await self._idle.wait()

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            while True:
                self._changed.clear()
                self._idle.clear()
                until = await self._fire_due()
                if not (self._changed.is_set() or self._slow):
                    self._idle.set()
                await self._wait(until)

    async def _wait(self, until: float) -> None:
        """Return at that moment, or as soon as something changes."""
        while not self._changed.is_set() and (left := until - self._clock.now()) > 0:
            try:
                async with asyncio.timeout(None if math.isinf(left) else min(left, LOOK)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _fire_due(self) -> float:
        """Handle all due jobs. Returns when to look again."""
        accounts = self._accounts()
        now, since = self._clock.now(), self._changes.count
        if not accounts:
            return math.inf
        # While the journal cannot be written, earlier claims may not be in it yet.
        if not await self._store.commit():
            return now + RETRY
        await self._look_at_earlier(accounts)
        busy = set(self._slow)  # their changes may not be in the next read
        found = await self._jobs.due(accounts, now)
        if found is None:
            return now + RETRY
        for job in found:
            if not self._changes.is_current(job, since=since):
                self._changed.set()  # its change is in the next read
            elif job.key in busy or job.key in self._slow or self._is_queued(job):
                self._change(job, wake=now + CHECK)  # else it would hide later ones from reads
            else:
                await self._take_safely(job, since)
        next_wake = await self._jobs.next_wake(accounts)
        if next_wake is None:
            return now + RETRY
        return next_wake if found or next_wake > now else now + UNREADABLE

    async def _look_at_earlier(self, accounts: Collection[int]) -> None:
        """Schedule the look at what an earlier process had in progress for when a history may show
        the outcome.
        """
        for account in set(accounts) - self._looked_at:
            since = self._changes.count
            earlier = await self._jobs.in_progress(account)
            if earlier is None:
                continue
            self._looked_at.add(account)
            soon = self._clock.now() + LAG + 1.0
            for job in earlier:
                self._change_again(job, since, wake=min(job.wake, soon))

    async def _take_safely(self, job: Job, since: int) -> None:
        try:
            await self._take(job)
        except Exception:
            logger.exception("J%d of account %d goes wrong", job.number, job.where.platform_id)
            self._change_again(job, since, wake=self._clock.now() + AGAIN)

    async def _take(self, job: Job) -> None:
        match job.state:
            case JobState.WAITING:
                await self._fire(job)
            case JobState.FIRING | JobState.REPORTING:
                self._begin(job, self._settle)
            case JobState.MISSED:
                await self._report(job)
            case JobState.ENDED:
                pass

    def _begin(self, job: Job, work: Callable[[Job], Awaitable[None]]) -> None:
        """Run in its own task what waits for a server, so that it delays no reminder. Until then
        the job is not due: jobs in progress would fill the reads of due ones.
        """
        if self._group is not None:
            job = self._change(job, wake=self._clock.now() + CHECK)
            self._slow[job.key] = self._changes.count
            self._group.create_task(self._do(job, work), name=f"J{job.number}")

    async def _do(self, job: Job, work: Callable[[Job], Awaitable[None]]) -> None:
        try:
            async with self._places[job.kind]:
                if not self._is_stale(job):  # the place may have been long in coming
                    await work(job)
        except Exception:
            logger.exception("J%d of account %d goes wrong", job.number, job.where.platform_id)
            self._change_again(job, self._slow[job.key], wake=self._clock.now() + AGAIN)
        finally:
            del self._slow[job.key]
            self.look()

    def _is_stale(self, job: Job) -> bool:
        """Whether a job was changed while it waited for a server. Ask after each such wait."""
        if self._changes.is_current(job, since=self._slow[job.key]):
            return False
        logger.info("J%d of %s was changed meanwhile: looked at again", job.number, job.where)
        return True

    @cached_property
    def _restored(self) -> float:
        """When a backup was last restored. Read at the first job that fires, not at start, when the
        journal's folder may still be unreadable.
        """
        return self._restored_at()

    def _change(self, job: Job, **changes: object) -> Job:
        job = replace(job, **changes)
        self._store.put(JobChanged(job))
        return job

    def _change_again(self, job: Job, since: int, **changes: object) -> None:
        """Change a job that is known from before a wait, unless it was changed since."""
        if self._changes.is_current(job, since=since):
            self._change(job, **changes)

    # --- firing -----------------------------------------------------------------------------------

    async def _fire(self, job: Job) -> None:
        now, where = self._clock.now(), job.where
        due = latest_moment(job.rule, zone=job.zone, due=job.due, now=now)
        if due != job.due:
            job = replace(job, due=due, missed=job.missed + (job.kind is not JobKind.FEED))
        if job.kind is JobKind.FEED and due <= self._restored:
            self._begin(job, partial(self._read, is_first=True))  # some may be said already
        elif due <= self._restored:
            logger.info("J%d of %s was due before the restore: not said", job.number, where)
            self._advance(replace(job, state=JobState.MISSED))
        elif job.maker in self._blocked:
            self._change(job, state=JobState.ENDED)
        elif now - due > OLDEST and job.kind is not JobKind.FEED:
            self._miss(job, "too late")
        elif job.kind is not JobKind.TEXT and (morning := self._morning(where)):
            is_every = job.rule.startswith(EVERY)  # counted from its first moment
            self._change(job, wake=morning, due=due if is_every else morning)
        elif job.kind is JobKind.RECAP:
            self._begin(job, self._recap)
        elif self._is_silent(where):
            self._hold(job)
        elif job.kind is JobKind.TEXT:
            self._say(job)
        elif job.kind is JobKind.FEED:
            self._begin(job, self._read)
        else:
            self._begin(job, self._ask)

    def _morning(self, where: Conversation) -> float:
        """When the present quiet hours end; 0 if there are none now."""
        if self._quiet_hours.is_muted(where) or not self._quiet_hours.holds_in(where):
            return 0.0
        return self._quiet_hours.end(where) or self._clock.now() + HOUR

    def _is_silent(self, where: Conversation) -> bool:
        """Whether the bot cannot speak there now."""
        return (
            self._mutes.holds_in(where)
            or self._modes.of(where) is not Mode.LIVE
            or self._quiet_hours.is_muted(where)
            or self._outbox.unreachable.holds_in(where)
        )

    def _hold(self, job: Job, *, is_lost: bool = False) -> None:
        """Try the job again later, for PATIENCE seconds in all. A lost message (`is_lost`) is first
        retried soon, then after ever longer pauses, so that messages QQ refuses are not sent for an
        hour.
        """
        now = self._clock.monotonic()
        since = self._tried.get(job.key, now)
        self._tried.keep(job.key, since)
        if (tried := now - since) >= PATIENCE:
            self._miss(job, "it could not be said")
            return
        pause = min(max(SOON, tried) if is_lost else AGAIN, math.ceil(PATIENCE - tried))
        self._change(job, state=JobState.WAITING, wake=self._clock.now() + pause)

    def _say(self, job: Job) -> None:
        language = job.reply_language
        words = REMINDER.format(language, words=job.words, late=self._late(job))
        self._claim((job,), words, JobState.FIRING)

    def _late(self, job: Job) -> str:
        minutes = int((self._clock.now() - job.due) // MINUTE)
        return LATE.format(job.reply_language, minutes=minutes) if minutes > 0 else ""

    async def _read(self, job: Job, *, is_first: bool = False) -> None:
        """Read the feed and say what is new, at most AN_HOUR messages an hour in a conversation."""
        where, notes = job.where, read_notes(job.notes)
        if wait := self._spoken.use(where).wait(self._clock.monotonic()):
            self._change(job, wake=self._clock.now() + wait)
            return
        try:
            _, notes = await read_news(self._web, notes, is_first=is_first)
            problem = ""
        except ToolFailed as error:
            problem = str(error)
        if self._is_stale(job):
            return
        if problem:
            self._fail(job, replace(notes, failures=notes.failures + 1), problem)
            return
        job = replace(job, notes=codec.write(notes))
        if not notes.pending:
            self._advance(replace(job, state=JobState.FIRING), is_said=False)
            return
        if self._puts_off(job):
            return
        if notes.summary:
            from bot.jobs.feed_summaries import sum_up_news  # noqa: PLC0415  # seldom wanted

            pending = await sum_up_news(
                self._errands,
                notes.pending,
                where=where,
                who=0 if where.is_group else job.maker,
                language=job.reply_language,
            )
            if self._is_stale(job):
                return
            notes = replace(notes, pending=pending)
            job = replace(job, notes=codec.write(notes))
            if self._puts_off(job):
                return
        self._spoken.use(where).note(self._clock.monotonic())
        self._claim(
            (job,), tell_news(job.words, notes.pending, job.reply_language), JobState.FIRING
        )

    def _puts_off(self, job: Job) -> bool:
        """Put off the news of a feed if it cannot be said now. Much may have happened while the bot
        waited: other feeds of the place, a mute, the evening.
        """
        now, where = self._clock.now(), job.where
        wait = self._spoken.use(where).wait(self._clock.monotonic())
        if (free := max(now + wait, self._morning(where))) > now:
            self._change(job, wake=free)
            return True
        if self._is_silent(where):
            self._hold(job)
            return True
        return False

    def _fail(self, job: Job, notes: FeedNotes, why: str) -> None:
        """Read the feed again later, with longer pauses after each failure. After DEAD failures its
        maker is informed, once.
        """
        logger.info("J%d: %s cannot be read: %s", job.number, notes.url, why)
        now = self._clock.now()
        step = (next_moment(job.rule, zone=job.zone, due=now, after=now) or now) - now
        again = now + rest_of(step, notes.failures)
        if notes.failures == DEAD and (self._is_silent(job.where) or self._morning(job.where)):
            notes = replace(notes, failures=DEAD - 1)  # its maker is informed after the next one
        job = replace(job, notes=codec.write(notes), due=again, wake=again)
        if notes.failures != DEAD:
            self._change(job)
            return
        words = DEAD_FEED.format(job.reply_language, title=job.words, number=job.number)
        self._claim((job,), words, JobState.WAITING)

    async def _recap(self, job: Job) -> None:
        """Say the group's recap of the time since the latest one; nothing, for this day, if the bot
        may not speak there.
        """
        where, words = job.where, ""
        if (is_wanted := await self._daily_recaps.is_wanted(where)) is None:
            self._change_again(job, self._slow[job.key], wake=self._clock.now() + RETRY)
            return
        if is_wanted and self._daily_recaps.may_speak(where):
            since = max(float(job.notes or 0), job.due - DAY)
            made = await self._recaps.make_daily(
                where, since=since, until=job.due, language=job.reply_language
            )
            if made is None:
                self._recap_again(job)
                return
            words = made
        if self._is_stale(job):
            return
        if not is_wanted:
            self._change(job, state=JobState.ENDED)
        elif words and self._daily_recaps.may_speak(where):
            self._claim((job,), words, JobState.FIRING)
        else:
            self._advance(replace(job, state=JobState.FIRING), is_said=False)

    def _recap_again(self, job: Job) -> None:
        """Make a recap again later, for PATIENCE seconds in all."""
        if self._is_stale(job):
            return
        now = self._clock.now()
        since = self._tried.get(job.key, now)
        self._tried.keep(job.key, since)
        if now - since >= PATIENCE:
            self._miss(job, "no recap could be made or said")
        else:
            self._change(job, state=JobState.WAITING, wake=now + RECAP_AGAIN)

    def _claim(self, jobs: Sequence[Job], words: str, state: JobState) -> None:
        """Say the words to the maker of these jobs, who must be the same, and record the claim for
        all of them. With WAITING as the `state` no claim is recorded.
        """
        first, now = jobs[0], self._clock.now()
        where, segments = first.where, list[SendSegment]()
        claims: list[Job] = []
        since = self._changes.count
        if where.is_group:
            # A repeated job would quote the same message for ever.
            if first.message_id and not first.rule and state is JobState.FIRING:
                segments.append(Quote(first.message_id))
            is_unasked = first.kind is JobKind.FEED and state is JobState.FIRING
            if first.maker and not is_unasked:
                segments += [Mention(first.maker), Text(" ")]
        segments.append(Text(words))

        def claimed(send_id: str) -> Sequence[Entry]:
            if state is JobState.WAITING:
                return tuple(map(JobChanged, jobs))
            changes = {"state": state, "claim": send_id, "wake": now + CHECK}
            claims.extend(replace(job, **changes) for job in jobs)
            return tuple(map(JobChanged, claims))

        def hear(receipt: Receipt) -> None:
            if isinstance(receipt, Confirmed | Refused):  # any other outcome is still unknown
                for job in claims:
                    self._change_again(job, since, wake=self._clock.now())
                self.look()

        self._postbox.claim(
            SendMessage(where, tuple(segments)),
            claimed,
            about=send_name_of_jobs(first.maker, SAID[state], (job.number for job in jobs)),
            authority=lowest_authority(job.authority for job in jobs),
            then=hear,
        )

    # --- runs -------------------------------------------------------------------------------------

    def _is_queued(self, job: Job) -> bool:
        """Whether the job's question is waiting in its lane or being answered."""
        if job.kind is not JobKind.RUN:
            return False
        tasks = (work for work in self._lanes.at(job.where) if isinstance(work, Task))
        return any(task.scheduled and task.scheduled.key == job.key for task in tasks)

    async def _ask(self, job: Job) -> None:
        """Put the job's question into its conversation's lane."""
        now, where = self._clock.now(), job.where
        try:
            role = await self._role(where, job.maker)
        except TransportError as error:
            logger.info("J%d waits: %s", job.number, error)
            if not self._is_stale(job):
                self._hold(job)
            return
        if role is not None:
            await self._history.load(where)
        if self._is_stale(job):
            return
        if role is None:
            logger.info("J%d ends: its maker is not in %s any more", job.number, where)
            self._change(job, state=JobState.ENDED)
            return
        waiting = replace(job, wake=now + CHECK)
        question = self._question(waiting, role)
        task = Task(question, Wake("job"), now, scheduled=self._scheduled(waiting))
        if self._lanes.put(where, task):
            self._store.put(JobChanged(waiting))
        else:
            self._hold(job)

    async def _role(self, where: Conversation, maker: int) -> Role | None:
        """The maker's present role; None if QQ knows no such member. Raises TransportError."""
        if not where.is_group:
            return "unknown"
        try:
            return (await self._transport.get_member(where, maker)).role
        except ActionUnsupported:
            return "unknown"
        except ActionRefused:
            return None

    def _question(self, job: Job, role: Role) -> MessageReceived:
        where, language = job.where, job.reply_language
        moment = f"{wall_clock(job.due, job.zone):%H:%M}"
        words = QUESTION.format(
            language, number=job.number, moment=moment, late=self._late(job), words=job.words
        )
        name = self._history.speakers.name(where, job.maker)
        maker = Sender(job.maker, name, role=role)
        own = authority_of(maker, where=where, owners=self._owners)
        if lowest_authority((job.authority, own)) is not own:  # later questions read it, too
            words = f"[{(EN if language is Language.ENGLISH else ZH).relayed}] {words}"
        question = MessageReceived(
            self_id=where.platform_id,
            time=self._clock.now(),
            conversation=where,
            message_id="",
            sender=maker,
            segments=(Text(words),),
            group_name=self._group_name(where),
        )
        return relayed(question, job.authority)

    def _scheduled(self, job: Job) -> Scheduled:
        claims: list[Job] = []
        since = self._changes.count

        def claimed(turn_id: str) -> Entry | None:
            now = self._clock.now()
            if not self._changes.is_current(job, since=since):
                logger.info("J%d was changed before its turn: not asked", job.number)
                return None
            claims.append(replace(job, state=JobState.FIRING, claim=turn_id, wake=now + CHECK))
            return JobChanged(claims[0])

        def dismissed(why: Why) -> None:
            if self._changes.is_current(job, since=since):
                logger.info("J%d waits: %s", job.number, why or "nobody asks")
                self._hold(job)
            self.look()

        def ended() -> None:
            for one in claims:
                self._change_again(one, since, wake=self._clock.now())
            self.look()

        return Scheduled(job.key, claimed, dismissed, ended)

    # --- outcomes ---------------------------------------------------------------------------------

    async def _settle(self, job: Job) -> None:
        now = self._clock.now()
        if job.due <= self._restored:  # it may have been said after the backup
            self._advance(job)
            return
        fate = await self._jobs.fate(job)
        if fate is Fate.UNKNOWN:
            fate = await self._fate_in_history(job)
        if self._is_stale(job):
            return
        match fate:
            case Fate.SAID:
                self._advance(job)
            case Fate.LOST if job.state is JobState.REPORTING:
                self._change(job, state=JobState.MISSED, wake=now + CHECK)
            case Fate.BROKEN:
                self._miss(job, "it was broken off")
            case Fate.LOST if job.kind is JobKind.RECAP and job.key in self._tried:
                self._miss(job, "its recap was lost")  # to make another one costs money again
            case Fate.LOST if job.kind is JobKind.RECAP:
                self._recap_again(job)
            case Fate.LOST:
                self._hold(job, is_lost=True)
            case _:
                self._change(job, wake=now + CHECK)

    async def _fate_in_history(self, job: Job) -> Fate:
        """The fate, by a history, of words that QQ did not confirm. If no history decides within
        UNSURE seconds, they count as said and are not sent again.
        """
        now, where = self._clock.now(), job.where
        since = self._unsure.get(job.key, self._clock.monotonic())
        self._unsure.keep(job.key, since)
        unconfirmed = self._outbox.unconfirmed
        send = next((one for one in unconfirmed.at(where) if one.send_id == job.claim), None)
        if send is not None and now - send.doubted >= LAG:
            try:
                history, sent = await read_history(
                    self._transport, self._store, where, count=MESSAGES
                )
            except TransportError as error:
                logger.info("no history of %s: %s", where, error)
            else:
                own = [one for one in history if one.is_own]
                known = [
                    one.message_id
                    for one in own
                    if one.message_id in (sent or ()) or unconfirmed.is_known(one)
                ]
                asked = _message_of(job)
                if sent is not None and lacks_answer(history, asked, send.at, accounted=known):
                    if unconfirmed.holds(send):
                        self._store.put(*unconfirmed.lost([send]))
                    return Fate.LOST
        return Fate.OPEN if self._clock.monotonic() - since < UNSURE else Fate.SAID

    def _advance(self, job: Job, *, is_said: bool = True) -> None:
        """Complete this firing: the job waits for its next moment, or ends."""
        is_missed = job.state is not JobState.FIRING
        is_said = is_said and not is_missed
        self._tried.pop(job.key, None)
        self._unsure.pop(job.key, None)
        if is_said or is_missed:
            self._count(job.kind, "said" if is_said else "missed")
        job = replace(job, fired=job.fired + is_said, missed=job.missed + is_missed)
        if job.kind is JobKind.FEED and is_said:
            job = replace(job, notes=codec.write(replace(read_notes(job.notes), pending=())))
        if job.kind is JobKind.RECAP and is_said:
            job = replace(job, notes=str(job.due))
        after = max(job.due, self._clock.now())
        coming = next_moment(job.rule, zone=job.zone, due=job.due, after=after)
        if coming is None:
            self._change(job, state=JobState.ENDED)
        else:
            self._change(job, state=JobState.WAITING, due=coming, wake=coming)

    def _miss(self, job: Job, why: str) -> None:
        logger.warning("J%d of %s is missed: %s", job.number, job.where, why)
        self._tried.pop(job.key, None)
        if job.kind is JobKind.FEED:  # its news waits for the next moment
            after = max(job.due, self._clock.now())
            due = next_moment(job.rule, zone=job.zone, due=job.due, after=after) or after + HOUR
            self._change(job, state=JobState.WAITING, due=due, wake=due)
        elif job.kind is JobKind.RECAP:  # nobody asked for it
            self._advance(replace(job, state=JobState.MISSED))
        else:
            self._change(job, state=JobState.MISSED, wake=self._clock.now())

    async def _report(self, job: Job) -> None:
        """Report this job, with others of its maker that were missed there, once the bot can speak.
        Exactly those named in the message are claimed by it.
        """
        now, where, since = self._clock.now(), job.where, self._changes.count
        if now - job.due > GIVEN_UP:
            self._advance(job)
            return
        if self._is_silent(where):
            self._change(job, wake=now + CHECK)
            return
        theirs: Sequence[Job] = ()
        if await self._store.commit():  # other jobs may have been missed just now
            theirs = await self._jobs.listed(where.platform_id, where=where, maker=job.maker) or ()
        missed = [
            one
            for one in theirs
            if one.state is JobState.MISSED and self._changes.is_current(one, since=since)
        ][:MAX_SHOWN]
        if not missed:  # the journal cannot be used, or the job has just been ended
            self._change_again(job, since, wake=now + RETRY)
            return
        language = missed[0].reply_language
        lines = [
            MISSED_LINE.format(
                language,
                moment=tell_date(one.due, zone=one.zone, now=now, language=language),
                words=one.short_words,
                number=one.number,
            )
            for one in missed
        ]
        self._claim(missed, MISSED.format(language, lines="\n".join(lines)), JobState.REPORTING)

    # --- members who leave ------------------------------------------------------------------------

    def left(self, where: Conversation, user: int, *, at: float) -> None:
        """End a person's jobs in a group they left at this moment of our clock; all jobs there if
        the bot's account left. A late notice may come after they have joined and made others.
        """
        self._store.put(JobsEnded(where, 0 if user == where.platform_id else user, at))


def _message_of(job: Job) -> MessageReceived:
    return MessageReceived(
        self_id=job.where.platform_id,
        time=job.made,
        conversation=job.where,
        message_id=job.message_id,
        sender=Sender(job.maker),
        segments=(),
    )
