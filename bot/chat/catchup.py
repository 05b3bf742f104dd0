"""After a connection was lost: catches up with each conversation in use, once.

OneBot servers do not repeat missed messages; NapCat and LLBot can be asked for a history. Old
messages are only heard; an unanswered question to the bot that is younger than two minutes is
answered, once and in its turn: until a place is caught up with, its lane begins nothing new, for a
short time at most. Histories also show which unconfirmed sends were delivered.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Sequence

from bot.chat.active_conversations import Arrival
from bot.chat.deduplicator import DEDUPLICATION, SeenMessages
from bot.chat.lanes import Lanes
from bot.chat.late_messages import LateMessages
from bot.chat.question_queue import DeferredQuestions, QuestionQueue
from bot.chat.tasks import YOUNG, Resume, Work
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import MessageReceived
from bot.core.ports import Store, Transport
from bot.outbox.outbox import Outbox
from bot.outbox.sends import Unconfirmed
from bot.policy.answered_questions import answered_ids, history_order, quoted_ids
from bot.policy.message_aliases import find_aliases, rename_messages
from bot.policy.message_trimming import trim_message
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock


async def read_history(
    transport: Transport, store: Store, where: Conversation, *, count: int
) -> tuple[Sequence[MessageReceived], Collection[str] | None]:
    """What was said there, oldest first, and the ids of those of it that were taken or sent from
    here; None if the journal cannot be read now. Raises TransportError.
    """
    history = await transport.get_history(where, count=count)
    heard = await store.heard(where, [message.message_id for message in history])
    if heard is None or all(message.message_id in heard for message in history):
        return history, heard
    if (known := await store.latest(where)) is None:
        return history, None
    names = find_aliases([trim_message(message) for message in history], known)
    return rename_messages(history, names), {*heard, *names.values()}


MAX_PLACES = 30  # the latest ones
ACTIVE = 24 * 3600.0  # seconds a conversation counts as in use


class CatchupRound:
    """One arrival: the places to look at, each with the time since when, and those whose lanes are
    still held.
    """

    def __init__(self, account: int, since: dict[Conversation, float]) -> None:
        self.account = account
        self.since = since
        self.held = {where for where, begin in since.items() if begin < math.inf}


class ReconnectQueue:
    """The rounds still to be begun, in order."""

    def __init__(self, *, lanes: Lanes[Work], unconfirmed: Unconfirmed, clock: Clock) -> None:
        self._lanes = lanes
        self._unconfirmed = unconfirmed
        self._clock = clock
        self._rounds: asyncio.Queue[CatchupRound] = asyncio.Queue()

    def take(self, arrival: Arrival) -> None:
        """An account is there: nothing new is begun in its conversations before they are caught up
        with.
        """
        round_ = CatchupRound(arrival.account, self._places(arrival))
        for where in round_.held:
            self._lanes.hold(where)
        self._rounds.put_nowait(round_)

    async def next(self) -> CatchupRound:
        """The next round; whoever takes it lets its lanes go on."""
        return await self._rounds.get()

    def _places(self, arrival: Arrival) -> dict[Conversation, float]:
        now = self._clock.now()
        in_use = [
            (where, heard)
            for where, heard in arrival.heard
            if where.platform_id == arrival.account and heard >= now - ACTIVE
        ]
        in_use.sort(key=lambda place: place[1], reverse=True)
        # What is young is looked at in any case: it may have been missed before something that was
        # heard.
        places = {where: min(heard, now - YOUNG) for where, heard in in_use[:MAX_PLACES]}
        for where in self._unconfirmed.places(arrival.account):
            places.setdefault(where, math.inf)
        return places


logger = logging.getLogger(__name__)


class HeldLanes:
    """Releases lanes by what a history shows."""

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
        """Let a lane go on: in the order in which QQ has what was said, without what was answered.

        Own words in the history whose ids are not `accounted` for are an earlier process's.
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
        """Its account is gone again: what is older than this process waits until QQ can show what
        became of it.
        """

        def waits(work: Work) -> bool:
            if isinstance(work, Resume) or not self._seen.is_earlier(work.message):
                return False
            self._deferred.add(work)
            return True

        self._lanes.drop_waiting(where, waits)


MESSAGES = 50  # of each
UNSUPPORTED = (404, 1404, -1)  # the action is not known; -1 is onebots' way to say so
HELD = 3.0  # seconds a lane waits at most


class Catchup:
    """Looks at the histories of an account's conversations whenever the account comes (back)."""

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
        """Catch up for each account that connects, beside the others, until cancelled."""
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
        """Each place once; first those where somebody waits by now."""
        unsupported: set[bool] = set()
        left = dict(round_.since)
        while left:
            where = max(left, key=self._lanes.has)
            since = left.pop(where)
            if where.is_group not in unsupported and not await self._look_at(round_, where, since):
                unsupported.add(where.is_group)
            self._go_on(round_, where)

    async def _look_at(self, round_: CatchupRound, where: Conversation, since: float) -> bool:
        """Look at what was said in one place since then; False if this server cannot tell histories
        of its kind.
        """
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
        """The account's own messages of which it is known what they answered."""
        own = (message for message in history if message.is_own)
        return [
            one.message_id
            for one in own
            if one.message_id in heard or self._outbox.unconfirmed.is_known(one)
        ]

    def _new(
        self, found: list[MessageReceived], heard: Collection[str] | None
    ) -> list[MessageReceived]:
        """Those that nobody has heard yet; of what is older than the dispatcher's memory, only the
        store knows.
        """
        if heard is None:
            begin = self._clock.now() - DEDUPLICATION
            return [message for message in found if message.time > begin]
        return [message for message in found if message.message_id not in heard]
