"""One event -> known already? whose lane?

Never awaits anything slow: it runs on the connection's own reading loop, so whatever needs an
answer from the server (a quote nobody remembers) is decided in the lane.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from cachetools import LRUCache

from bot.conversation.approvals import Approvals
from bot.conversation.lanes import Lanes
from bot.conversation.mutes import Mutes
from bot.conversation.overflow import Overflow
from bot.conversation.perception import Perception
from bot.conversation.seen import Past, Seen
from bot.conversation.tasks import Arrival, PutOff, Resume, Task
from bot.conversation.turn import Turns
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
)
from bot.domain.journal import Entry, MessageErased, MessageObserved, MessageOverheard, OpenTurn
from bot.domain.ports import Clock, Store
from bot.domain.suspension import Decision
from bot.memory.history import History
from bot.policy.answered import answered, order_of, quoted
from bot.policy.apologies import SORRY, apology
from bot.policy.lighten import lighten
from bot.policy.wake import Ignore, NeedsQuoted, Observe, Rules, Verdict, Wake, judge
from bot.speaking.outbox import Outbox
from bot.speaking.owner import Owner

logger = logging.getLogger(__name__)

MAX_PLACES = 2000
YOUNG = 120.0  # seconds a question waits for its answer: later nobody expects one
EXPIRY_LOOK = 5.0  # seconds between two looks at what waits for somebody's word


Arrive: TypeAlias = Callable[[Arrival], None]


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
        self._arrive: Arrive = _arrive_unnoticed
        self._heard: LRUCache[Conversation, float] = LRUCache(MAX_PLACES)
        self._put_off = PutOff()
        self.seen = Seen(clock=clock)
        self.overflow = Overflow(outbox=outbox, clock=clock)
        self._accounts: set[int] = set()
        self._mutes = Mutes(clock=clock)
        self.stopping = False
        self.lanes: Lanes[Task | Resume] = Lanes(work=self._do)
        approvals.resume_with(self.resume)

    def announce_to(self, arrive: Arrive) -> None:
        """From now on say here that an account has connected: at once, before any of its messages.
        It must not wait.
        """
        self._arrive = arrive

    async def handle(self, event: Event) -> None:
        """Take one event of any kind."""
        self._accounts.add(event.self_id)
        match event:
            case MessageReceived():
                if not self.seen.put_off(event):
                    self._message(event)
            case MessageSent():
                self._history.know(event.message)
                self._outbox.seen(event.message)
            case MessageRecalled():
                self._recalled(event)
            case Muted():
                self._mutes.take(event)
            case AccountChanged(online=online, reason=reason):
                level = logging.INFO if online else logging.ERROR
                logger.log(
                    level,
                    "account %d is %s %s",
                    event.self_id,
                    "online" if online else "offline",
                    reason,
                )
            case Connected(self_id=account):
                self._mutes.forget(account)
                self._owner.connected(account)
                self._outbox.connected()
                # Noted now: the first new message of a group must not hide those missed before it.
                self._arrive(Arrival(account, tuple(self._heard.items())))
                self._ask_what_was_put_off(account)
            case Heartbeat() | Poked() | MemberChanged() | Requested() | Noticed():
                logger.debug("%s of %d", event.type, event.self_id)
            case _:
                assert_never(event)

    @property
    def duplicates(self) -> int:
        """How many messages came again, since the start."""
        return self.seen.duplicates

    async def finish(self, *, within: float) -> None:
        """Begin no run any more, let those that are going on end, and cut off what is left after so
        many seconds.

        Questions that wait, and those that still come, stay in the journal as ones that nobody came
        to: the next start answers them while they are young. A run that is cut off leaves its turn
        open: the next start settles it.
        """
        self.stopping = True
        if going := self.lanes.active:
            logger.info("stopping: runs that go on: %d, with %g s to end", going, within)
        if late := await self.lanes.finish(within=within):
            logger.warning("runs that are cut off: %d; the next start settles them", late)

    def preload(
        self,
        seen: Iterable[tuple[Identity, float]],
        heard: Iterable[tuple[Conversation, float]],
        *,
        whole: bool = True,
    ) -> None:
        """Know again what an earlier process knew: messages taken (with their times), conversations
        in use.

        `whole` is False where that is not all. Accounts that are there already are caught up with
        anew: until now nobody knew where they are in use.
        """
        earlier = self.seen.read((identity for identity, _ in seen), whole=whole)
        known = (*heard, *((message.conversation, message.time) for message in earlier))
        for where, time in known:
            self._heard[where] = max(time, self._heard.get(where, 0.0))
        for account in self._accounts:
            self._arrive(Arrival(account, known))
        for message in earlier:
            self._take_late(message)

    def ask_again(self, message: MessageReceived, *, retry: OpenTurn | None = None) -> None:
        """Answer a question that an earlier process took and did not come to, or whose turn it left
        open before anything came of it (`retry`), once its account is there: QQ may show that it
        was answered.

        Only the OneBot server may know what it quotes; until then it is in the store as one that
        nobody came to.
        """
        self._history.know(message)
        self._put_off.add(Task(message, Wake("retry"), self._clock.now(), retry))
        if message.self_id in self._accounts:
            self._ask_what_was_put_off(message.self_id)

    def _ask_what_was_put_off(self, account: int) -> None:
        if self.stopping:
            return
        for task in self._put_off.take(account):
            verdict = task.verdict if task.retry is not None else self._judge(task.message)
            if self._clock.now() - task.since < YOUNG and isinstance(verdict, Wake | NeedsQuoted):
                self._line_up(replace(task, verdict=verdict))
            else:
                self._let_be(task)

    def resume(self, where: Conversation, turn_id: str, decisions: Mapping[str, Decision]) -> bool:
        """Let a suspended turn go on in its lane; False when the lane is full, or nothing is begun
        any more.
        """
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

    def take_missed(self, message: MessageReceived, *, answered: bool = False) -> None:
        """A message found in the history: a young question without an answer is answered, the rest
        is heard.

        Known ones are nothing. One older than this process is left alone until the journal says
        what became of it.
        """
        if (
            message.has_identity
            and self.seen.past_of(message) is not Past.UNREAD
            and not self.seen.knows(message)
        ):
            self._take_late(message, answer=not answered)

    def _take_late(self, message: MessageReceived, *, answer: bool = True) -> None:
        self.approvals.ages.miss(message)
        self._message(message, answer=answer and self.approvals.ages.age(message) < YOUNG)

    def go_on(
        self, where: Conversation, history: Sequence[MessageReceived], accounted: Collection[str]
    ) -> None:
        """Let a lane go on that was held: in the order in which QQ has what was said, without what
        was answered.

        Own words in the history whose ids are not `accounted` for are an earlier process's.
        """
        place_of = order_of(history)
        now, before = quoted(history, accounted=accounted), answered(history, accounted=accounted)

        def is_answered(task: Task | Resume) -> bool:
            if isinstance(task, Resume):
                return False
            if task.message.message_id not in (before if task.may_be_answered else now):
                return False
            self._let_be(task)
            return True

        if before and self.lanes.drop_waiting(where, is_answered):
            logger.info("questions in %s are not answered: they were, before", where)
        self.seen.show(where, history)
        self.lanes.release(
            where, order=lambda task: place_of(task.message if isinstance(task, Task) else None)
        )

    def put_off(self, where: Conversation) -> None:
        """Its account is gone again: what is older than this process waits until QQ can show what
        became of it.
        """

        def waits(task: Task | Resume) -> bool:
            if isinstance(task, Resume) or not self.seen.is_earlier(task.message):
                return False
            self._put_off.add(task)
            return True

        self.lanes.drop_waiting(where, waits)

    async def wait_settled(self, identity: Identity) -> None:
        """Return once the message of this identity has been taken and no lane has anything to
        do.
        """
        await self.seen.wait(identity)
        await self.lanes.wait_idle()

    def _message(self, message: MessageReceived, *, answer: bool = True) -> None:
        """Take it, unless it was taken already; only heard where it is not to be answered."""
        if message.is_own:
            return
        if not self.seen.claim(message):
            self.seen.duplicates += 1
            logger.debug("message %s in %s came again", message.message_id, message.conversation)
            return
        if not self.seen.is_earlier(message):
            self.approvals.ages.hear_new(message)
        message = lighten(message)
        if not self.stopping and self.approvals.take(message):
            self._forget_answer(message, MessageObserved(message, overheard=True))
            return
        verdict = self._judge(message)
        if isinstance(verdict, Wake | NeedsQuoted) and self._mutes.holds_in(message.conversation):
            verdict = Observe()
        if isinstance(verdict, Wake | NeedsQuoted) and not answer:
            verdict = Observe()
        if not isinstance(verdict, Ignore):
            self._heard[message.conversation] = max(
                message.time, self._heard.get(message.conversation, 0.0)
            )
        self._follow(message, verdict)

    def _judge(self, message: MessageReceived) -> Verdict:
        """The verdict; a quote of a message in memory is decided at once, so that talk among people
        fills no lane.
        """
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
                self._observe(message)
            case Wake() | NeedsQuoted():
                told = not self.approvals.ages.is_missed(message)
                lost = self.seen.past_of(message, told=told) is Past.LOST
                self._observe(
                    message, overheard=lost
                )  # then the next process does not answer it either
                if self.stopping:
                    logger.info(
                        "message %s in %s came while stopping: for the next start",
                        message.message_id,
                        where,
                    )
                else:
                    earlier = self.seen.is_earlier(message)
                    self._line_up(
                        Task(message, verdict, self._clock.now(), told=earlier, lost=lost)
                    )
            case _:
                assert_never(verdict)

    def _observe(self, message: MessageReceived, *, overheard: bool = True) -> None:
        self._store.put(MessageObserved(message, overheard=overheard))
        self._history.know(message)
        if overheard:
            self._history.overhear(message)

    def _line_up(self, task: Task) -> None:
        """A lane for a question that is taken, or a word that nobody comes to it.

        One that is older than this process may have been answered: what QQ shows is looked at
        first, once.
        """
        where = task.message.conversation
        is_shown = self.approvals.ages.is_missed(task.message) or self.lanes.is_held(where)
        if self.seen.is_earlier(task.message) and not is_shown:
            self._arrive(Arrival(where.platform_id, ((where, self._clock.now()),)))
        if self.lanes.put(where, task):
            return
        self._let_be(task)
        if isinstance(task.verdict, Wake):
            self.overflow.take(task.message)

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
                    logger.info(
                        "message %s waits for a connection: %s", task.message.message_id, error
                    )
                    self._put_off.add(task)
                    return
                if not quotes_the_bot:
                    self._let_be(task)
                    return
                if self.stopping:
                    return
            case Wake():
                pass
            case _:
                assert_never(task.verdict)
        if task.lost:
            self._outbox.post_with(action=apology(task.message, SORRY))
        else:
            await self._turns.take(task.message, retry=task.retry)

    def _forget_answer(self, message: MessageReceived, *observed: Entry) -> None:
        """An answer to a request is known as taken, but is nothing that any prompt repeats."""
        if message.has_identity:
            self._store.put(*observed, MessageErased(message.conversation, message.message_id))

    def _let_be(self, task: Task) -> None:
        """A question that nobody answers after all is heard like any other message."""
        self._give_up(task)
        if not task.lost:
            self._store.put(MessageOverheard(task.message))
            self._history.overhear(task.message)

    def _give_up(self, task: Task) -> None:
        if task.retry is not None:
            self._turns.give_up(task.retry)

    def _recalled(self, event: MessageRecalled) -> None:
        where, message_id = event.conversation, event.message_id
        self._store.put(MessageErased(where, message_id))
        self._history.forget_message(where, message_id)
        self.seen.forget(where, message_id)
        self._turns.abandon(where, message_id)
        for task in self._put_off.drop(where, message_id):
            self._give_up(task)

        def is_about(task: Task | Resume) -> bool:
            question = task.question if isinstance(task, Resume) else task.message
            if question is None or question.message_id != message_id:
                return False
            self._turns.disown(question)
            if isinstance(task, Task):
                self._give_up(task)
            return True

        if self.lanes.drop(where, is_about):
            logger.info("message %s in %s was recalled: not answered", message_id, where)


def _arrive_unnoticed(arrival: Arrival) -> None:
    logger.debug("account %d is there", arrival.account)
