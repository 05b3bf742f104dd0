"""The rooms of `bot/`, built and connected with each other; `bot/app.py` opens them and puts the
adapters around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bot.conversation.approvals import Approvals
from bot.conversation.catchup import Catchup
from bot.conversation.dispatcher import Dispatcher
from bot.conversation.doubts import Doubts
from bot.conversation.perception import Perception
from bot.conversation.recovery import Recoverer
from bot.conversation.turn import Persona, Turns
from bot.domain.chat import ModelRequest
from bot.domain.events import Conversation
from bot.domain.masking import Mask
from bot.domain.ports import Approver, Clock, Ids, Observer, Sight, Store, Transport
from bot.engine.batches import Batches
from bot.engine.engine import Engine
from bot.engine.toolset import Toolset
from bot.memory.history import Folding, History
from bot.memory.recorder import Recorder
from bot.memory.summaries import Summaries
from bot.models.failover import Failover
from bot.policy.budget import Limits
from bot.prompt.compose import system_prompt
from bot.prompt.older_rounds import told_today
from bot.runtime.observers import LogObserver, Observers
from bot.speaking.alarm import Alarm
from bot.speaking.carrier import Carrier
from bot.speaking.delivery import Delivery
from bot.speaking.outbox import Outbox
from bot.speaking.owner import Owner
from bot.speaking.queues import Queues
from bot.speaking.sends import Rows
from bot.wiring.models import build_rules, told_of_history
from config.settings import Settings, read_persona

SOMEWHERE = Conversation(10**10, "group", 10**10)  # any conversation, for how long its prompt is


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms of `bot/`, connected with each other."""

    dispatcher: Dispatcher
    turns: Turns
    history: History
    outbox: Outbox
    owner: Owner
    recoverer: Recoverer
    catchup: Catchup
    doubts: Doubts
    summaries: Summaries


def build_rooms(
    settings: Settings,
    *,
    model: Failover,
    transport: Transport,
    store: Store,
    ports: dict[type, object],
    toolset: Toolset,
    observers: Sequence[Observer],
    sight: Sight | None,
    mask: Mask,
    clock: Clock,
    ids: Ids,
) -> Rooms:
    """The rooms, each given what it needs."""
    who = persona(settings)
    summaries = Summaries(model=model, store=store, clock=clock)
    most = settings.bot_history_tokens
    history = build_history(
        who, store=store, model=model, toolset=toolset, most=most, folding=summaries
    )
    perception = Perception(transport=transport, history=history, sight=sight)
    outbox, owner = build_outbox(
        settings, transport=transport, store=store, mask=mask, clock=clock, ids=ids
    )
    followers: list[Observer] = [LogObserver(), Alarm(owner, mask=mask), *observers]
    approvals = Approvals(owners=settings.bot_owners, outbox=outbox, history=history, clock=clock)
    turns = Turns(
        engine=build_engine(
            settings, model=model, toolset=toolset, store=store, observers=followers, clock=clock
        ),
        delivery=Delivery(outbox=outbox, history=history, clock=clock),
        perception=perception,
        history=history,
        store=store,
        clock=clock,
        ids=ids,
        persona=who,
        owners=settings.bot_owners,
        approvals=approvals,
        ports={**ports, Approver: approvals},
        limits=limits_of(settings),
    )
    dispatcher = Dispatcher(
        rules=build_rules(settings),
        turns=turns,
        perception=perception,
        history=history,
        store=store,
        outbox=outbox,
        owner=owner,
        approvals=approvals,
        clock=clock,
    )
    recoverer = Recoverer(
        store=store, dispatcher=dispatcher, turns=turns, outbox=outbox, toolset=toolset, clock=clock
    )
    catchup, doubts = build_lookouts(
        dispatcher, transport=transport, outbox=outbox, store=store, clock=clock
    )
    return Rooms(dispatcher, turns, history, outbox, owner, recoverer, catchup, doubts, summaries)


def build_lookouts(
    dispatcher: Dispatcher, *, transport: Transport, outbox: Outbox, store: Store, clock: Clock
) -> tuple[Catchup, Doubts]:
    """Who reads histories: for what was missed, and for what became of our own words."""
    catchup = Catchup(
        transport=transport, dispatcher=dispatcher, outbox=outbox, store=store, clock=clock
    )
    return catchup, Doubts(transport=transport, outbox=outbox, store=store, clock=clock)


def build_engine(
    settings: Settings,
    *,
    model: Failover,
    toolset: Toolset,
    store: Store,
    observers: Sequence[Observer],
    clock: Clock,
) -> Engine:
    """What runs the runs. What they do is written down; a call that may change something waits for
    that.
    """
    return Engine(
        model=model,
        toolset=toolset,
        clock=clock,
        observer=Observers([Recorder(store=store, clock=clock), *observers]),
        batches=Batches(toolset.calls, max_calls=settings.tools_max_calls, recorded=store.commit),
        max_steps=settings.bot_max_steps,
    )


def build_history(
    who: Persona,
    *,
    store: Store,
    model: Failover,
    toolset: Toolset,
    most: int,
    folding: Folding | None = None,
) -> History:
    """The memory, with as much room as the model leaves beside the system prompt and the tools."""
    system = system_prompt(who.prompt, name=who.name, conversation=SOMEWHERE)
    around = ModelRequest((system,), toolset.all_definitions())
    return History(
        store=store,
        room=told_of_history(model, around, most=most),
        told=partial(told_today, who.names),
        folding=folding,
    )


def build_outbox(
    settings: Settings, *, transport: Transport, store: Store, mask: Mask, clock: Clock, ids: Ids
) -> tuple[Outbox, Owner]:
    """Where everything is said, and who tells the owners what only they can mend: that what a turn
    said got lost, too.
    """
    rows = Rows(store=store, clock=clock, ids=ids)
    carrier = Carrier(
        transport=transport, rows=rows, clock=clock, ids=ids, rate=settings.bot_send_rate
    )
    queues = Queues(rows=rows, carrier=carrier)
    owner = Owner(owners=settings.bot_owners, queues=queues, clock=clock, mask=mask)
    return Outbox(rows=rows, carrier=carrier, queues=queues, tell=owner.tell_of_send), owner


def limits_of(settings: Settings) -> Limits:
    """What one question may take."""
    return Limits(settings.bot_run_requests, settings.bot_run_tokens, settings.bot_run_sends)


def persona(settings: Settings) -> Persona:
    """Who the bot is. Raises ConfigError for a file that cannot be used."""
    return Persona(read_persona(settings), settings.bot_name, settings.bot_aliases)
