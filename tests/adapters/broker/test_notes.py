"""Workers hear what others tell, in order, nothing of their own, and that they may have missed something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractConnection, AbstractExchange

from adapters.broker import link as link_module
from adapters.broker import notes as module
from adapters.broker.link import BrokerLink
from adapters.broker.notes import ENOUGH, KEPT, NoteExchange
from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.payloads import VERSION, AccountPresence, Presence, unpack
from adapters.broker.topology import NOTES
from bot.core.erasure import SubjectErased
from bot.core.other_bots import AlarmRaised, Announcement, RowChanged
from bot.outbox.owner_alerts import QUIET, Owner
from frostagent.clock import SystemClock
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import PATIENCE, Desk, Sockets, gateway_of, worker_of
from tests.bot.outbox.post import build_outbox
from tests.fakes import BOT, ManualClock, RecordingStore, RecordingTransport, until
from tests.owners import read

FULL = AlarmRaised("disk", "it is full")


def row(number: int) -> RowChanged:
    return RowChanged("limits", str(number))


async def test_the_others_hear_it_in_order_and_who_told_it_does_not(broker: str) -> None:
    desks = [Desk() for _ in range(PARTITIONS)]
    shares = [ClusterPartition(number, PARTITIONS) for number in range(PARTITIONS)]
    async with (
        worker_of(broker, desks[0], share=shares[0]) as first,
        worker_of(broker, desks[1], share=shares[1]) as second,
        worker_of(broker, desks[2], share=shares[2]),
    ):
        for number in range(20):
            first.notices.tell(row(number))
        await until(lambda: all(len(desk.notes) == 21 for desk in desks[1:]), seconds=PATIENCE)
        second.notices.tell(SubjectErased(user=7))
        await until(lambda: len(desks[2].notes) == 22, seconds=PATIENCE)
        await until(lambda: len(desks[0].notes) == 2, seconds=PATIENCE)
    missed, told = [None], [row(number) for number in range(20)]
    assert [desk.notes for desk in desks] == [
        [*missed, SubjectErased(user=7)],
        [*missed, *told],
        [*missed, *told, SubjectErased(user=7)],
    ]


async def test_what_owners_are_to_hear_is_for_the_first_partition_that_has_an_account(broker: str) -> None:
    desks = [Desk() for _ in range(PARTITIONS)]
    shares = [ClusterPartition(number, PARTITIONS) for number in range(PARTITIONS)]
    sockets = Sockets(Presence("", tuple(AccountPresence(account) for account in (10001, 10002))))
    crier, other = sorted(partition_of(there.self_id, PARTITIONS) for there in sockets.here.accounts)
    (silent,) = {*range(PARTITIONS)} - {crier, other}
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(worker_of(broker, desk, share=share))
            for desk, share in zip(desks, shares, strict=True)
        ]
        assert not workers[silent].notices.can_alarm
        await stack.enter_async_context(gateway_of(broker, sockets))
        await until(lambda: all(worker.notices.can_alarm for worker in workers), seconds=PATIENCE)
        workers[silent].notices.tell(FULL)
        await until(lambda: FULL in desks[crier].notes, seconds=PATIENCE)
        workers[crier].notices.tell(AlarmRaised("disk"))  # it is said
        await until(lambda: all(len(desks[number].notes) == 2 for number in (silent, other)), seconds=PATIENCE)
    assert [desks[number].notes[-1] for number in (crier, silent, other)] == [FULL, *[AlarmRaised("disk")] * 2]


async def test_an_alarm_for_a_bot_that_is_not_there_reaches_the_one_that_comes_after_it(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.1)
    crier, other = sorted(partition_of(account, PARTITIONS) for account in (10001, 10002))
    (silent,) = {*range(PARTITIONS)} - {crier, other}
    desks = [Desk() for _ in range(PARTITIONS)]
    sockets = Sockets(Presence("", tuple(AccountPresence(account) for account in (10001, 10002))))
    async with (
        gateway_of(broker, sockets),
        worker_of(broker, desks[silent], share=ClusterPartition(silent, PARTITIONS)) as teller,
        worker_of(broker, desks[other], share=ClusterPartition(other, PARTITIONS)) as bystander,
    ):
        await until(lambda: teller.notices.can_alarm and bystander.notices.can_alarm, seconds=PATIENCE)
        teller.notices.tell(FULL)
        await until(lambda: not teller.notices.waiting, seconds=PATIENCE)
        async with worker_of(broker, desks[crier], share=ClusterPartition(crier, PARTITIONS)) as successor:
            await until(lambda: FULL in desks[crier].notes, seconds=PATIENCE)
            successor.notices.tell(AlarmRaised("disk"))
            await until(lambda: AlarmRaised("disk") in desks[silent].notes, seconds=PATIENCE)
            await until(lambda: AlarmRaised("disk") in desks[other].notes, seconds=PATIENCE)
        assert teller.notices.unsaid == ()
    assert desks[other].notes == [None, AlarmRaised("disk")]


async def test_an_alarm_is_told_again_until_somebody_has_said_it(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.1)
    desk = Desk()
    async with worker_of(broker, Desk()) as teller, worker_of(broker, desk, share=ClusterPartition(0, PARTITIONS)):
        teller.notices.tell(AlarmRaised("model", "it is gone"))
        teller.notices.tell(FULL)
        teller.notices.tell(AlarmRaised("", "how the day was"))
        await until(lambda: desk.notes.count(FULL) > 2, seconds=PATIENCE)
        teller.notices.tell(AlarmRaised("model"))  # with an account of its own by now
        assert teller.notices.unsaid == (FULL,)
        await until(lambda: AlarmRaised("model") in desk.notes, seconds=PATIENCE)
        so_far = len(desk.notes)
        await until(lambda: len(desk.notes) > so_far + 2, seconds=PATIENCE)
    assert {*desk.notes[so_far:]} == {FULL}
    assert desk.notes.count(AlarmRaised("", "how the day was")) == 1


async def test_where_nobody_has_an_account_an_alarm_is_kept_by_all_that_hear_it(broker: str) -> None:
    desks = [Desk() for _ in range(PARTITIONS)]
    shares = [ClusterPartition(number, PARTITIONS) for number in range(PARTITIONS)]
    async with (
        worker_of(broker, desks[0], share=shares[0]) as first,
        worker_of(broker, desks[1], share=shares[1]),
        worker_of(broker, desks[2], share=shares[2]),
    ):
        first.notices.tell(FULL)
        await until(lambda: all(FULL in desk.notes for desk in desks[1:]), seconds=PATIENCE)
    assert [{*desk.notes} for desk in desks] == [{None}, *[{None, FULL}] * 2]


async def test_what_cannot_be_read_is_passed_over(broker: str) -> None:
    desk, other = Desk(), ClusterPartition(0, PARTITIONS)
    async with worker_of(broker, desk), worker_of(broker, Desk(), share=other) as teller:
        async with await aio_pika.connect(broker) as connection:
            notes = await (await connection.channel()).get_exchange(NOTES)
            for headers in ({}, {"version": 99}, {"version": 1}):
                await notes.publish(Message(b'{"type": "colour"}', headers={**headers}), "")
        teller.notices.tell(row(1))
        await until(lambda: desk.notes[-1] == row(1), seconds=PATIENCE)
    assert desk.notes == [None, row(1)]


def test_what_waits_for_a_broker_has_an_end() -> None:
    notices, told = NoteExchange("me"), list[Announcement]()
    for number in range(KEPT + 5):
        notices.tell(row(number))
    told.extend(notices.waiting)
    assert (told[0], len(told)) == (row(5), KEPT)


async def test_a_note_that_is_never_confirmed_ends_the_connection_and_is_kept(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "CONFIRMED_WITHIN", 0.05)
    monkeypatch.setattr(link_module, "LOOK", 0.05)
    told, sessions = list[str](), list[AbstractConnection]()

    class Silent:
        async def publish(self, *_: object, **__: object) -> None:
            await asyncio.Event().wait()

    notices = NoteExchange("a")
    notices.tell(row(1))
    link = BrokerLink(broker, clock=SystemClock(), trouble=read(told))

    async def session(connection: AbstractConnection) -> None:
        sessions.append(connection)
        await notices.pass_on(cast("AbstractExchange", Silent()), link)

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(link.keep(session))
        await until(lambda: len(sessions) == 2, seconds=PATIENCE)
        keeping.cancel()
    assert told[0] == "The broker cannot be reached (no confirmation within 0.05 s). What is to be sent over it waits."
    assert notices.waiting == (row(1),)


@dataclass
class Crier:
    """The exchange of a teller, and at its other end a bot that tells owners; its own words reach nobody."""

    owner: Owner
    heard: int = 0

    async def publish(self, message: Message, *_: object, **__: object) -> None:
        self.heard += 1
        self.owner.hear(unpack(Announcement, message.body, VERSION))


@asynccontextmanager
async def unheard(notices: NoteExchange, clock: ManualClock) -> AsyncIterator[tuple[Crier, RecordingTransport]]:
    transport = RecordingTransport()
    outbox, sender = build_outbox(transport, RecordingStore(), clock)
    crier = Crier(Owner(owners=frozenset({8}), sender=sender, clock=clock))
    link = BrokerLink("amqp://127.0.0.1:1/", clock=SystemClock(), trouble=lambda _: None)
    async with outbox.open(), asyncio.TaskGroup() as group:
        crier.owner.connected(BOT)
        telling = group.create_task(notices.pass_on(cast("AbstractExchange", crier), link))
        insisting = group.create_task(notices.insist(clock))
        yield crier, transport
        insisting.cancel()
        telling.cancel()


async def test_an_alarm_is_said_once_by_a_bot_of_a_version_whose_word_for_that_is_not_understood() -> None:
    notices, clock = NoteExchange("teller"), ManualClock()
    notices.can_alarm, begun = True, clock.time
    async with unheard(notices, clock) as (crier, transport):
        notices.tell(FULL)
        await until(lambda: clock.time > begun + 3 * QUIET, seconds=PATIENCE)
        assert (transport.texts, notices.unsaid) == (["it is full"], ())
        assert crier.heard > 2
        notices.tell(FULL)  # as its teller does while it lasts
        heard = crier.heard
        await until(lambda: crier.heard > heard + 2, seconds=PATIENCE)
        await until(lambda: not notices.unsaid, seconds=PATIENCE)
        assert transport.texts == ["it is full"] * 2


async def test_an_alarm_is_told_for_as_long_as_nobody_can_say_it() -> None:
    notices, clock = NoteExchange("teller"), ManualClock()
    begun = clock.time
    async with unheard(notices, clock) as (crier, _):
        notices.tell(FULL)
        await until(lambda: clock.time > begun + 2 * ENOUGH, seconds=PATIENCE)
        notices.can_alarm, heard = True, crier.heard
        await until(lambda: crier.heard > heard + 2, seconds=PATIENCE)
        assert notices.unsaid == (FULL,)
