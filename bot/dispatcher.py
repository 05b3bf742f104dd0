"""One event -> known already? whose lane?

Never awaits anything slow: it runs on the connection's own reading loop, so whatever needs an answer from the
server (a quote nobody remembers) is decided in the lane.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from cachetools import LRUCache, TTLCache

from bot.approvals import Approvals
from bot.domain.errors import NotConnected
from bot.domain.events import (
    AccountChanged,
    Connected,
    Conversation,
    Event,
    Heartbeat,
    Identity,
    MemberChanged,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    Muted,
    Noticed,
    Poked,
    Requested,
    Sender,
)
from bot.domain.journal import Entry, MessageErased, MessageObserved, MessageOverheard, OpenTurn
from bot.domain.ports import Clock, Store
from bot.domain.suspension import Decision
from bot.history import History
from bot.lanes import Lanes
from bot.outbox import Outbox
from bot.owner import Owner
from bot.perception import Perception
from bot.policy.lighten import lighten
from bot.policy.wake import Ignore, NeedsQuoted, Observe, Rules, Verdict, Wake, judge
from bot.turn import Turns

logger = logging.getLogger(__name__)

DEDUPLICATION = 600.0  # seconds an event is remembered: longer than any reconnect replays
MAX_IDENTITIES = 50_000
MAX_PLACES = 2000
MAX_MUTE = 30 * 24 * 3600.0  # seconds; QQ's own limit
UNCERTAIN_MUTE = 600.0  # seconds a mute of the whole group, or without an end, is believed
YOUNG = 120.0  # seconds a question waits for its answer: later nobody expects one
EXPIRY_LOOK = 5.0  # seconds between two looks at what waits for somebody's word
NO_IDENTITY = ("", "0")


@dataclass(frozen=True, slots=True)
class Resume:
    """What a lane does: go on with a suspended turn; `question` is the turn's, None where no such turn waits."""

    turn_id: str
    decisions: Mapping[str, Decision]
    question: MessageReceived | None


@dataclass(frozen=True, slots=True)
class Task:
    """What a lane does: answer the message, or first find out whether it is for us. `retry` is its interrupted turn."""

    message: MessageReceived
    verdict: Wake | NeedsQuoted
    retry: OpenTurn | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """An account has connected; `heard` is where it is in use, each with the time of the last message before that."""

    account: int
    heard: tuple[tuple[Conversation, float], ...]


class Dispatcher:
    """The `EventSink` of all connections."""

    def __init__(
        self,
        *,
        rules: Rules,
        turns: Turns,
        perception: Perception,
        history: History,
        store: Store,
        outbox: Outbox,
        owner: Owner,
        approvals: Approvals,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._turns = turns
        self._perception = perception
        self._history = history
        self._store = store
        self._outbox = outbox
        self._owner = owner
        self.approvals = approvals
        self._clock = clock
        self._arrivals: asyncio.Queue[Arrival] = asyncio.Queue()
        self._heard: LRUCache[Conversation, float] = LRUCache(MAX_PLACES)
        self._put_off: list[MessageReceived] = []
        self._seen: TTLCache[Identity, None] = TTLCache(MAX_IDENTITIES, DEDUPLICATION, timer=clock.monotonic)
        self._news = asyncio.Event()
        self._accounts: set[int] = set()
        self._muted: dict[Conversation, float] = {}
        self.stopping = False
        self.duplicates = 0  # messages that came again, since the start
        self.lanes: Lanes[Task | Resume] = Lanes(work=self._do)
        approvals.resume_with(self.resume)

    async def handle(self, event: Event) -> None:
        """Take one event of any kind."""
        self._accounts.add(event.self_id)
        match event:
            case MessageReceived():
                self._message(event)
            case MessageSent():
                said = _as_received(event)
                self._history.know(said)
                self._outbox.seen(said)
            case MessageRecalled():
                self._recalled(event)
            case Muted():
                self._mute(event)
            case AccountChanged(online=online, reason=reason):
                level = logging.INFO if online else logging.ERROR
                logger.log(level, "account %d is %s %s", event.self_id, "online" if online else "offline", reason)
            case Connected(self_id=account):
                self._forget_mutes(account)
                self._owner.connected(account)
                self._outbox.connected()
                # Noted now: the first new message of a group must not hide those missed before it.
                self._arrivals.put_nowait(Arrival(account, tuple(self._heard.items())))
                self._ask_what_was_put_off(account)
            case Heartbeat() | Poked() | MemberChanged() | Requested() | Noticed():
                logger.debug("%s of %d", event.type, event.self_id)
            case _:
                assert_never(event)

    async def finish(self, *, within: float) -> None:
        """Begin no run any more, let those that are going on end, and cut off what is left after so many seconds.

        Questions that wait, and those that still come, stay in the journal as ones that nobody came to: the next start
        answers them while they are young. A run that is cut off leaves its turn open: the next start settles it.
        """
        self.stopping = True
        if going := self.lanes.active:
            logger.info("stopping: runs that go on: %d, with %g s to end", going, within)
        if late := await self.lanes.finish(within=within):
            logger.warning("runs that are cut off: %d; the next start settles them", late)

    async def next_connected(self) -> Arrival:
        """Wait for the next account to connect."""
        return await self._arrivals.get()

    def preload(self, seen: Iterable[tuple[Identity, float]], heard: Iterable[tuple[Conversation, float]]) -> None:
        """Know again what an earlier process knew: messages taken (with their times), conversations in use.

        Accounts that are there already are caught up with anew: until now nobody knew where they are in use.
        """
        known = tuple(heard)
        for identity, _ in seen:
            self._seen[identity] = None
        for where, time in known:
            self._heard[where] = max(time, self._heard.get(where, 0.0))
        for account in self._accounts:
            self._arrivals.put_nowait(Arrival(account, known))

    def knows(self, message: MessageReceived) -> bool:
        """Whether it was taken lately: it need not be asked again."""
        return message.message_id not in NO_IDENTITY and message.identity in self._seen

    def ask_again(self, message: MessageReceived) -> None:
        """Answer a question that an earlier process took and did not come to; once its account is there.

        Only the OneBot server may know what it quotes; until then it is in the store as one that nobody came to.
        """
        self._seen[message.identity] = None
        self._history.know(message)
        self._put_off.append(message)
        if message.self_id in self._accounts:
            self._ask_what_was_put_off(message.self_id)

    def retry(self, turn: OpenTurn) -> None:
        """Begin a turn once more that an earlier process left open before anything came of it."""
        message = turn.question
        self._seen[message.identity] = None
        self._history.know(message)
        if not self.lanes.put(message.conversation, Task(message, Wake("retry"), turn)):
            self._turns.give_up(turn)

    def _ask_what_was_put_off(self, account: int) -> None:
        if self.stopping:
            return
        put_off, self._put_off = self._put_off, []
        for message in put_off:
            if message.self_id != account:
                self._put_off.append(message)
                continue
            verdict = self._judge(message)
            young = self._clock.now() - message.time < YOUNG
            task = Task(message, verdict) if young and isinstance(verdict, Wake | NeedsQuoted) else None
            if task is None or not self.lanes.put(message.conversation, task):
                self._overhear_after_all(message)

    def resume(self, where: Conversation, turn_id: str, decisions: Mapping[str, Decision]) -> bool:
        """Let a suspended turn go on in its lane; False when the lane is full, or nothing is begun any more."""
        return self.lanes.put(where, Resume(turn_id, decisions, self._turns.question(turn_id)))

    async def deny_expired(self) -> None:
        """Let suspended turns go on when nobody decided in time, until cancelled."""
        denied: set[tuple[str, float]] = set()  # a turn may wait again, then with another time
        while True:
            await self._clock.sleep(EXPIRY_LOOK)
            expired = {
                (turn_id, run.expires): run.conversation
                for turn_id, run in self._turns.waiting().items()
                if run.expires <= self._clock.now()
            }
            denied &= expired.keys()
            for (turn_id, expires), where in expired.items():
                if (turn_id, expires) not in denied and self.resume(where, turn_id, {}):
                    denied.add((turn_id, expires))
                    self.approvals.expire(turn_id)

    def take_missed(self, message: MessageReceived) -> None:
        """A message found in the history: a young question is answered, the rest is heard. Known ones are nothing."""
        if message.message_id not in NO_IDENTITY:
            self._message(message, answer=self._clock.now() - message.time < YOUNG)

    async def wait_settled(self, identity: Identity) -> None:
        """Return once the message of this identity has been taken and no lane has anything to do."""
        while identity not in self._seen:
            await self._news.wait()
        await self.lanes.wait_idle()

    def _message(self, message: MessageReceived, *, answer: bool = True) -> None:
        if message.is_own:
            return
        if message.message_id not in NO_IDENTITY:
            if message.identity in self._seen:
                self.duplicates += 1
                logger.debug("message %s in %s came again", message.message_id, message.conversation)
                return
            self._seen[message.identity] = None
            self._news.set()
            self._news.clear()
        message = lighten(message)
        if not self.stopping and self.approvals.take(message):
            self._forget_answer(message, MessageObserved(message, overheard=True))
            return
        verdict = self._judge(message)
        if isinstance(verdict, Wake | NeedsQuoted) and (not answer or self._is_muted(message.conversation)):
            verdict = Observe()
        if not isinstance(verdict, Ignore):
            self._heard[message.conversation] = max(message.time, self._heard.get(message.conversation, 0.0))
        self._follow(message, verdict)

    def _judge(self, message: MessageReceived) -> Verdict:
        """The verdict; a quote of a message in memory is decided at once, so that talk among people fills no lane."""
        verdict = judge(message, self._rules, accounts=self._accounts)
        if isinstance(verdict, NeedsQuoted):
            quoted = self._history.known(message.conversation, verdict.message_id)
            if quoted is not None:
                return Wake("quote") if quoted.is_own else Observe()
        return verdict

    def _follow(self, message: MessageReceived, verdict: Verdict) -> None:
        where = message.conversation
        match verdict:
            case Ignore(reason=reason):
                logger.debug("ignored message %s in %s: %s", message.message_id, where, reason)
            case Observe():
                self._store.put(MessageObserved(message, overheard=True))
                self._history.know(message)
                self._history.overhear(message)
            case Wake() | NeedsQuoted():
                self._store.put(MessageObserved(message, overheard=False))
                self._history.know(message)
                if self.stopping:
                    logger.info("message %s in %s came while stopping: for the next start", message.message_id, where)
                elif not self.lanes.put(where, Task(message, verdict)):
                    logger.warning("message %s in %s is not answered: too many are waiting", message.message_id, where)
                    self._overhear_after_all(message)
            case _:
                assert_never(verdict)

    async def _do(self, task: Task | Resume) -> None:
        if isinstance(task, Resume):
            await self._turns.resume(task.turn_id, task.decisions)
            return
        if await self.approvals.take_later(task.message):
            self._forget_answer(task.message)
            return
        match task.verdict:
            case NeedsQuoted(message_id=message_id):
                try:
                    quotes_the_bot = await self._perception.quotes_the_bot(task.message, message_id)
                except NotConnected as error:
                    logger.info("message %s waits for a connection: %s", task.message.message_id, error)
                    self._put_off.append(task.message)
                    return
                if not quotes_the_bot:
                    self._overhear_after_all(task.message)
                    return
                if self.stopping:
                    return
            case Wake():
                pass
            case _:
                assert_never(task.verdict)
        await self._turns.take(task.message, retry=task.retry)

    def _forget_answer(self, message: MessageReceived, *observed: Entry) -> None:
        """An answer to a request is known as taken, but is nothing that any prompt repeats."""
        if message.message_id not in NO_IDENTITY:
            self._store.put(*observed, MessageErased(message.conversation, message.message_id))

    def _overhear_after_all(self, message: MessageReceived) -> None:
        self._store.put(MessageOverheard(message))
        self._history.overhear(message)

    def _recalled(self, event: MessageRecalled) -> None:
        where, message_id = event.conversation, event.message_id
        self._store.put(MessageErased(where, message_id))
        self._history.forget_message(where, message_id)
        self._turns.abandon(where, message_id)
        self._put_off = [one for one in self._put_off if (one.conversation, one.message_id) != (where, message_id)]

        def is_about(task: Task | Resume) -> bool:
            question = task.question if isinstance(task, Resume) else task.message
            if question is None or question.message_id != message_id:
                return False
            self._turns.disown(question)
            if isinstance(task, Task) and task.retry is not None:
                self._turns.give_up(task.retry)
            return True

        if self.lanes.drop(where, is_about):
            logger.info("message %s in %s was recalled: not answered", message_id, where)

    def _mute(self, event: Muted) -> None:
        """A muted bot cannot answer: it must not run up a bill thinking either."""
        if not event.mutes_the_bot:
            return
        if event.seconds == 0:
            self._muted.pop(event.conversation, None)
            logger.info("the mute in %s is lifted", event.conversation)
            return
        # A lift may be missed while nobody is connected, and admins may speak in a silenced group: never trust it long.
        seconds = min(event.seconds, MAX_MUTE) if event.seconds > 0 and event.user_id else UNCERTAIN_MUTE
        until = self._clock.monotonic() + seconds
        self._muted[event.conversation] = until
        logger.warning("muted in %s: messages there are only observed until it is lifted", event.conversation)

    def _forget_mutes(self, account: int) -> None:
        """After a connection nobody knows what was lifted meanwhile; a mute that still holds shows at the next send."""
        for where in [where for where in self._muted if where.platform_id == account]:
            del self._muted[where]

    def _is_muted(self, where: Conversation) -> bool:
        return self._muted.get(where, 0.0) > self._clock.monotonic()


def _as_received(event: MessageSent) -> MessageReceived:
    return MessageReceived(
        self_id=event.self_id,
        time=event.time,
        conversation=event.conversation,
        message_id=event.message_id,
        sender=Sender(event.self_id),
        segments=event.segments,
    )
