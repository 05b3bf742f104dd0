"""A house with the whole way of a message at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.commands.commands import Commands
from bot.conversation.approval.join_request_store import JoinRequestStore
from bot.conversation.approval.join_requests import JoinRequests
from bot.conversation.intake.active_conversations import Arrival
from bot.conversation.recovery.catchup import ReconnectQueue
from bot.conversation.recovery.deafness import DeafnessWatch
from bot.domain.events import Event, MemberChange, MemberChanged, MessageRecalled, Muted
from bot.domain.journal import Judged, MessageObserved
from bot.policy.wake import Rules
from bot.speaking.postbox import Postbox
from bot.wiring.conversation import build_asking
from bot.wiring.stages import build_stages
from tests.bot.conversation.approval.server import RecordingServer
from tests.bot.conversation.turns.test_turn import House
from tests.fakes import BOT, GROUP, CountingIds, ScriptedModel, Step


class Hall(House):
    """`watched`: somebody catches up with places; else `arrived` is what he would have been told."""

    def __init__(
        self, model: ScriptedModel, rules: Rules | None = None, *, watched: bool = False, steers: bool = False
    ) -> None:
        super().__init__(model)
        self.arrived: list[Arrival] = []
        self.arrivals = ReconnectQueue(lanes=self.lanes, unconfirmed=self.outbox.unconfirmed, clock=self.clock)
        rules = rules or Rules(names=("小霜",))
        asking = build_asking(
            self.ground,
            turn_journal=self.ledger,
            rules=rules,
            arrive=self.arrivals.take if watched else self.arrived.append,
            owner=self.owner,
            ids=CountingIds(),
        )
        self.commands = Commands(
            (),
            postbox=Postbox(outbox=self.outbox, history=self.history, clock=self.clock),
            history=self.history,
            owners=rules.owners,
            hears=asking.verdicts.hears,
            lets=asking.rate_limiter.lets_type,
            commanders=asking.verdicts.quiet_hours.commanders,
            clock=self.clock,
        )
        self.server = RecordingServer()
        self.petitions = join_requests = JoinRequests(
            accept=lambda _: "ask",
            owners=rules.owners,
            admitting=self.server,
            request_store=JoinRequestStore(store=self.store, choices=self.store, clock=self.clock),
            postbox=self.ground.postbox,
            server_clock=self.ages,
            clock=self.clock,
        )
        ways = self.ground, asking, self.answering, self.commands
        self.deafness = DeafnessWatch(
            transport=self.transport, active_conversations=asking.places, owner=self.owner, clock=self.clock
        )
        stages = build_stages(
            *ways, join_requests=join_requests, rules=rules, owner=self.owner, deafness=self.deafness, steers=steers
        )
        self.asking = asking
        self.seen, self.places, self.rate_limiter = asking.seen, asking.places, asking.rate_limiter
        self.robots, self.put_off, self.questions = asking.robots, asking.put_off, asking.questions
        self.hearing = asking.hearing
        self.dispatcher, self.way, self.door = stages.dispatcher, stages.way, stages.door
        self.lane, self.live, self.active_work = stages.lane, self.ground.live, stages.active_work
        self.late, self.held, self.expiry = stages.late, stages.held, stages.expiry

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
