"""A house with the whole way of a message at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.budget.errands import Errands
from bot.chat.active_conversations import ActiveConversations, Arrival
from bot.chat.active_work import ActiveWork
from bot.chat.backfill import DeafnessWatch, ExpiredEvents, HeldLanes, LateMessages, ReconnectQueue
from bot.chat.coalescer import Coalescer
from bot.chat.deduplicator import Deduplicator, SeenMessages
from bot.chat.dispatcher import ConnectedHandler, Dispatcher
from bot.chat.group_probe import BotDetection, GroupProbe
from bot.chat.message_log import MessageLog, SelfMessages
from bot.chat.mute_handler import MuteHandler
from bot.chat.pokes import Pokes
from bot.chat.question_queue import DeferredQuestions, QuestionQueue, Quotes
from bot.chat.rate_limiter import RateLimiter
from bot.chat.steering import Steering
from bot.chat.stop_handler import StopHandler
from bot.chat.wake_classifier import BlockedWordFilter, WakeClassifier
from bot.chat.way import JudgedStage, LaneWay, MessageWay, Stage
from bot.commands.commands import Commands
from bot.core.events import Event, MemberChange, MemberChanged, MessageRecalled, Muted
from bot.core.journal import Judged, MessageObserved
from bot.memory.personas import Persona
from bot.policy.wake import Rules
from bot.quiet.quiet_hours import QuietHours
from bot.welcome import Greetings, Templates
from tests.bot.approvals.desk import build_decisions
from tests.bot.budget.till import unlimited
from tests.bot.chat.test_turn import House
from tests.fakes import BOT, GROUP, CountingIds, RecordingTransport, ScriptedModel, Step, same_rules


class Hall(House):
    """`watched`: somebody catches up with places; else `arrived` is what he would have been told."""

    def __init__(
        self, model: ScriptedModel, rules: Rules | None = None, *, watched: bool = False, steers: bool = False
    ) -> None:
        super().__init__(model)
        self.arrived: list[Arrival] = []
        self.arrivals = ReconnectQueue(lanes=self.lanes, unconfirmed=self.outbox.unconfirmed, clock=self.clock)
        self.rules = rules = rules or Rules(names=("小霜",))
        clock, store, history, postbox = self.clock, self.store, self.history, self.postbox
        self.seen, self.robots = SeenMessages(clock=clock), BotDetection()
        arrive = self.arrivals.take if watched else self.arrived.append
        self.places = ActiveConversations(arrive=arrive, clock=clock)
        self.quiet_hours = QuietHours(rule_of=lambda _: rules.quiet, settings=self.settings_store, clock=clock)
        self.wake_classifier = WakeClassifier(
            rules=rules,
            history=history,
            seen=self.seen,
            server_clock=self.ages,
            mutes=self.mutes,
            modes=self.modes,
            quiet_hours=self.quiet_hours,
            outbox=self.outbox,
            owner=self.owner,
            blocked_words=BlockedWordFilter(None, history.known, history.speakers.name),
            accounts=self.places.accounts,
            bot_detection=self.robots,
            clock=clock,
            ids=CountingIds(),
            local=same_rules,
        )
        self.hearing = MessageLog(
            store=store,
            history=history,
            active_conversations=self.places,
            ends=self.wake_classifier.end,
        )
        self.rate_limiter = RateLimiter(rules, unlimited(), postbox, self.gestures, clock)
        self.coalescer = Coalescer(
            lanes=self.lanes,
            message_log=self.hearing,
            rate_limiter=self.rate_limiter,
            clock=clock,
            debounce=0.0,
        )
        self.questions = QuestionQueue(
            lanes=self.lanes,
            coalescer=self.coalescer,
            seen=self.seen,
            server_clock=self.ages,
            active_conversations=self.places,
            rate_limiter=self.rate_limiter,
            message_log=self.hearing,
            turn_journal=self.ledger,
        )
        self.put_off = DeferredQuestions(
            wake_classifier=self.wake_classifier,
            coalescer=self.coalescer,
            question_queue=self.questions,
            lanes=self.lanes,
            clock=clock,
        )
        self.active_work = ActiveWork(
            live=self.live,
            turns=self.turns,
            suspensions=self.suspensions,
            deferred=self.put_off,
            lanes=self.lanes,
            question_queue=self.questions,
            message_log=self.hearing,
            history=history,
            store=store,
            outbox=self.outbox,
            shadow=self.shadow,
            postbox=postbox,
            approvals=self.approvals,
            clock=clock,
        )
        self.mute_handler = MuteHandler(
            mutes=self.mutes, server_clock=self.ages, lanes=self.lanes, active_work=self.active_work
        )
        self.commands = Commands(
            (),
            postbox=postbox,
            history=history,
            owners=rules.owners,
            hears=self.wake_classifier.admits_command,
            lets=self.rate_limiter.admit_command,
            commanders=self.wake_classifier.commanders,
            clock=clock,
        )
        self.server = RecordingTransport()
        self.decisions = build_decisions(
            self.approvals,
            approvers=self.approvers,
            store=store,
            history=history,
            outbox=self.outbox,
            server_clock=self.ages,
            clock=clock,
            look_up=self.perception.quoted_there,
            is_finishing=lambda: self.lanes.finishing,
            drafts=self.shadow.drafts,
            modes=self.modes,
            transport=self.server,
        )
        self.door = Deduplicator(
            seen=self.seen,
            server_clock=self.ages,
            meet=lambda message: self.decisions.groups.meet(message, self.wake_classifier.calls, self.owner.tell),
        )
        self_messages = SelfMessages(history, self.outbox)
        stop_handler = StopHandler(
            active_work=self.active_work,
            server_clock=self.ages,
            message_log=self.hearing,
            history=history,
            gestures=self.gestures,
            rules=rules,
            local=same_rules,
        )
        steering = Steering(
            live=self.live,
            message_log=self.hearing,
            question_queue=self.questions,
            history=history,
            prompt_context=self.prompt_context,
            stops=self.wake_classifier.stops,
            owners=rules.owners,
            is_on=steers,
        )
        self.way = MessageWay(
            deduplicator=self.door,
            active_conversations=self.places,
            wake_classifier=self.wake_classifier,
            message_log=self.hearing,
            stages=(
                Stage(self_messages.claim, erases=True),  # a file of ours, told as somebody's?
                Stage(self.decisions.take_reply, erases=True),  # an owner's word on what waits?
                Stage(stop_handler.take, answers=True),  # is somebody to stop?
                Stage(self.commands.start_command, answers=True, erases=True),  # answered without a model?
            ),
            judged_stages=(
                JudgedStage(steering.take, answers=True),  # part of what is being answered?
                JudgedStage(self.questions.receive),  # a question, overheard, or ignored
            ),
        )
        self.lane = LaneWay(
            decisions=self.decisions,
            wake_classifier=self.wake_classifier,
            rate_limiter=self.rate_limiter,
            message_log=self.hearing,
            question_queue=self.questions,
            quotes=Quotes(
                perception=self.perception,
                deferred=self.put_off,
                question_queue=self.questions,
                message_log=self.hearing,
                lanes=self.lanes,
            ),
            turns=self.turns,
            active_work=self.active_work,
            outbox=self.outbox,
        )
        self.late = LateMessages(
            seen=self.seen,
            server_clock=self.ages,
            active_conversations=self.places,
            way=self.way,
            deferred=self.put_off,
            history=history,
            clock=clock,
        )
        self.held = HeldLanes(lanes=self.lanes, seen=self.seen, deferred=self.put_off, question_queue=self.questions)
        self.deafness = DeafnessWatch(
            transport=self.transport, active_conversations=self.places, owner=self.owner, clock=clock
        )
        self.errands = Errands(model=model, store=store, spending=unlimited(), clock=clock, ids=CountingIds())
        self.greetings = Greetings(
            filed=lambda _: Templates(),
            settings=self.settings_store,
            may_speak=self.wake_classifier.may_begin,
            look_up=self.transport.get_member,
            name_of=history.speakers.name,
            group_name=self.places.group_name,
            by_ours=self.ages.by_ours,
            accounts=self.places.accounts,
            persona=lambda _: Persona("", "小霜"),
            errands=self.errands,
            postbox=postbox,
            clock=clock,
            count=lambda _: None,
        )
        self.dispatcher = Dispatcher(
            way=ExpiredEvents(
                way=self.way,
                late_messages=self.late,
                seen=self.seen,
                wake_classifier=self.wake_classifier,
                rate_limiter=self.rate_limiter,
                owner=self.owner,
            ),
            message_log=self.hearing,
            seen=self.seen,
            history=history,
            active_work=self.active_work,
            mute_handler=self.mute_handler,
            active_conversations=self.places,
            on_connected=ConnectedHandler(
                mutes=self.mutes,
                owner=self.owner,
                outbox=self.outbox,
                gestures=self.gestures,
                active_conversations=self.places,
                deferred=self.put_off,
                deafness=self.deafness,
                greetings=self.greetings,
            ),
            pokes=Pokes(
                self.wake_classifier,
                postbox,
                self.pokes,
                clock,
                errands=self.errands,
                persona=lambda _: Persona("", "小霜"),
                name_of=history.speakers.name,
            ),
            join_requests=self.decisions.join_requests,
            self_messages=self_messages,
            unreachable=self.outbox.unreachable,
            deafness=self.deafness,
            greetings=self.greetings,
        )

    def group_probe(self) -> GroupProbe:
        """Asks the server where the bot may speak, and who is a robot."""
        return GroupProbe(
            transport=self.transport,
            take_mute=self.mute_handler.take,
            learn_member=self.mute_handler.learn,
            mutes=self.mutes,
            bot_detection=self.robots,
            active_conversations=self.places,
            clock=self.clock,
        )

    @property
    def verdicts(self) -> list[Judged]:
        """What was judged of messages, as they came and later."""
        entries = self.store.entries
        judged = [entry.judged if isinstance(entry, MessageObserved) else entry for entry in entries]
        return [entry for entry in judged if isinstance(entry, Judged)]

    async def take(self, *events: Event) -> None:
        for event in events:
            await self.dispatcher.handle(event)
        await self.lanes.wait_idle()


@asynccontextmanager
async def hall(*steps: Step, rules: Rules | None = None, steers: bool = False) -> AsyncIterator[Hall]:
    with ScriptedModel(*steps) as model:
        house = Hall(model, rules, steers=steers)
        house.model = model
        async with asyncio.timeout(30), house.outbox.open(), house.lanes.open(house.lane.do):
            yield house


def recalled(message_id: str) -> MessageRecalled:
    return MessageRecalled(
        self_id=BOT, time=0.0, conversation=GROUP, message_id=message_id, user_id=777, operator_id=777
    )


def muted(seconds: int, user_id: int = BOT) -> Muted:
    return Muted(self_id=BOT, time=0.0, conversation=GROUP, user_id=user_id, operator_id=1, seconds=seconds)


def became(change: MemberChange, *, user_id: int = BOT) -> MemberChanged:
    return MemberChanged(self_id=BOT, time=0.0, conversation=GROUP, user_id=user_id, operator_id=0, change=change)
