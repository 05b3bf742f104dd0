"""Messages that come late or not at all: found in a server's history, delivered before the journal
was read, left by an earlier process, or delayed in a broker.

After a lost connection each conversation in use is caught up with once: OneBot servers do not
repeat missed messages, but NapCat and LLBot return histories. Old messages are only observed. An
unanswered question younger than two minutes is answered, once and in its turn: until a conversation
is caught up with, its lane begins no new work, for a short time at most. Histories also show which
unconfirmed sends were delivered.

A server may stay connected, send heartbeats and answer calls, but report no more messages (seen
with NapCat: NapCatQQ#871 #1201 #1989). If a lively group is silent for much longer than usual, its
history is read, once per silence. If that shows messages that did not come as events, the account's
conversations are caught up with as after a reconnect, and owners are told the remedy. A silence
without missed messages counts as usual from then on, so a group that falls asleep costs one call.
Private chats are not watched: they end all the time.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from bot.chat.active_conversations import ActiveConversations, Arrival
from bot.chat.deduplicator import DEDUPLICATION, Past, SeenMessages
from bot.chat.lanes import Lanes
from bot.chat.question_queue import DeferredQuestions, QuestionQueue
from bot.chat.rate_limiter import RateLimiter
from bot.chat.tasks import YOUNG, Resume, Task, Work
from bot.chat.wake_classifier import WakeClassifier
from bot.chat.way import MessageWay
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import Identity, MessageReceived, MessageWaited
from bot.core.journal import OpenTurn
from bot.core.language import CATALOGUE, Phrase
from bot.core.lru import DefaultLRU
from bot.core.ports import Store, Transport
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.outbox.outbox import Outbox
from bot.outbox.owner_alerts import Owner
from bot.outbox.sends import Unconfirmed
from bot.policy.answered_questions import answered_ids, history_order, quoted_ids
from bot.policy.message_aliases import find_aliases, rename_messages
from bot.policy.message_trimming import trim_message
from bot.policy.wake import Wake
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

MAX_PLACES: Final = 30  # the most recent ones
ACTIVE: Final = 24 * 3600.0  # seconds a conversation counts as in use
MESSAGES: Final = 50  # per history
UNSUPPORTED: Final = (404, 1404, -1)  # unknown action; -1 is onebots'
HELD: Final = 3.0  # seconds a lane waits at most

PAUSES: Final = 32  # between messages: the latest ones, which give a group's rhythm
FEWEST: Final = 10  # pauses; with fewer the rhythm is unknown
FACTOR: Final = 3.0  # times the longest pause: a longer silence is unusual
SHORTEST: Final = 60.0  # seconds: no shorter silence is unusual, however lively the group
LONGEST: Final = 1800.0  # seconds; a group in which only a longer silence is unusual is not lively
APART: Final = 60.0  # seconds between two histories of one account
LAG: Final = 5.0  # seconds in which an event arrives after the server has sent it
MAX_RHYTHMS: Final = 2000

DEAF: Final = Phrase(
    "账号 {account} 的 OneBot 服务端还连着，却不再上报消息：群 {group} 里有 {count} 条"
    "没有送来，是从历史记录里补读的。请重启 OneBot 服务端；如果反复出现，请更新它和 QQ。",
    "The OneBot server of account {account} is connected but reports no messages: {count} in"
    " group {group} never came and were read from its history. Restart the OneBot server. If"
    " this happens again, update it and QQ.",
)
WAITED: Final = Phrase(
    "有消息等了 {minutes:.0f} 分钟才轮到处理，这样的提问不再回答。"
    "请看看 worker 是否都在运行、够不够；分区多一些，能同时干活的就多一些。",
    "Messages waited {minutes:.0f} min before anybody came to them: such questions are not"
    " answered any more. See that the workers run and are enough; more partitions let more of"
    " them work.",
)
CATALOGUE.register(__name__, globals())


# --- late messages --------------------------------------------------------------------------------


class LateMessages:
    """Handles questions while they are young; other late messages are only observed."""

    def __init__(
        self,
        *,
        seen: SeenMessages,
        server_clock: ServerClock,
        active_conversations: ActiveConversations,
        way: MessageWay,
        deferred: DeferredQuestions,
        history: History,
        clock: Clock,
    ) -> None:
        self._seen = seen
        self._server_clock = server_clock
        self._active_conversations = active_conversations
        self._way = way
        self._deferred = deferred
        self._history = history
        self._clock = clock

    def preload(
        self,
        seen: Iterable[tuple[Identity, float]],
        heard: Iterable[tuple[Conversation, float]],
        *,
        whole: bool = True,
    ) -> None:
        """Load what an earlier process knew: received messages (with times), and conversations in
        use. `whole` is False if some are missing.
        """
        earlier = self._seen.load_earlier((identity for identity, _ in seen), whole=whole)
        self._active_conversations.learn(
            (*heard, *((told.conversation, told.time) for told in earlier))
        )
        for message in earlier:
            self._take(message)

    def take_missed(self, message: MessageReceived, *, answered: bool = False) -> None:
        """A message found in a history: answer a young unanswered question, observe others, skip
        known ones. One older than this process waits until the journal tells its outcome.
        """
        if (
            message.has_identity
            and self._seen.past_of(message) is not Past.UNREAD
            and not self._seen.knows(message)
        ):
            self._seen.add_found(message)
            self._take(message, answer=not answered)

    def take_waited(self, message: MessageReceived) -> None:
        """Observe a message that comes too late to be answered, unless it is known."""
        self._take(message, answer=False)

    def ask_again(self, message: MessageReceived, *, retry: OpenTurn | None = None) -> None:
        """Answer a question that an earlier process received and did not begin, or whose turn it
        left open without effects (`retry`), once its account is connected: QQ may show that it was
        answered. The server may be needed to know what it quotes; until then the store has it as
        not begun.
        """
        self._history.know(message)
        self._deferred.add(Task(message, Wake("retry"), self._clock.now(), retry))
        if message.self_id in self._active_conversations.accounts:
            self._deferred.enqueue_of(message.self_id)

    def _take(self, message: MessageReceived, *, answer: bool = True) -> None:
        self._server_clock.add_missed(message)
        self._way.receive(message, answer=answer and self._server_clock.age(message) < YOUNG)


class ExpiredEvents:
    """Passes messages to `way`. If some came too late and are only observed, people see a gesture,
    at most once a minute in each conversation, and owners are alerted.
    """

    def __init__(
        self,
        *,
        way: MessageWay,
        late_messages: LateMessages,
        seen: SeenMessages,
        wake_classifier: WakeClassifier,
        rate_limiter: RateLimiter,
        owner: Owner,
    ) -> None:
        self.take: Callable[[MessageReceived], None] = way.receive
        self._late_messages = late_messages
        self._seen = seen
        self._wake_classifier = wake_classifier
        self._rate_limiter = rate_limiter
        self._owner = owner

    def take_waited(self, event: MessageWaited) -> None:
        """Handle a message that was delayed on its way."""
        message = event.message
        if event.seconds < YOUNG:
            self.take(message)
            return
        if not self._seen.knows(message) and self._wake_classifier.would_answer(message):
            self._rate_limiter.turn_away_late(message)
            line = WAITED.format(self._owner.language, minutes=event.seconds / 60)
            self._owner.tell("messages waited", line)
        self._late_messages.take_waited(message)

    def take_lost(self, message: MessageReceived) -> None:
        """Handle a message lost on its way; owners are alerted elsewhere. A duplicate may have
        arrived.
        """
        if not self._seen.knows(message) and self._wake_classifier.would_answer(message):
            self._rate_limiter.turn_away_late(message)


# --- after a reconnect ----------------------------------------------------------------------------


async def read_history(
    transport: Transport, store: Store, where: Conversation, *, count: int
) -> tuple[Sequence[MessageReceived], Collection[str] | None]:
    """The messages there, oldest first, and the ids of those received or sent here; None for the
    ids if the journal cannot be read now. Raises TransportError.
    """
    history = await transport.get_history(where, count=count)
    heard = await store.heard(where, [message.message_id for message in history])
    if heard is None or all(message.message_id in heard for message in history):
        return history, heard
    if (known := await store.latest(where)) is None:
        return history, None
    names = find_aliases([trim_message(message) for message in history], known)
    return rename_messages(history, names), {*heard, *names.values()}


class CatchupRound:
    """One round of catching up: the conversations, each with the time to start from, and those
    whose lanes are still held.
    """

    def __init__(self, account: int, since: dict[Conversation, float]) -> None:
        self.account = account
        self.since = since
        self.held = {where for where, begin in since.items() if begin < math.inf}


class ReconnectQueue:
    """The pending rounds, in order."""

    def __init__(self, *, lanes: Lanes[Work], unconfirmed: Unconfirmed, clock: Clock) -> None:
        self._lanes = lanes
        self._unconfirmed = unconfirmed
        self._clock = clock
        self._rounds: asyncio.Queue[CatchupRound] = asyncio.Queue()

    def take(self, arrival: Arrival) -> None:
        """Hold the lanes of the conversations, and queue a round."""
        round_ = CatchupRound(arrival.account, self._places(arrival))
        for where in round_.held:
            self._lanes.hold(where)
        self._rounds.put_nowait(round_)

    async def next(self) -> CatchupRound:
        """The next round; its caller must release the lanes."""
        return await self._rounds.get()

    def _places(self, arrival: Arrival) -> dict[Conversation, float]:
        now = self._clock.now()
        in_use = [
            (where, heard)
            for where, heard in arrival.heard
            if where.platform_id == arrival.account and heard >= now - ACTIVE
        ]
        in_use.sort(key=lambda place: place[1], reverse=True)
        # Young messages are always checked: they may have been missed before others arrived.
        places = {where: min(heard, now - YOUNG) for where, heard in in_use[:MAX_PLACES]}
        for where in self._unconfirmed.places(arrival.account):
            places.setdefault(where, math.inf)
        return places


class HeldLanes:
    """Releases lanes according to a history."""

    def __init__(
        self,
        *,
        lanes: Lanes[Work],
        seen: SeenMessages,
        deferred: DeferredQuestions,
        question_queue: QuestionQueue,
    ) -> None:
        self._lanes = lanes
        self._seen = seen
        self._deferred = deferred
        self._question_queue = question_queue

    def go_on(
        self, where: Conversation, history: Sequence[MessageReceived], accounted: Collection[str]
    ) -> None:
        """Release a lane: in QQ's order, without answered questions. Own messages in the history
        whose ids are not `accounted` for are an earlier process's.
        """
        place_of = history_order(history)
        now, before = (
            quoted_ids(history, accounted=accounted),
            answered_ids(history, accounted=accounted),
        )

        def unanswered(work: Work) -> Work | None:
            if isinstance(work, Resume):
                return work
            return self._question_queue.without_answered(
                work, before if work.may_be_answered else now
            )

        if before and self._lanes.revise(where, unanswered):
            logger.info("questions in %s are not answered: they were, before", where)
        self._seen.note_history(where, history)
        self._lanes.release(
            where, order=lambda work: place_of(None if isinstance(work, Resume) else work.message)
        )

    def put_off(self, where: Conversation) -> None:
        """Defer questions older than this process: the account is gone again, so QQ cannot show
        their outcome.
        """

        def waits(work: Work) -> bool:
            if isinstance(work, Resume) or not self._seen.is_earlier(work.message):
                return False
            self._deferred.add(work)
            return True

        self._lanes.drop_waiting(where, waits)


class Catchup:
    """Catches up with the conversations of an account whenever it connects."""

    def __init__(
        self,
        *,
        transport: Transport,
        reconnect_queue: ReconnectQueue,
        late_messages: LateMessages,
        held: HeldLanes,
        lanes: Lanes[Work],
        outbox: Outbox,
        store: Store,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._reconnect_queue = reconnect_queue
        self._late_messages = late_messages
        self._held = held
        self._lanes = lanes
        self._outbox = outbox
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Catch up with connecting accounts, in parallel, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._catch_up(await self._reconnect_queue.next()))

    async def _catch_up(self, round_: CatchupRound) -> None:
        async with asyncio.TaskGroup() as group:
            patience = group.create_task(self._lose_patience(round_))
            try:
                await self._look_at_all(round_)
            except NotConnected:
                logger.info("account %d is gone again before it was caught up with", round_.account)
                for where in round_.held:
                    self._held.put_off(where)
            except Exception:
                logger.exception("catching up for account %d failed", round_.account)
            patience.cancel()
        self._let_go(round_)

    async def _lose_patience(self, round_: CatchupRound) -> None:
        await self._clock.sleep(HELD)
        if round_.held:
            logger.info(
                "account %d: what was missed in %d places is not known yet",
                round_.account,
                len(round_.held),
            )
        self._let_go(round_)

    def _let_go(self, round_: CatchupRound) -> None:
        for where in list(round_.held):
            self._go_on(round_, where)

    def _go_on(
        self,
        round_: CatchupRound,
        where: Conversation,
        history: Sequence[MessageReceived] = (),
        known: Collection[str] = (),
    ) -> None:
        if where in round_.held:
            round_.held.remove(where)
            self._held.go_on(where, history, known)

    async def _look_at_all(self, round_: CatchupRound) -> None:
        """Catch up with each conversation once, first with those whose lanes have work."""
        unsupported: set[bool] = set()
        left = dict(round_.since)
        while left:
            where = max(left, key=self._lanes.has)
            since = left.pop(where)
            if where.is_group not in unsupported and not await self._look_at(round_, where, since):
                unsupported.add(where.is_group)
            self._go_on(round_, where)

    async def _look_at(self, round_: CatchupRound, where: Conversation, since: float) -> bool:
        """Catch up with one conversation; False if the server has no histories of its kind."""
        try:
            history, heard = await read_history(self._transport, self._store, where, count=MESSAGES)
        except ActionRefused as error:
            logger.info("no history of %s: %s", where, error)
            return error.retcode not in UNSUPPORTED
        except ActionUnanswered as error:
            logger.info("no history of %s: %s", where, error)
            return True
        self._outbox.compare(one for one in history if one.message_id not in (heard or ()))
        known = self._accounted(history, heard or ())
        found = [message for message in history if not message.is_own and message.time >= since]
        answers = answered_ids(history, accounted=known)
        for message in self._new(found, heard):
            self._late_messages.take_missed(message, answered=message.message_id in answers)
        self._go_on(round_, where, history, known)
        return True

    def _accounted(self, history: Sequence[MessageReceived], heard: Collection[str]) -> list[str]:
        """The ids of own messages of which it is known what they answered."""
        own = (message for message in history if message.is_own)
        return [
            one.message_id
            for one in own
            if one.message_id in heard or self._outbox.unconfirmed.is_known(one)
        ]

    def _new(
        self, found: list[MessageReceived], heard: Collection[str] | None
    ) -> list[MessageReceived]:
        """The messages not received yet; for those beyond the deduplication window only the store
        knows.
        """
        if heard is None:
            begin = self._clock.now() - DEDUPLICATION
            return [message for message in found if message.time > begin]
        return [message for message in found if message.message_id not in heard]


# --- servers that stop reporting ------------------------------------------------------------------


class Rhythm:
    """The usual pauses of a group, and its present silence."""

    __slots__ = ("_counts", "_is_watched", "_pauses", "_silent_since", "said")

    def __init__(self) -> None:
        self._pauses: deque[float] = deque(maxlen=PAUSES)
        self._silent_since = 0.0
        self._counts = False  # whether the present silence will count as a pause of the group
        self._is_watched = False
        self.said = -math.inf  # when the latest message was said, by its server's clock

    def hear(self, said: float, now: float) -> None:
        if self._counts:
            self._pauses.append(now - self._silent_since)
        self._silent_since, self._counts, self._is_watched = now, True, True
        self.said = max(self.said, said)

    def begin_anew(self, now: float) -> None:
        """The account has connected: the silence until now says nothing about the group."""
        self._silent_since, self._counts, self._is_watched = now, False, True

    def disregard(self) -> None:
        """The server caused this silence, and that is known."""
        self._counts = self._is_watched = False

    def look(self) -> None:
        """The history is read: once is enough for this silence."""
        self._is_watched = False

    @property
    def due(self) -> float:
        """The monotonic time at which the silence becomes unusual; infinite if it is not watched,
        or the group is not lively.
        """
        if not self._is_watched or len(self._pauses) < FEWEST:
            return math.inf
        patience = FACTOR * max(self._pauses)
        return math.inf if patience > LONGEST else self._silent_since + max(SHORTEST, patience)


class DeafnessWatch:
    """Watches the groups of all accounts."""

    def __init__(
        self,
        *,
        transport: Transport,
        active_conversations: ActiveConversations,
        owner: Owner,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._active_conversations = active_conversations
        self._owner = owner
        self._clock = clock
        self._rhythms = DefaultLRU[Conversation, Rhythm](MAX_RHYTHMS, Rhythm)
        self._heard = asyncio.Event()
        self._deaf: set[int] = set()  # accounts
        self._next_look: dict[int, float] = {}  # by account; infinite if it has no histories

    def hear(self, message: MessageReceived) -> None:
        """A message came as an event, before it is processed, or was lost behind the gateway. If it
        is the first after a deaf server's silence, catch up with what came after the history.
        """
        if message.self_id in self._deaf:
            self._deaf.discard(message.self_id)
            self._active_conversations.connected(message.self_id)
        if message.conversation.is_group:
            rhythm = self._rhythms.use(message.conversation)
            rhythm.hear(message.time, self._clock.monotonic())
            self._heard.set()

    def connected(self, account: int) -> None:
        """The account has (re)connected, and is being caught up with."""
        now = self._clock.monotonic()
        self._deaf.discard(account)
        self._next_look[account] = now + APART
        for rhythm in self._of(account):
            rhythm.begin_anew(now)
        self._heard.set()

    async def run(self) -> None:
        """Read the history of unusually silent groups, until cancelled."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            due = self._clock.monotonic() + SHORTEST  # no present silence is due before
            while due < math.inf:
                await self._clock.sleep(min(SHORTEST, max(0.0, due - self._clock.monotonic())))
                await self._look_around()
                due = min(map(self._due, self._rhythms), default=math.inf)

    def _due(self, where: Conversation) -> float:
        return max(self._rhythms[where].due, self._next_look.get(where.platform_id, 0.0))

    def _of(self, account: int) -> list[Rhythm]:
        return [rhythm for where, rhythm in self._rhythms.items() if where.platform_id == account]

    async def _look_around(self) -> None:
        now = self._clock.monotonic()
        due = [where for where in self._rhythms if self._due(where) <= now]
        due.sort(key=self._due)
        first = {where.platform_id: where for where in reversed(due)}
        for account, where in first.items():
            self._next_look[account] = now + APART
            try:
                await self._look_at(where, self._rhythms[where])
            except ActionRefused as error:
                logger.info("no history of %s: %s", where, error)
                if error.retcode in UNSUPPORTED:
                    self._next_look[account] = math.inf  # until it reconnects
            except (NotConnected, ActionUnanswered) as error:
                logger.info("no history of %s: %s", where, error)
            except Exception:
                logger.exception("looking for messages that did not come in %s failed", where)

    async def _look_at(self, where: Conversation, rhythm: Rhythm) -> None:
        rhythm.look()
        last = rhythm.said
        logger.debug("%s is unusually silent: do events still come?", where)
        history = await self._transport.get_history(where, count=MESSAGES)
        missed = [message for message in history if not message.is_own and message.time > last]
        if not missed:
            return
        await self._clock.sleep(LAG)
        if rhythm.said == last:  # else they were on their way
            self._tell(where, missed)
            for other in self._of(where.platform_id):
                other.disregard()
            self._deaf.add(where.platform_id)
            self._active_conversations.connected(where.platform_id)

    def _tell(self, where: Conversation, missed: Sequence[MessageReceived]) -> None:
        language, count = self._owner.language, len(missed)
        line = DEAF.format(language, account=where.platform_id, group=where.session_id, count=count)
        self._owner.tell(f"deaf server of {where.platform_id}", line)
