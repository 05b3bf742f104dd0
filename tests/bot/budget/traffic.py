"""A random day: people ask, and models are asked for it in every way that production has, by its own parts. What each
took is known from what the models said, and from nowhere else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from bot.budget.meter import CountedSpeech, Meter
from bot.core.conversation import Conversation
from bot.core.journal import UsageAdded
from bot.core.ports import Store
from bot.core.task_context import current_run, early_payer
from bot.memory.recorder import Recorder
from frostagent.engine.budget import Budget, BudgetShare
from frostagent.models.failover import Failover
from frostagent.models.prices import Price
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import MediaError, ModelError, ModelRejected, ModelStalled, ModelTransport
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    Dictation,
    FinishReason,
    ModelRequest,
    Usage,
    UserMessage,
)
from frostagent.types.runs import StepFinished
from tests.bot.budget.till import ELSEWHERE, limited, opened, unlimited
from tests.fakes import GROUP, PRIVATE, CountingIds, ManualClock

PRICE = Price(prompt=1000.0, cached=100.0, completion=7000.0)
REQUEST = ModelRequest((UserMessage("who?"), AssistantMessage("me"), UserMessage("and how are you?")))
WAYS = "answers", "fails", "takes and fails", "stalls", "is filtered", "is broken off", "crashes"


@dataclass(frozen=True, slots=True)
class Asking:
    """A turn, and who pays for it: nobody but its group for 0."""

    turn_id: str
    where: Conversation
    who: int


@dataclass
class Traffic:
    """`taken` is when, by whom, and how much, None of what has no price; `ways` are those in which that was."""

    chance: random.Random
    clock: ManualClock
    reserves: bool
    turns: list[Asking] = field(default_factory=list)
    taken: list[tuple[float, Asking, int, float | None]] = field(default_factory=list)
    ways: set[str] = field(default_factory=set)

    def begin(self, store: Store) -> None:
        """A process begins."""
        self.store = store
        ids = CountingIds(jitter=self.chance.random())
        spending = limited() if self.reserves else unlimited()
        self.meter = Meter(self.store, spending=spending, clock=self.clock, ids=ids)
        self.recorder = Recorder(store=self.store, clock=self.clock)

    async def go_on(self) -> None:
        """Something happens, and some time passes."""
        deed = self.chance.choice((self.ask, self.ask, self.speak, self.ask_inside, self.end_here))
        self.ways.add(deed.__name__)
        await deed()
        self.clock.time += self.chance.choice((0, 1, 60, 4000))

    async def ask(self) -> None:
        """A turn takes a step or two, one that went on before, too."""
        asking = self.chance.choice(self.turns) if self.turns and self.chance.random() < 0.3 else self.open()
        budget = Budget()
        for step in range(1, self.chance.randint(2, 3)):
            share = budget.share()
            share.begin()
            share.step = step
            with paid_by(asking):
                completion = await self.request(asking, share)
                if completion is not None:
                    event = StepFinished(run_id=asking.turn_id, step=step, completion=completion, seconds=1.0)
                    self.recorder.notice(event)

    async def ask_inside(self) -> None:
        """A subagent is asked."""
        asking = self.open()
        with paid_by(asking):
            if completion := await self.request(asking, inside()):
                run = f"{asking.turn_id}/1/c1"
                event = StepFinished(run_id=run, parent=asking.turn_id, step=1, completion=completion, seconds=1.0)
                self.recorder.notice(event)

    async def speak(self) -> None:
        """A voice is heard before its turn is open, which it may never be."""
        asking = self.turn()
        usage, price = self.usage(), self.chance.choice((PRICE, None))
        way = self.chance.choice(("is told", "is not told", "fails", "fails and takes"))
        self.ways.add(way)

        async def dictate(_: bytes) -> Dictation:
            self.clock.time += 1
            if way.startswith("fails"):
                error = MediaError("no words")
                error.took = None if way == "fails" else Usage()
                raise error
            return Dictation("hello", usage if way == "is told" else None)

        speech = CountedSpeech(dictate, name="speech", price=price, meter=self.meter, clock=self.clock)
        with paid_by(asking, early=True), suppress(MediaError):
            await speech(b"RIFF", 3.0)
        if way != "fails":
            self.take(asking, usage if way == "is told" else Usage(30), price)
        if self.chance.random() < 0.5:
            self.open(asking)

    async def end_here(self) -> None:
        """The process ends during a request: what was reserved for it is all that anybody knows."""
        asking, usage = self.open(), self.usage()
        share = inside()
        share.step = self.chance.randint(0, 2)
        with paid_by(asking):
            if await self.meter.reserve("m", lambda: replace(usage, cost=PRICE.of(usage)), share):
                self.take(asking, usage, PRICE)

    async def request(self, asking: Asking, share: BudgetShare) -> Completion | None:
        """One request, by one of two models, of which one has no price."""
        upstreams = [Moody(self, asking, price).upstream for price in (PRICE, None)]
        self.chance.shuffle(upstreams)
        ids = CountingIds()
        failover = Failover(upstreams, clock=self.clock, ids=ids, meter=self.meter, attempts=1)
        try:
            return await failover.complete(replace(REQUEST, allowance=share))
        except (ModelError, LookupError):
            return None
        except asyncio.CancelledError:
            if share.step and share.lost is not None:  # of a step of a turn the turn writes that down, as `Inbox` does
                model, usage = share.lost
                at = self.clock.now()
                self.store.put(UsageAdded(turn_id=asking.turn_id, model=model, usage=usage, at=at, step=share.step))
            return None

    def turn(self) -> Asking:
        """Somebody is about to ask somewhere, or nobody is and it speaks up by itself."""
        where, who = self.chance.choice((GROUP, ELSEWHERE, PRIVATE)), self.chance.choice((0, 5, 777))
        return Asking(f"t{self.chance.randrange(10**9)}", where, who)

    def open(self, asking: Asking | None = None) -> Asking:
        """The turn is open."""
        asking = asking or self.turn()
        turn = opened(asking.turn_id, asking.where, asking.who or 777)
        self.store.put(replace(turn, uncalled=not asking.who))
        self.turns.append(asking)
        return asking

    def usage(self) -> Usage:
        return Usage(1 + self.chance.randrange(500), 1 + self.chance.randrange(90))

    def take(self, asking: Asking, usage: Usage, price: Price | None) -> None:
        cost = None if price is None else price.of(usage)
        self.taken.append((self.clock.now(), asking, usage.prompt + usage.completion, cost))


@dataclass
class Moody:
    """A model of a random temper, which says what it took."""

    traffic: Traffic
    asking: Asking
    price: Price | None
    name: str = "moody"

    def __post_init__(self) -> None:
        self.upstream = Upstream(self, price=self.price)

    async def complete(self, request: ModelRequest) -> Completion:
        traffic, usage = self.traffic, self.traffic.usage()
        traffic.ways.add(way := traffic.chance.choice(WAYS))
        traffic.clock.time += 1
        if way == "is broken off":
            traffic.take(self.asking, self.upstream.reading(request), self.price)
            raise asyncio.CancelledError
        if way == "crashes":
            raise LookupError
        if way == "fails":
            raise ModelTransport("nobody there")
        traffic.take(self.asking, usage, self.price)
        if way in {"takes and fails", "stalls"}:
            error = (ModelStalled if way == "stalls" else ModelRejected)("no answer in the end")
            error.took = usage
            raise error
        finish = FinishReason.CONTENT_FILTER if way == "is filtered" else FinishReason.STOP
        return Completion(AssistantMessage("fine"), finish, usage)


def inside() -> BudgetShare:
    """The share of a request that is not the first of its question."""
    budget = Budget()
    budget.take(requests=1)
    share = budget.share()
    share.begin()
    return share


@contextmanager
def paid_by(asking: Asking, *, early: bool = False) -> Iterator[None]:
    run, payer = current_run.set(asking.turn_id), early_payer.set((asking.where, asking.who) if early else None)
    yield
    current_run.reset(run)
    early_payer.reset(payer)
