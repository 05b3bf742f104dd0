"""The way of a message and the turn at its end, put together in the order in which their parts need
each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.conversation.approval.approval_replies import ApprovalReplies
from bot.conversation.approval.approvals import Approvals, Approvers
from bot.conversation.approval.draft_replies import DraftReplies
from bot.conversation.approval.group_approval import GroupApproval
from bot.conversation.approval.join_request_store import JoinRequestStore
from bot.conversation.approval.publishing import Publishing
from bot.conversation.approval.requests import Requests
from bot.conversation.context.perception import Perception
from bot.conversation.context.prompt_context import PromptContext
from bot.conversation.intake.active_conversations import ActiveConversations, Arrive
from bot.conversation.intake.deduplicator import SeenMessages
from bot.conversation.intake.group_probe import BotDetection
from bot.conversation.intake.message_log import MessageLog
from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.pokes import AnsweredPokes
from bot.conversation.intake.quiet_hours import QuietHours
from bot.conversation.intake.server_clock import ServerClock
from bot.conversation.intake.vetoes import BlockedWordFilter, Vetoes
from bot.conversation.intake.wake_classifier import WakeClassifier
from bot.conversation.interruptions.muting import Muting
from bot.conversation.queue.coalescer import Coalescer
from bot.conversation.queue.deferred import DeferredQuestions
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.question_queue import QuestionQueue
from bot.conversation.queue.rate_limiter import RateLimiter
from bot.conversation.tasks import Work
from bot.conversation.turns.context_builder import ContextBuilder
from bot.conversation.turns.finalizer import Finalizer
from bot.conversation.turns.live import LiveTurns
from bot.conversation.turns.suspensions import Suspensions
from bot.conversation.turns.turn import Turns
from bot.conversation.turns.turn_budget import NO_LIMIT, Rungs, TurnBudget
from bot.conversation.turns.turn_journal import TurnJournal
from bot.domain.blocked_words import BlockedWords
from bot.domain.cluster_messages import ALONE, ClusterPeers
from bot.domain.language import Language
from bot.domain.ports import Clock, Ids, Store
from bot.engine.engine import Engine
from bot.memory.history import History
from bot.memory.modes import Modes
from bot.memory.personas import Personas
from bot.memory.quiet_overrides import QuietOverrides
from bot.policy.wake import Local, Rules, same_rules
from bot.speaking.delivery import Delivery, Manner
from bot.speaking.gestures import Gestures
from bot.speaking.outbox import Outbox
from bot.speaking.owner_alerts import Owner
from bot.speaking.postbox import Postbox
from bot.speaking.shadow import Shadow


@dataclass(frozen=True, slots=True)
class Ground:
    """The parts that nearly all others need."""

    lanes: Lanes[Work]
    mutes: Mutes
    ages: ServerClock
    perception: Perception
    history: History
    store: Store
    outbox: Outbox
    gestures: Gestures
    live: LiveTurns
    prompt_context: PromptContext
    quiet_overrides: QuietOverrides
    pokes: AnsweredPokes
    register: JoinRequestStore
    modes: Modes
    shadow: Shadow
    clock: Clock
    local: Local = same_rules
    words: BlockedWords | None = None
    rungs: Rungs = NO_LIMIT
    neighbours: ClusterPeers = ALONE

    @property
    def postbox(self) -> Postbox:
        """Where lines of the service are put."""
        return Postbox(outbox=self.outbox, history=self.history, clock=self.clock)

    @property
    def openly(self) -> Postbox:
        """The same, for what an owner asked, in a shadow too."""
        return Postbox(outbox=self.outbox, history=self.history, clock=self.clock, openly=True)


@dataclass(frozen=True, slots=True)
class Answering:
    """A turn, and what it may wait for."""

    turns: Turns
    context_builder: ContextBuilder
    suspensions: Suspensions
    ledger: TurnJournal
    approvals: Approvals
    requests: Requests
    groups: GroupApproval
    word: ApprovalReplies
    drafts: DraftReplies
    publishing: Publishing


@dataclass(frozen=True, slots=True)
class Asking:
    """A message, until it has its place in a lane."""

    seen: SeenMessages
    muting: Muting
    robots: BotDetection
    places: ActiveConversations
    rate_limiter: RateLimiter
    hearing: MessageLog
    verdicts: WakeClassifier
    questions: QuestionQueue
    coalescer: Coalescer
    put_off: DeferredQuestions


def build_answering(
    on: Ground,
    *,
    engine: Engine,
    personas: Personas,
    approvers: Approvers,
    owners: frozenset[int],
    ports: Mapping[type, object],
    turn_budget: TurnBudget,
    ids: Ids,
    paced: bool = False,
) -> Answering:
    """Turns, with approvals on both sides of them; `paced` ones write as people do."""
    history, store, clock, postbox = on.history, on.store, on.clock, on.postbox
    manner = Manner(paced, lambda where: personas.of(where).name, approvers.tongue)
    delivery = Delivery(outbox=on.outbox, history=history, clock=clock, manner=manner)
    requests = Requests(runs=on.lanes, clock=clock, tongue=approvers.tongue)
    turn_journal = TurnJournal(store, history, clock, reserves=on.rungs.has_limits)
    approvals = Approvals(approvers=approvers, requests=requests, postbox=postbox, clock=clock)
    suspensions = Suspensions(
        store=store,
        approvals=approvals,
        requests=requests,
        turn_journal=turn_journal,
        history=history,
    )
    context_builder = ContextBuilder(
        perception=on.perception,
        prompt_context=on.prompt_context,
        delivery=delivery,
        personas=personas,
        owners=owners,
        ports=ports,
        turn_budget=turn_budget,
        ids=ids,
    )
    turns = Turns(
        engine=engine,
        context_builder=context_builder,
        finalizer=Finalizer(
            delivery=delivery,
            history=history,
            approvals=approvals,
            store=store,
            turn_journal=turn_journal,
            shadow=on.shadow,
        ),
        suspensions=suspensions,
        history=history,
        turn_journal=turn_journal,
        live=on.live,
        gestures=on.gestures,
    )
    desks = build_desks(on, approvers, requests)
    return Answering(turns, context_builder, suspensions, turn_journal, approvals, requests, *desks)


def build_desks(
    on: Ground, approvers: Approvers, requests: Requests
) -> tuple[GroupApproval, ApprovalReplies, DraftReplies, Publishing]:
    """Who takes the owners' words, and publishes drafts."""
    groups, word = build_groups(on, approvers), build_word(on, approvers, requests)
    publishing = build_publishing(on, tongue=approvers.tongue)
    return groups, word, build_desk(on, publishing), publishing


def build_publishing(on: Ground, *, tongue: Language) -> Publishing:
    """Who publishes drafts."""
    return Publishing(
        drafts=on.shadow.drafts,
        outbox=on.outbox,
        store=on.store,
        history=on.history,
        clock=on.clock,
        tongue=tongue,
    )


def build_desk(on: Ground, publishing: Publishing) -> DraftReplies:
    """Who takes the owners' words on drafts."""
    return DraftReplies(
        drafts=on.shadow.drafts,
        publishing=publishing,
        postbox=on.postbox,
        server_clock=on.ages,
    )


def build_groups(on: Ground, approvers: Approvers) -> GroupApproval:
    """Who asks the owners about new groups."""
    return GroupApproval(
        modes=on.modes,
        approvers=approvers,
        postbox=on.postbox,
        server_clock=on.ages,
        clock=on.clock,
    )


def build_word(on: Ground, approvers: Approvers, requests: Requests) -> ApprovalReplies:
    """Who takes the owners' words on calls that wait."""
    return ApprovalReplies(
        approvers=approvers,
        requests=requests,
        postbox=on.openly,
        server_clock=on.ages,
        clock=on.clock,
    )


def build_verdicts(
    on: Ground,
    active_conversations: ActiveConversations,
    bot_detection: BotDetection,
    *,
    rules: Rules,
    owner: Owner,
    ids: Ids,
) -> WakeClassifier:
    """Who says what a message is to the bot."""
    vetoes = Vetoes(
        rules=rules,
        server_clock=on.ages,
        mutes=on.mutes,
        quiet_hours=QuietHours(
            rules=rules,
            local=on.local,
            quiet_overrides=on.quiet_overrides,
            modes=on.modes,
            clock=on.clock,
        ),
        outbox=on.outbox,
        owner=owner,
        clock=on.clock,
        blocked_words=BlockedWordFilter(on.words, on.history.known, on.history.speakers.name),
    )
    return WakeClassifier(
        rules=rules,
        history=on.history,
        vetoes=vetoes,
        accounts=active_conversations.accounts,
        bot_detection=bot_detection,
        clock=on.clock,
        ids=ids,
        local=on.local,
    )


def build_asking(
    on: Ground,
    *,
    turn_journal: TurnJournal,
    rules: Rules,
    arrive: Arrive,
    owner: Owner,
    ids: Ids,
    debounce: float = 0.0,
) -> Asking:
    """Questions, and where they wait; `arrive` is told of places that are to be caught up with."""
    seen = SeenMessages(clock=on.clock)
    robots, places = BotDetection(), ActiveConversations(arrive=arrive, clock=on.clock)
    verdicts = build_verdicts(on, places, robots, rules=rules, owner=owner, ids=ids)
    message_log = MessageLog(
        store=on.store, history=on.history, active_conversations=places, ends=verdicts.end
    )
    rate_limiter = RateLimiter(rules, seen, on.rungs, on.postbox, on.gestures, on.clock)
    question_queue = QuestionQueue(
        lanes=on.lanes,
        seen=seen,
        server_clock=on.ages,
        active_conversations=places,
        rate_limiter=rate_limiter,
        message_log=message_log,
        turn_journal=turn_journal,
        clock=on.clock,
    )
    coalescer = Coalescer(
        lanes=on.lanes,
        question_queue=question_queue,
        message_log=message_log,
        clock=on.clock,
        debounce=debounce,
    )
    deferred = DeferredQuestions(
        wake_classifier=verdicts,
        coalescer=coalescer,
        question_queue=question_queue,
        lanes=on.lanes,
        clock=on.clock,
    )
    muting = Muting(
        mutes=on.mutes,
        server_clock=on.ages,
        live=on.live,
        lanes=on.lanes,
        question_queue=question_queue,
        message_log=message_log,
    )
    kept = seen, muting, robots, places, rate_limiter, message_log
    return Asking(*kept, verdicts, question_queue, coalescer, deferred)
