"""The rooms of `bot/`, built and connected with each other; `bot/app.py` opens them and puts the
adapters around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from adapters.storage.store import SqlStore
from bot.commands.commands import Commands
from bot.commands.errors import Failures
from bot.conversation.approval.approvals import Approvers
from bot.conversation.approval.join_request_store import JoinRequestStore
from bot.conversation.approval.join_requests import JoinRequests
from bot.conversation.context.attachment_opener import AttachmentOpener
from bot.conversation.context.forwards import Forwards
from bot.conversation.context.group_admin import GroupAdmin
from bot.conversation.context.perception import Perception, Senses
from bot.conversation.context.prompt_context import PromptContext
from bot.conversation.intake.group_probe import GroupProbe
from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.pokes import AnsweredPokes
from bot.conversation.intake.server_clock import ServerClock
from bot.conversation.queue.lane import Order
from bot.conversation.queue.lanes import Lanes
from bot.conversation.recovery.catchup import Catchup, ReconnectQueue
from bot.conversation.recovery.deafness import DeafnessWatch
from bot.conversation.recovery.recovery import Recoverer
from bot.conversation.recovery.unconfirmed_checker import UnconfirmedChecker
from bot.conversation.tasks import Work, due_of, person_of
from bot.domain.cluster_queries import ClusterClient
from bot.domain.drafts import ShadowMode
from bot.domain.group_admin import Accept, Chair, JoinRequestReplies
from bot.domain.masking import Mask
from bot.domain.ports import (
    Approver,
    ChatLog,
    Clock,
    Ids,
    Looking,
    Members,
    Observer,
    Settled,
    Store,
    Transport,
)
from bot.domain.query_results import Eraser
from bot.engine.batches import Batches
from bot.engine.engine import Engine
from bot.engine.toolset import Toolset
from bot.memory.attachments import Attachments
from bot.memory.chat_log import StoredChatLog
from bot.memory.forgetting import Forgetting
from bot.memory.quiet_overrides import QuietOverrides
from bot.memory.recorder import Recorder
from bot.memory.spending import Spending
from bot.models.failover import Failover
from bot.runtime.observers import LogObserver, Observers
from bot.speaking.gestures import Gestures
from bot.speaking.owner_alerts import Alarm, Owner
from bot.wiring.commands import build_commands, forgetting_of
from bot.wiring.conversation import (
    Answering,
    Asking,
    Ground,
    build_answering,
    build_asking,
)
from bot.wiring.keeping import Keeping, build_keeping
from bot.wiring.limits import build_thrift
from bot.wiring.media_readers import SensesOf
from bot.wiring.models import build_rules
from bot.wiring.mouth import Mouth, build_mouth, owners_tongue
from bot.wiring.personas import build_personas
from bot.wiring.resources import Resources
from bot.wiring.stages import Stages, build_recoverer, build_stages
from bot.wiring.status import current_status, data_folder
from config.settings import Settings

MAX_LOGGED = 200  # characters of a line that is looked up
ABREAST = 3  # people answered side by side in a group


class Server(Transport, JoinRequestReplies, Protocol):
    """A OneBot server, as far as it is asked for anything."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms of `bot/`, connected with each other."""

    on: Ground
    owner: Owner
    keeping: Keeping
    answering: Answering
    asking: Asking
    stages: Stages
    recoverer: Recoverer
    catchup: Catchup
    deafness: DeafnessWatch
    unconfirmed_checker: UnconfirmedChecker
    group_probe: GroupProbe
    commands: Commands
    failures: Failures
    forgetting: Forgetting


def build_rooms(
    settings: Settings,
    means: Resources,
    journal: SqlStore,
    others: ClusterClient,
    *,
    transport: Server,
    store: Store,
    approvers: Approvers,
    observers: Sequence[Observer],
    settled: Sequence[Settled],
    senses: SensesOf,
    spending: Spending,
    mask: Mask,
    clock: Clock,
    ids: Ids,
) -> Rooms:
    """The rooms, each given what it needs."""
    model, toolset = means.models.main, means.staff.toolset
    said = settings, means.models.named, journal.books, store, clock, spending
    personas = build_personas(*said)
    attachments = Attachments(store=store, kinds=(taken_in := senses(store, clock)).kinds)
    keep = partial(build_keeping, settings, personas, means, attachments, journal.books, ids=ids)
    keeping = keep(store=store, facts=journal.memories, is_spent=spending.is_spent, clock=clock)
    store = keeping.store
    ports: dict[type, object] = {**means.ports, **keeping.ports, Approver: approvers}
    parts = settings, means, journal, transport, store, mask, clock, ids
    mouth = build_mouth(*parts, spending.neighbours)
    ports |= ports_of_chat(settings, transport, keeping, taken_in, mouth, clock)
    ground = settings, means, keeping, journal, mouth, taken_in, spending, transport, clock
    on = build_ground(*ground)
    failures, alarm = Failures(clock=clock, mask=mask), Alarm(mouth.owner, mask=mask)
    seen_by: list[Observer] = [LogObserver(), alarm, failures, *observers]
    engine = build_engine(
        settings, model=model, toolset=toolset, store=store, observers=seen_by, clock=clock
    )
    answering = build_answering(
        on,
        engine=engine,
        personas=personas,
        approvers=approvers,
        owners=settings.bot_owners,
        ports=ports,
        turn_budget=build_thrift(settings, means, spending),
        ids=ids,
        paced=settings.bot_pace,
    )
    petitions = build_petitions(settings, on, transport)
    stands = partial(current_status, others, data_folder(settings), on, answering, petitions)
    typed = partial(build_commands, settings, keeping, journal, failures, means, spending, stands)
    built = on, mouth.owner, keeping, answering, petitions, settings, failures, journal.erasing
    return connect(*built, means, commands=typed, settled=settled, transport=transport, ids=ids)


def accept_of(settings: Settings, user_id: int) -> Accept:
    """The answer to requests of somebody: none where he is never heard."""
    return "none" if user_id in settings.bot_block else settings.bot_accept


def build_petitions(settings: Settings, on: Ground, admitting: JoinRequestReplies) -> JoinRequests:
    """Who hears of friend requests and invites."""
    return JoinRequests(
        accept=partial(accept_of, settings),
        owners=settings.bot_owners,
        admitting=admitting,
        request_store=on.register,
        postbox=on.postbox,
        server_clock=on.ages,
        clock=on.clock,
        tongue=owners_tongue(settings),
    )


def build_ground(
    settings: Settings,
    means: Resources,
    keeping: Keeping,
    journal: SqlStore,
    mouth: Mouth,
    senses: Senses,
    spending: Spending,
    transport: Transport,
    clock: Clock,
) -> Ground:
    """The parts that nearly all others need."""
    store, history, telling = keeping.store, keeping.history, keeping.prompt_context
    perception = Perception(transport=transport, history=history, senses=senses)
    gestures = Gestures(transport=transport, clock=clock, unseen=mouth.shadow.is_active_in)
    books, neighbours = journal.books, spending.neighbours
    quiet_overrides = QuietOverrides(store=store, choices=books, clock=clock, neighbours=neighbours)
    return Ground(
        lanes=build_lanes(settings, mutes=mouth.mutes, clock=clock),
        mutes=mouth.mutes,
        ages=ServerClock(clock),
        perception=perception,
        history=history,
        store=store,
        outbox=mouth.outbox,
        gestures=gestures,
        live=mouth.live,
        prompt_context=telling,
        quiet_overrides=quiet_overrides,
        pokes=AnsweredPokes(store=store, choices=books, clock=clock),
        register=JoinRequestStore(store=store, choices=books, clock=clock),
        modes=mouth.modes,
        shadow=mouth.shadow,
        clock=clock,
        local=keeping.personas.rules,
        words=means.words,
        rungs=spending,
        neighbours=neighbours,
    )


def connect(
    on: Ground,
    owner: Owner,
    keeping: Keeping,
    answering: Answering,
    join_requests: JoinRequests,
    settings: Settings,
    failures: Failures,
    eraser: Eraser,
    means: Resources,
    *,
    commands: Callable[[Ground, Asking, Forgetting], Commands],
    settled: Sequence[Settled],
    transport: Transport,
    ids: Ids,
) -> Rooms:
    """The way of messages to what answers them, and those who look for what was missed."""
    rules = build_rules(settings)
    reconnect_queue = ReconnectQueue(
        lanes=on.lanes, unconfirmed=on.outbox.unconfirmed, clock=on.clock
    )
    asking = build_asking(
        on,
        turn_journal=answering.ledger,
        rules=rules,
        arrive=reconnect_queue.take,
        owner=owner,
        ids=ids,
        debounce=settings.bot_debounce,
    )
    forgetting = forgetting_of(keeping, eraser, on, asking, answering)
    forgetting.follow(owner.forget)
    typed = commands(on, asking, forgetting)
    deafness = DeafnessWatch(
        transport=transport, active_conversations=asking.places, owner=owner, clock=on.clock
    )
    ways, steers = (on, asking, answering, typed), settings.bot_steer
    stages = build_stages(
        *ways,
        join_requests=join_requests,
        rules=rules,
        owner=owner,
        deafness=deafness,
        steers=steers,
        tongue=owners_tongue(settings),
    )
    parts = on, owner, keeping, answering, asking, stages
    return Rooms(
        *parts,
        recoverer=build_recoverer(on, asking, answering, stages, means),
        catchup=build_catchup(on, stages, reconnect_queue, transport=transport),
        deafness=deafness,
        unconfirmed_checker=UnconfirmedChecker(
            transport=transport,
            outbox=on.outbox,
            store=on.store,
            history=on.history,
            clock=on.clock,
            settled=settled,
        ),
        group_probe=build_inquiries(on, asking, transport),
        commands=typed,
        failures=failures,
        forgetting=forgetting,
    )


def build_inquiries(on: Ground, asking: Asking, transport: Transport) -> GroupProbe:
    """Who asks the server where it may speak, and who is a robot."""
    return GroupProbe(
        transport=transport,
        told=asking.muting,
        mutes=on.mutes,
        bot_detection=asking.robots,
        active_conversations=asking.places,
        clock=on.clock,
    )


def build_catchup(
    on: Ground, stages: Stages, reconnect_queue: ReconnectQueue, *, transport: Transport
) -> Catchup:
    """Who reads histories for what was missed."""
    return Catchup(
        transport=transport,
        reconnect_queue=reconnect_queue,
        late_messages=stages.late,
        held=stages.held,
        lanes=on.lanes,
        outbox=on.outbox,
        store=on.store,
        clock=on.clock,
    )


def build_lanes(settings: Settings, *, mutes: Mutes, clock: Clock) -> Lanes[Work]:
    """Where questions wait: people take turns, and where they are told apart some are answered side
    by side.
    """
    due = partial(due_of, muted_until=mutes.until)
    order = Order(person_of, due, ABREAST if settings.bot_scope == "member" else 1)
    return Lanes(clock=clock, order=order, max_waiting=settings.bot_lane)


def build_engine(
    settings: Settings,
    *,
    model: Failover,
    toolset: Toolset,
    store: Store,
    observers: Sequence[Observer],
    clock: Clock,
) -> Engine:
    """The engine of all runs but the subagents'. Each step is written down; a call that may change
    something waits for that.
    """
    return Engine(
        model=model,
        toolset=toolset,
        clock=clock,
        observer=Observers([Recorder(store=store, clock=clock), *observers]),
        batches=Batches(toolset.calls, max_calls=settings.tools_max_calls, recorded=store.commit),
        max_steps=settings.bot_max_steps,
    )


def ports_of_chat(
    settings: Settings,
    transport: Transport,
    keeping: Keeping,
    senses: Senses,
    mouth: Mouth,
    clock: Clock,
) -> dict[type, object]:
    """Where a model looks, in a chat, and what it does there beside speaking."""
    telling, members = keeping.prompt_context, keeping.history.speakers
    chair: dict[type, object] = {}
    if settings.tools_group:
        chair[Chair] = GroupAdmin(
            transport,
            name=members.name,
            screened=mouth.outbox.screened,
            tongue=owners_tongue(settings),
        )
    return {
        **chair,
        ShadowMode: mouth.shadow,
        Looking: build_looks(settings, transport, telling, senses),
        ChatLog: build_log(settings, telling, members, store=keeping.store, clock=clock),
    }


def build_looks(
    settings: Settings, transport: Transport, prompt_context: PromptContext, senses: Senses
) -> AttachmentOpener:
    """Who opens what a prompt only names."""
    owners = settings.bot_owners
    return AttachmentOpener(
        prompt_context=prompt_context, forwards=Forwards(transport), senses=senses, owners=owners
    )


def build_log(
    settings: Settings,
    prompt_context: PromptContext,
    members: Members,
    *,
    store: Store,
    clock: Clock,
) -> StoredChatLog:
    """Where a model looks up what was said."""
    render = partial(prompt_context.line, limit=MAX_LOGGED)
    owners = settings.bot_owners
    return StoredChatLog(store=store, members=members, render=render, owners=owners, clock=clock)
