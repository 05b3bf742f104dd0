"""The way of a message and the turn at its end, put together in the order in which their parts need
each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.conversation.approval.approvals import Approvals
from bot.conversation.approval.deciders import Deciders
from bot.conversation.approval.owners_word import OwnersWord
from bot.conversation.approval.requests import Requests
from bot.conversation.context.perception import Perception
from bot.conversation.context.telling import Telling
from bot.conversation.dispatcher import Dispatcher
from bot.conversation.intake.ages import Ages
from bot.conversation.intake.door import Door
from bot.conversation.intake.hearing import Hearing
from bot.conversation.intake.hush import Hush
from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.places import Arrive, Places
from bot.conversation.intake.pokes import Pokes
from bot.conversation.intake.restraint import Restraint
from bot.conversation.intake.robots import Robots
from bot.conversation.intake.seen import SeenMessages
from bot.conversation.intake.verdicts import Verdicts
from bot.conversation.interruptions.expiry import Expiry
from bot.conversation.interruptions.goings_on import GoingsOn
from bot.conversation.interruptions.recalls import Recalls
from bot.conversation.interruptions.steering import Steering
from bot.conversation.interruptions.stopping import Stopping
from bot.conversation.queue.gathering import Gathering
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.put_off import PutOff
from bot.conversation.queue.questions import Questions
from bot.conversation.queue.quotes import Quotes
from bot.conversation.queue.turnstile import Turnstile
from bot.conversation.recovery.greetings import Greetings
from bot.conversation.recovery.held import HeldLanes
from bot.conversation.recovery.late import Late
from bot.conversation.tasks import Work
from bot.conversation.turns.closing import Closing
from bot.conversation.turns.ledger import Ledger
from bot.conversation.turns.live import LiveTurns
from bot.conversation.turns.preparation import Preparation
from bot.conversation.turns.suspensions import Suspensions
from bot.conversation.turns.thrift import NO_LIMIT, Rungs, Thrift
from bot.conversation.turns.turn import Turns
from bot.conversation.way import CommandSink, LaneWay, MessageWay
from bot.domain.ports import Clock, Ids, Store
from bot.domain.words import Words
from bot.engine.engine import Engine
from bot.memory.history import History
from bot.memory.personas import Personas
from bot.memory.wishes import Wishes
from bot.policy.wake import Local, Rules, alike
from bot.speaking.delivery import Delivery, Manner
from bot.speaking.gestures import Gestures
from bot.speaking.outbox import Outbox
from bot.speaking.owner import Owner
from bot.speaking.postbox import Postbox


@dataclass(frozen=True, slots=True)
class Ground:
    """The parts that nearly all others need."""

    lanes: Lanes[Work]
    ages: Ages
    perception: Perception
    history: History
    store: Store
    outbox: Outbox
    gestures: Gestures
    live: LiveTurns
    telling: Telling
    wishes: Wishes
    clock: Clock
    local: Local = alike
    words: Words | None = None
    rungs: Rungs = NO_LIMIT

    @property
    def postbox(self) -> Postbox:
        """Where lines of the service are put."""
        return Postbox(outbox=self.outbox, history=self.history, clock=self.clock)


@dataclass(frozen=True, slots=True)
class Answering:
    """A turn, and what it may wait for."""

    turns: Turns
    preparation: Preparation
    suspensions: Suspensions
    ledger: Ledger
    approvals: Approvals
    requests: Requests
    word: OwnersWord


@dataclass(frozen=True, slots=True)
class Asking:
    """A message, until it has its place in a lane."""

    seen: SeenMessages
    mutes: Mutes
    robots: Robots
    places: Places
    turnstile: Turnstile
    hearing: Hearing
    verdicts: Verdicts
    questions: Questions
    gathering: Gathering
    put_off: PutOff


@dataclass(frozen=True, slots=True)
class Stages:
    """The whole way, and those who send something on it."""

    dispatcher: Dispatcher
    way: MessageWay
    lane: LaneWay
    goings_on: GoingsOn
    door: Door
    late: Late
    held: HeldLanes
    expiry: Expiry


def build_answering(
    on: Ground,
    *,
    engine: Engine,
    personas: Personas,
    deciders: Deciders,
    owners: frozenset[int],
    ports: Mapping[type, object],
    thrift: Thrift,
    ids: Ids,
    paced: bool = False,
) -> Answering:
    """Turns, with approvals on both sides of them; `paced` ones write as people do."""
    history, store, clock, postbox = on.history, on.store, on.clock, on.postbox
    manner = Manner(paced=paced, name=lambda where: personas.of(where).name)
    delivery = Delivery(outbox=on.outbox, history=history, clock=clock, manner=manner)
    requests, ledger = Requests(runs=on.lanes, clock=clock), Ledger(store, history, clock)
    approvals = Approvals(deciders=deciders, requests=requests, postbox=postbox, clock=clock)
    suspensions = Suspensions(store=store, approvals=approvals, requests=requests, ledger=ledger)
    preparation = Preparation(
        perception=on.perception,
        telling=on.telling,
        delivery=delivery,
        personas=personas,
        owners=owners,
        ports=ports,
        thrift=thrift,
        ids=ids,
    )
    turns = Turns(
        engine=engine,
        preparation=preparation,
        closing=Closing(
            delivery=delivery, history=history, approvals=approvals, store=store, ledger=ledger
        ),
        suspensions=suspensions,
        history=history,
        ledger=ledger,
        live=on.live,
        gestures=on.gestures,
    )
    word = OwnersWord(
        deciders=deciders,
        requests=requests,
        runs=on.lanes,
        postbox=postbox,
        history=history,
        ages=on.ages,
        clock=clock,
    )
    return Answering(turns, preparation, suspensions, ledger, approvals, requests, word)


def build_verdicts(
    on: Ground,
    mutes: Mutes,
    places: Places,
    robots: Robots,
    *,
    rules: Rules,
    owner: Owner,
    ids: Ids,
) -> Verdicts:
    """Who says what a message is to the bot."""
    restraint = Restraint(
        rules=rules,
        ages=on.ages,
        mutes=mutes,
        hush=Hush(rules=rules, local=on.local, wishes=on.wishes, clock=on.clock),
        outbox=on.outbox,
        owner=owner,
        clock=on.clock,
        words=on.words,
    )
    return Verdicts(
        rules=rules,
        history=on.history,
        restraint=restraint,
        accounts=places.accounts,
        robots=robots,
        clock=on.clock,
        ids=ids,
        local=on.local,
    )


def build_asking(
    on: Ground,
    *,
    ledger: Ledger,
    rules: Rules,
    arrive: Arrive,
    owner: Owner,
    ids: Ids,
    debounce: float = 0.0,
) -> Asking:
    """Questions, and where they wait; `arrive` is told of places that are to be caught up with."""
    seen, mutes = SeenMessages(clock=on.clock), Mutes(clock=on.clock)
    robots, places = Robots(), Places(arrive=arrive, clock=on.clock)
    hearing = Hearing(store=on.store, history=on.history, places=places)
    verdicts = build_verdicts(on, mutes, places, robots, rules=rules, owner=owner, ids=ids)
    turnstile = Turnstile(rules, seen, on.rungs, on.postbox, on.gestures, on.clock)
    questions = Questions(
        lanes=on.lanes,
        seen=seen,
        ages=on.ages,
        places=places,
        turnstile=turnstile,
        hearing=hearing,
        ledger=ledger,
        clock=on.clock,
    )
    gathering = Gathering(
        lanes=on.lanes, questions=questions, hearing=hearing, clock=on.clock, debounce=debounce
    )
    put_off = PutOff(
        verdicts=verdicts,
        gathering=gathering,
        questions=questions,
        lanes=on.lanes,
        clock=on.clock,
    )
    kept = seen, mutes, robots, places, turnstile, hearing
    return Asking(*kept, verdicts, questions, gathering, put_off)


def build_stages(
    on: Ground,
    asking: Asking,
    answering: Answering,
    commands: CommandSink,
    *,
    rules: Rules,
    owner: Owner,
    steers: bool,
) -> Stages:
    """The way from a question to its answer, and who sends messages on it."""
    door = Door(seen=asking.seen, ages=on.ages)
    goings_on = GoingsOn(
        live=on.live,
        turns=answering.turns,
        suspensions=answering.suspensions,
        lanes=on.lanes,
        questions=asking.questions,
        outbox=on.outbox,
    )
    way = build_way(on, asking, answering, door, goings_on, commands, rules=rules, steers=steers)
    dispatcher = build_dispatcher(on, asking, answering, way, owner=owner)
    late = Late(
        seen=asking.seen,
        ages=on.ages,
        places=asking.places,
        way=way,
        put_off=asking.put_off,
        history=on.history,
        clock=on.clock,
    )
    held = HeldLanes(
        lanes=on.lanes, seen=asking.seen, put_off=asking.put_off, questions=asking.questions
    )
    lane = build_lane_way(on, asking, answering)
    expiry = Expiry(
        suspensions=answering.suspensions,
        approvals=answering.approvals,
        lanes=on.lanes,
        clock=on.clock,
    )
    return Stages(dispatcher, way, lane, goings_on, door, late, held, expiry)


def build_way(
    on: Ground,
    asking: Asking,
    answering: Answering,
    door: Door,
    goings_on: GoingsOn,
    commands: CommandSink,
    *,
    rules: Rules,
    steers: bool,
) -> MessageWay:
    """The way up to a place in a lane."""
    return MessageWay(
        door=door,
        word=answering.word,
        stopping=Stopping(
            goings_on=goings_on,
            hearing=asking.hearing,
            history=on.history,
            gestures=on.gestures,
            rules=rules,
            local=on.local,
        ),
        commands=commands,
        verdicts=asking.verdicts,
        steering=Steering(
            live=on.live,
            hearing=asking.hearing,
            gathering=asking.gathering,
            history=on.history,
            telling=on.telling,
            stops=asking.verdicts.stops,
            owners=rules.owners,
            is_on=steers,
        ),
        hearing=asking.hearing,
        gathering=asking.gathering,
    )


def build_lane_way(on: Ground, asking: Asking, answering: Answering) -> LaneWay:
    """The way from there on."""
    quotes = Quotes(
        perception=on.perception,
        put_off=asking.put_off,
        questions=asking.questions,
        hearing=asking.hearing,
        lanes=on.lanes,
    )
    return LaneWay(
        word=answering.word,
        verdicts=asking.verdicts,
        turnstile=asking.turnstile,
        hearing=asking.hearing,
        questions=asking.questions,
        quotes=quotes,
        turns=answering.turns,
        outbox=on.outbox,
    )


def build_dispatcher(
    on: Ground, asking: Asking, answering: Answering, way: MessageWay, *, owner: Owner
) -> Dispatcher:
    """Who hands every event to whom it concerns."""
    greetings = Greetings(
        mutes=asking.mutes,
        owner=owner,
        outbox=on.outbox,
        gestures=on.gestures,
        places=asking.places,
        put_off=asking.put_off,
    )
    return Dispatcher(
        way=way,
        recalls=build_recalls(on, asking, answering),
        mutes=asking.mutes,
        places=asking.places,
        greetings=greetings,
        pokes=Pokes(asking.verdicts, on.postbox, on.clock),
        history=on.history,
        outbox=on.outbox,
    )


def build_recalls(on: Ground, asking: Asking, answering: Answering) -> Recalls:
    """Who takes messages back."""
    return Recalls(
        seen=asking.seen,
        hearing=asking.hearing,
        put_off=asking.put_off,
        questions=asking.questions,
        suspensions=answering.suspensions,
        turns=answering.turns,
        live=on.live,
        lanes=on.lanes,
    )
