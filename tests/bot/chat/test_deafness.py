"""Servers that are connected and report nothing: found out by one history, and quiet groups left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import structs

from bot.chat.active_conversations import ActiveConversations, Arrival
from bot.chat.backfill import APART, DEAF, LAG, LONGEST, SHORTEST, DeafnessWatch
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import MessageReceived
from bot.outbox.owner_alerts import Owner
from frostagent.cancellation import background
from frostagent.types.errors import BotError
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, RecordingTransport, SteppedClock, said, until

OWNER = 8
HOURS = 3600.0


class Server(RecordingTransport):
    """Has a history of every group, empty unless it is given one; fails where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: list[BotError] = []

    async def get_history(self, conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
        self.histories.setdefault(conversation, ())
        history = await super().get_history(conversation, count=count)
        if self.fails:
            raise self.fails.pop(0)
        return history


class Watching:
    """A watch between fakes; `arrived` is what was to be caught up with."""

    def __init__(self) -> None:
        self.clock, self.server = SteppedClock(), Server()
        self.arrived: list[Arrival] = []
        self.outbox, sender = build_outbox(self.server, RecordingStore(), self.clock)
        self.owner = Owner(owners=frozenset({OWNER}), sender=sender, clock=self.clock)
        self.owner.connected(BOT)
        self.places = ActiveConversations(arrive=self.arrived.append, clock=self.clock)
        self.watch = DeafnessWatch(
            transport=self.server, active_conversations=self.places, owner=self.owner, clock=self.clock
        )

    @property
    def asked(self) -> list[Conversation]:
        return self.server.histories_asked

    def message(self, where: Conversation = GROUP, *, user: int = 777, account: int = BOT) -> MessageReceived:
        message = said("热", where=where, at=False, user=user)
        return structs.replace(message, time=self.clock.now(), self_id=account)

    def hear(self, where: Conversation = GROUP) -> None:
        self.watch.hear(self.message(where, account=where.platform_id))

    async def chat(self, *places: Conversation, times: int = 12, every: float = 5.0) -> None:
        for _ in range(times):
            for where in places or (GROUP,):
                self.hear(where)
            await self.pass_time(every)

    def miss(self, *messages: MessageReceived, where: Conversation = GROUP) -> None:
        self.server.histories[where] = (*self.server.histories.get(where, ()), *messages)

    async def pass_time(self, seconds: float) -> None:
        """In small steps, so that everything is done in its time."""
        step = 5.0 if seconds <= HOURS else 60.0
        for _ in range(round(seconds / step)):
            await self.clock.advance(step)


@asynccontextmanager
async def watching() -> AsyncIterator[Watching]:
    there = Watching()
    async with asyncio.timeout(20), there.outbox.open(), background(there.watch.run()):
        yield there


async def test_messages_that_never_came_are_caught_up_with_and_the_owner_hears_once() -> None:
    async with watching() as there:
        await there.chat()
        there.miss(there.message(), there.message(user=BOT), there.message())
        await there.pass_time(SHORTEST - 10)
        assert there.asked == []
        await there.pass_time(10 + LAG)
        assert there.asked == [GROUP]
        assert [one.account for one in there.arrived] == [BOT]
        await there.pass_time(12 * HOURS)
        await until(lambda: there.server.texts)
        assert there.server.texts == [DEAF.zh.format(account=BOT, group=GROUP.session_id, count=2)]
        assert (len(there.asked), len(there.arrived)) == (1, 1)


async def test_the_owner_hears_of_each_account() -> None:
    others = Conversation(20002, "group", 5)
    async with watching() as there:
        await there.chat(GROUP, others)
        for where in (GROUP, others):
            there.miss(there.message(where), where=where)
        await there.pass_time(SHORTEST + APART + LAG)
        await until(lambda: len(there.server.texts) == 2)
        assert sorted(there.server.texts) == sorted(
            DEAF.zh.format(account=where.platform_id, group=where.session_id, count=1) for where in (GROUP, others)
        )


async def test_what_was_missed_until_events_come_again_is_caught_up_with_then() -> None:
    async with watching() as there:
        await there.chat()
        there.miss(there.message())
        await there.pass_time(SHORTEST + LAG)
        there.hear()
        there.hear()
        assert len(there.arrived) == 2
        await there.chat()  # the server's silence was no pause of the group's
        there.miss(there.message())
        await there.pass_time(SHORTEST + LAG)
        assert (len(there.asked), len(there.arrived)) == (2, 3)


async def test_a_group_that_goes_to_sleep_costs_one_call_and_its_silence_is_usual_from_then_on() -> None:
    async with watching() as there:
        there.miss(there.message())
        await there.chat(times=40)
        await there.pass_time(9 * HOURS)
        assert there.asked == [GROUP]
        await there.chat()
        await there.pass_time(9 * HOURS)
        assert (there.asked, there.arrived, there.server.texts) == ([GROUP], [], [])


async def test_many_groups_that_go_to_sleep_at_once_are_asked_about_one_by_one() -> None:
    groups = [Conversation(BOT, "group", number) for number in range(1, 31)]
    async with watching() as there:
        await there.chat(*groups)
        begin = there.clock.time
        await there.pass_time(10 * APART)
        assert len(there.asked) <= (there.clock.time - begin) / APART + 1
        await there.pass_time(9 * HOURS)
        assert sorted(there.asked, key=lambda place: place.session_id) == groups


async def test_only_lively_groups_are_watched() -> None:
    unwatched = {
        "few messages": (GROUP, 10, 5.0),
        "long pauses": (GROUP, 12, LONGEST / 3 + 5),
        "private": (PRIVATE, 40, 5.0),
    }
    asked = {}
    for name, (where, times, every) in unwatched.items():
        async with watching() as there:
            await there.chat(where, times=times, every=every)
            there.miss(there.message(where), where=where)
            await there.pass_time(2 * HOURS)
            asked[name] = there.asked
    assert asked == {name: [] for name in unwatched}


async def test_a_slower_group_is_given_more_time() -> None:
    async with watching() as there:
        await there.chat(every=100)
        await there.pass_time(195)
        assert there.asked == []
        await there.pass_time(10)
        assert there.asked == [GROUP]


async def test_what_is_on_its_way_and_what_came_is_not_missed() -> None:
    async with watching() as there:
        for _ in range(12):
            there.hear()
            there.miss(there.message())  # of the same second
            await there.pass_time(5)
        await there.pass_time(SHORTEST)
        assert len(there.asked) == 1
        await there.chat(times=40)
        late = there.message()
        there.miss(late)
        await until_asked(there, 2)
        there.watch.hear(late)
        await there.pass_time(HOURS)
        assert (there.arrived, there.server.texts) == ([], [])


async def until_asked(there: Watching, times: int) -> None:
    while len(there.asked) < times:
        await there.clock.advance(1.0)


@each_case("error", [NotConnected("gone"), ActionUnanswered("late"), RuntimeError("a bug")])
async def test_a_history_that_cannot_be_had_now_is_left_alone(error: BotError) -> None:
    async with watching() as there:
        await there.chat()
        there.server.fails.append(error)
        there.miss(there.message())
        await there.pass_time(2 * HOURS)
        assert (len(there.asked), there.arrived) == (1, [])
        there.watch.connected(BOT)
        await there.chat(times=2)
        await there.pass_time(SHORTEST + APART)
        assert len(there.asked) == 2


async def test_a_server_without_histories_is_asked_once_a_connection() -> None:
    async with watching() as there:
        for _ in range(2):
            there.watch.connected(BOT)
            for _ in range(2):
                there.server.fails = [ActionRefused("get_group_msg_history", retcode=1404, wording="不支持的Api")]
                await there.chat(times=40)
                await there.pass_time(APART * 2)
        assert len(there.asked) == 2


async def test_a_connection_that_is_deaf_from_its_beginning_is_found_out_where_the_group_is_known() -> None:
    async with watching() as there:
        await there.chat()
        there.watch.connected(BOT)
        there.miss(there.message())
        await there.pass_time(APART + LAG)
        assert len(there.arrived) == 1
