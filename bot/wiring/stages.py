"""The way of a message, put together: its stages, and who hands every event to whom it concerns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bot.conversation.approval.join_requests import JoinRequests
from bot.conversation.approval.owner_replies import OwnerReplies
from bot.conversation.dispatcher import ConnectedHandler, Dispatcher
from bot.conversation.intake.deduplicator import Deduplicator
from bot.conversation.intake.message_log import SelfMessages
from bot.conversation.intake.pokes import Pokes
from bot.conversation.interruptions.active_work import ActiveWork
from bot.conversation.interruptions.expiry import Expiry
from bot.conversation.interruptions.recalls import Recalls
from bot.conversation.interruptions.steering import Steering
from bot.conversation.interruptions.stop_handler import StopHandler
from bot.conversation.queue.quotes import Quotes
from bot.conversation.recovery.catchup import HeldLanes
from bot.conversation.recovery.deafness import DeafnessWatch
from bot.conversation.recovery.late_messages import ExpiredEvents, LateMessages
from bot.conversation.recovery.recovery import Recoverer
from bot.conversation.recovery.unfinished import Unfinished
from bot.conversation.way import CommandSink, LaneWay, MessageWay
from bot.domain.language import Language
from bot.policy.wake import Rules
from bot.speaking.owner_alerts import Owner
from bot.wiring.conversation import Answering, Asking, Ground
from bot.wiring.resources import Resources


@dataclass(frozen=True, slots=True)
class Stages:
    """The whole way, and those who send something on it."""

    dispatcher: Dispatcher
    way: MessageWay
    lane: LaneWay
    active_work: ActiveWork
    door: Deduplicator
    late: LateMessages
    held: HeldLanes
    expiry: Expiry
    petitions: JoinRequests


def build_stages(
    on: Ground,
    asking: Asking,
    answering: Answering,
    commands: CommandSink,
    *,
    join_requests: JoinRequests,
    rules: Rules,
    owner: Owner,
    deafness: DeafnessWatch,
    steers: bool,
    tongue: Language = Language.CHINESE,
) -> Stages:
    """The way from a question to its answer, and who sends messages on it."""
    meet = partial(answering.groups.meet, calls=asking.verdicts.calls, tell=owner.tell)
    deduplicator = Deduplicator(seen=asking.seen, server_clock=on.ages, meet=meet)
    active_work = ActiveWork(
        live=on.live,
        turns=answering.turns,
        suspensions=answering.suspensions,
        lanes=on.lanes,
        question_queue=asking.questions,
        outbox=on.outbox,
    )
    replies = build_owner_replies(on, answering, join_requests, owner, tongue)
    ways = on, asking, replies, deduplicator, active_work, commands
    way = build_way(*ways, rules=rules, steers=steers)
    late_messages = LateMessages(
        seen=asking.seen,
        server_clock=on.ages,
        active_conversations=asking.places,
        way=way,
        deferred=asking.put_off,
        history=on.history,
        clock=on.clock,
    )
    dispatcher = build_dispatcher(
        on,
        asking,
        answering,
        (way, late_messages),
        join_requests,
        owner=owner,
        deafness=deafness,
        tongue=tongue,
    )
    held = HeldLanes(
        lanes=on.lanes, seen=asking.seen, deferred=asking.put_off, question_queue=asking.questions
    )
    lane = build_lane_way(on, asking, answering, replies)
    expiry = Expiry(
        suspensions=answering.suspensions,
        approvals=answering.approvals,
        lanes=on.lanes,
        clock=on.clock,
    )
    return Stages(
        dispatcher, way, lane, active_work, deduplicator, late_messages, held, expiry, join_requests
    )


def build_owner_replies(
    on: Ground, answering: Answering, join_requests: JoinRequests, owner: Owner, tongue: Language
) -> OwnerReplies:
    """Where an owner's reply may be waited for."""
    return OwnerReplies(
        join_requests,
        answering.groups,
        answering.drafts,
        answering.word,
        owners=frozenset(owner.owners),
        history=on.history,
        look_up=on.perception.quoted_there,
        server_clock=on.ages,
        runs=on.lanes,
        postbox=on.postbox,
        tongue=tongue,
    )


def build_way(
    on: Ground,
    asking: Asking,
    owner_replies: OwnerReplies,
    deduplicator: Deduplicator,
    active_work: ActiveWork,
    commands: CommandSink,
    *,
    rules: Rules,
    steers: bool,
) -> MessageWay:
    """The way up to a place in a lane."""
    return MessageWay(
        deduplicator=deduplicator,
        active_conversations=asking.places,
        self_messages=SelfMessages(on.history, on.outbox),
        word=owner_replies,
        stop_handler=StopHandler(
            active_work=active_work,
            server_clock=on.ages,
            message_log=asking.hearing,
            history=on.history,
            gestures=on.gestures,
            rules=rules,
            local=on.local,
        ),
        commands=commands,
        wake_classifier=asking.verdicts,
        steering=Steering(
            live=on.live,
            message_log=asking.hearing,
            coalescer=asking.coalescer,
            history=on.history,
            prompt_context=on.prompt_context,
            stops=asking.verdicts.stops,
            owners=rules.owners,
            is_on=steers,
        ),
        message_log=asking.hearing,
        coalescer=asking.coalescer,
    )


def build_lane_way(
    on: Ground, asking: Asking, answering: Answering, owner_replies: OwnerReplies
) -> LaneWay:
    """The way from there on."""
    quotes = Quotes(
        perception=on.perception,
        deferred=asking.put_off,
        question_queue=asking.questions,
        message_log=asking.hearing,
        lanes=on.lanes,
    )
    return LaneWay(
        word=owner_replies,
        wake_classifier=asking.verdicts,
        rate_limiter=asking.rate_limiter,
        message_log=asking.hearing,
        question_queue=asking.questions,
        quotes=quotes,
        turns=answering.turns,
        outbox=on.outbox,
    )


def build_dispatcher(
    on: Ground,
    asking: Asking,
    answering: Answering,
    ways: tuple[MessageWay, LateMessages],
    join_requests: JoinRequests,
    *,
    owner: Owner,
    deafness: DeafnessWatch,
    tongue: Language,
) -> Dispatcher:
    """Who hands every event to whom it concerns."""
    on_connected = ConnectedHandler(
        mutes=on.mutes,
        owner=owner,
        outbox=on.outbox,
        gestures=on.gestures,
        active_conversations=asking.places,
        deferred=asking.put_off,
        deafness=deafness,
    )
    way, late = ways
    return Dispatcher(
        way=ExpiredEvents(
            way=way,
            late_messages=late,
            seen=asking.seen,
            wake_classifier=asking.verdicts,
            rate_limiter=asking.rate_limiter,
            owner=owner,
        ),
        recalls=build_recalls(on, asking, answering),
        mutes=asking.muting,
        active_conversations=asking.places,
        on_connected=on_connected,
        pokes=Pokes(asking.verdicts, on.postbox, on.pokes, on.clock, tongue=tongue),
        join_requests=join_requests,
        self_messages=SelfMessages(on.history, on.outbox),
        unreachable=on.outbox.unreachable,
        deafness=deafness,
    )


def build_recalls(on: Ground, asking: Asking, answering: Answering) -> Recalls:
    """Who takes messages back."""
    return Recalls(
        let_go=(
            asking.hearing.forget,
            asking.seen.forget,
            answering.suspensions.recall,
            asking.put_off.drop,
            on.shadow.recall,
        ),
        history=on.history,
        question_queue=asking.questions,
        turns=answering.turns,
        live=on.live,
        lanes=on.lanes,
    )


def build_recoverer(
    on: Ground,
    asking: Asking,
    answering: Answering,
    stages: Stages,
    means: Resources,
) -> Recoverer:
    """Who settles what an earlier process left."""
    toolset = means.staff.toolset
    unfinished = Unfinished(
        store=on.store,
        history=on.history,
        context_builder=answering.context_builder,
        model=means.models.main,
        toolset=toolset,
        clock=on.clock,
    )
    return Recoverer(
        unfinished=unfinished,
        seen=asking.seen,
        rate_limiter=asking.rate_limiter,
        late_messages=stages.late,
        suspensions=answering.suspensions,
        turn_journal=answering.ledger,
        outbox=on.outbox,
        toolset=toolset,
        clock=on.clock,
    )
