"""A worker takes each event once its journal has it, and knows what became of its calls."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest
from aio_pika import Message

from adapters.broker import whereabouts
from adapters.broker import worker as module
from adapters.broker.payloads import Answer
from adapters.broker.topology import DEAD, EVENTS, queue_of
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from tests.adapters.broker.street import ACCOUNT, PATIENCE, Desk, Sockets, gateway_of, said, worker_of
from tests.fakes import until


async def test_events_that_no_journal_has_come_again_to_the_next_worker(broker: str) -> None:
    forgetful, careful = Desk(is_durable=False), Desk()
    async with gateway_of(broker, Sockets()) as gateway:
        async with worker_of(broker, forgetful):
            for number in range(20):
                await gateway.handle(said(number))
            await until(lambda: len(forgetful.numbers) == 20 and forgetful.promises, seconds=PATIENCE)
        async with worker_of(broker, careful):
            await until(lambda: len(careful.numbers) == 20 and careful.promises, seconds=PATIENCE)
            await gateway.handle(said(20))
            await until(lambda: careful.numbers[-1] == 20, seconds=PATIENCE)
    assert careful.numbers == [*range(20), 20]


async def test_events_that_a_journal_has_do_not_come_again(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Desk(is_durable=False), Desk()
    monkeypatch.setattr(module, "AGAIN", 0.0)
    async with gateway_of(broker, Sockets()) as gateway:
        async with worker_of(broker, first) as worker:
            await gateway.handle(said(1))
            await until(lambda: first.numbers == [1], seconds=PATIENCE)
            first.is_durable = True
            await gateway.handle(said(2))
            await until(lambda: first.numbers == [1, 2], seconds=PATIENCE)
            await until(lambda: worker.acknowledged == 2, seconds=PATIENCE)
        async with worker_of(broker, second):
            await gateway.handle(said(3))
            await until(lambda: 3 in second.numbers, seconds=PATIENCE)
    assert second.numbers == [3]


async def test_what_cannot_be_read_is_set_aside_and_told_and_holds_nobody_up(broker: str) -> None:
    desk, told = Desk(), list[str]()
    async with (
        gateway_of(broker, Sockets()) as gateway,
        worker_of(broker, desk, told=told),
        await aio_pika.connect(broker) as connection,
    ):
        channel = await connection.channel()
        events = await channel.get_exchange(EVENTS)
        for headers in ({"version": 1}, {"version": 99}):
            await events.publish(Message(b'{"type": "colour"}', headers={**headers}), queue_of(0))
        await gateway.handle(said(1))
        await until(lambda: desk.numbers == [1] and len(told) == 2, seconds=PATIENCE)
        dead = await channel.declare_queue(DEAD, passive=True)
        kept = [await dead.get(timeout=PATIENCE) for _ in range(2)]
        assert {message.body for message in kept} == {b'{"type": "colour"}'}
    assert all("frost.dead" in line for line in told)


async def test_a_call_brings_back_the_answer_that_belongs_to_it(broker: str) -> None:
    sockets = Sockets()
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        answers = await asyncio.gather(*(worker.call(ACCOUNT, f"a{number}", {"n": number}) for number in range(20)))
        assert answers == [Answer("answered", True, 0, {"message_id": 7})] * 20
    assert sorted(call.params["n"] for call in sockets.calls) == list(range(20))
    assert {call.epoch for call in sockets.calls} == {1}


async def test_accounts_come_anew_when_the_broker_is_back(broker: str) -> None:
    desk = Desk()
    async with gateway_of(broker, Sockets()), worker_of(broker, desk) as worker:
        await until(lambda: desk.came == [ACCOUNT], seconds=PATIENCE)
        channel = worker._calling
        assert channel is not None
        await channel.close()
        await until(lambda: desk.came == [ACCOUNT, ACCOUNT], seconds=PATIENCE)
        assert (await worker.call(ACCOUNT, "send_msg", {})).ok


async def test_a_call_to_nobody_did_nothing(broker: str) -> None:
    async with worker_of(broker, Desk()) as worker:
        with pytest.raises(NotConnected):
            await worker.call(ACCOUNT, "send_msg", {})


async def test_a_call_to_a_gateway_that_just_died_did_nothing(broker: str) -> None:
    async with worker_of(broker, Desk()) as worker:
        async with gateway_of(broker, Sockets()):
            await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        with pytest.raises(NotConnected):
            await worker.call(ACCOUNT, "send_msg", {})
        assert not worker.knows(ACCOUNT)


async def test_a_call_that_nobody_answers_may_have_been_done(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets(hold=asyncio.Event())
    monkeypatch.setattr(module, "DEADLINE", 0.3)
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        with pytest.raises(ActionUnanswered, match="did not answer"):
            await worker.call(ACCOUNT, "send_msg", {})
    assert [call.action for call in sockets.calls] == ["send_msg"]


async def test_a_call_whose_gateway_dies_is_not_waited_for(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets(hold=asyncio.Event())
    monkeypatch.setattr(whereabouts, "GONE_AFTER", 1.5)
    monkeypatch.setattr(module, "LOOK", 0.05)

    async def call() -> None:
        with pytest.raises(ActionUnanswered, match="its gateway is gone"):
            await worker.call(ACCOUNT, "send_msg", {})

    async with worker_of(broker, Desk()) as worker, asyncio.TaskGroup() as group, gateway_of(broker, sockets):
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        group.create_task(call())
        await until(lambda: sockets.calls, seconds=PATIENCE)


async def test_a_call_under_way_when_the_broker_is_lost_may_have_been_done(broker: str) -> None:
    sockets = Sockets(hold=asyncio.Event())
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)

        async def call() -> None:
            with pytest.raises(ActionUnanswered, match="the broker was lost"):
                await worker.call(ACCOUNT, "send_msg", {})

        async with asyncio.TaskGroup() as group:
            group.create_task(call())
            await until(lambda: sockets.calls, seconds=PATIENCE)
            worker._hang_up()
        with pytest.raises(NotConnected, match="no gateway"):
            await worker.call(ACCOUNT, "send_msg", {})


async def test_a_call_that_is_too_large_is_not_made(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets()
    monkeypatch.setattr(module, "LARGEST", 1000)
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        with pytest.raises(ActionRefused, match="too large for a cluster"):
            await worker.call(ACCOUNT, "send_msg", {"file": "x" * 1000})
    assert sockets.calls == []
