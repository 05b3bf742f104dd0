"""A call reaches the gateway that has its account, and its caller knows what became of it."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import pytest
from msgspec.structs import replace

from adapters.broker import account_locations, link
from adapters.broker import calls as module
from adapters.broker.payloads import CallEnd
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.refusals import judge_refusal
from tests.adapters.broker.line import line_to
from tests.adapters.broker.street import ACCOUNT, PATIENCE, Desk, Shop, Sockets, gateway_of, said, worker_of
from tests.fakes import until
from tests.rabbit import Rabbit


async def test_a_call_brings_back_the_answer_that_belongs_to_it(broker: str) -> None:
    sockets = Sockets()
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        answers = await asyncio.gather(*(worker.call(ACCOUNT, f"a{number}", {"n": number}) for number in range(20)))
        assert answers == [CallEnd("answered", True, 0, {"message_id": 7})] * 20
    assert sorted(call.params["n"] for call in sockets.calls) == list(range(20))
    assert {call.epoch for call in sockets.calls} == {1}


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


async def test_a_call_has_time_for_what_the_server_fetches_beside_it(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets = Sockets(hold=(hold := asyncio.Event()))
    monkeypatch.setattr(module, "DEADLINE", 0.3)
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker, asyncio.TaskGroup() as group:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        large = group.create_task(worker.calls.make(ACCOUNT, "send_msg", {}, beside=10**9))
        await until(lambda: sockets.calls, seconds=PATIENCE)
        with pytest.raises(ActionUnanswered, match="did not answer"):
            await worker.call(ACCOUNT, "send_msg", {})
        hold.set()
        assert (await large).ok
    assert [call.beside for call in sockets.calls] == [10**9, 0]


async def test_a_call_whose_gateway_dies_is_not_waited_for(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets(hold=asyncio.Event())
    monkeypatch.setattr(account_locations, "GONE_AFTER", 1.5)
    monkeypatch.setattr(module, "LOOK", 0.05)

    async def call() -> None:
        answer = await worker.call(ACCOUNT, "send_msg", {})
        assert answer == CallEnd("unanswered", wording="its gateway is gone")

    async with worker_of(broker, Desk()) as worker, asyncio.TaskGroup() as group, gateway_of(broker, sockets):
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        group.create_task(call())
        await until(lambda: sockets.calls, seconds=PATIENCE)


async def test_a_slow_call_is_waited_for_as_long_as_its_gateway_is_there(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets, looks = Sockets(hold=(hold := asyncio.Event())), list[str]()
    monkeypatch.setattr(module, "LOOK", 0.01)
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker, asyncio.TaskGroup() as group:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        has = worker.where.is_present

        def look(gateway: str) -> bool:
            looks.append(gateway)
            return has(gateway)

        call = group.create_task(worker.call(ACCOUNT, "send_msg", {}))
        await until(lambda: sockets.calls, seconds=PATIENCE)
        monkeypatch.setattr(worker.where, "is_present", look)
        await until(lambda: len(looks) > 3, seconds=PATIENCE)
        assert not call.done()
        hold.set()
        assert (await call).ok
    assert set(looks) == {"frost.gateway.a"}


async def test_a_call_under_way_when_the_broker_is_lost_may_have_been_done(broker: str) -> None:
    sockets = Sockets(hold=asyncio.Event())
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)

        async def call() -> None:
            answer = await worker.call(ACCOUNT, "send_msg", {})
            assert answer == CallEnd("unanswered", wording="the broker was lost meanwhile")

        async with asyncio.TaskGroup() as group:
            group.create_task(call())
            await until(lambda: sockets.calls, seconds=PATIENCE)
            worker.calls.disconnect()
        with pytest.raises(NotConnected, match="the broker cannot be reached"):
            await worker.call(ACCOUNT, "send_msg", {})


async def test_a_call_whose_stream_ends_between_two_frames_may_have_been_done_and_the_worker_goes_on(
    broker: str,
) -> None:
    desk = Desk()
    async with (
        line_to(broker) as (line, url),
        gateway_of(broker, Sockets()) as gateway,
        worker_of(url, desk) as worker,
        asyncio.TaskGroup() as group,
    ):
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        line.is_held = True
        calling = group.create_task(outcome_of(worker))
        for number in range(30):
            await gateway.handle(said(number))
        await until(lambda: line.kept.count(b"message_received") == 30, seconds=PATIENCE)
        await line.end()
        assert await calling == "unanswered"
        await gateway.handle(said(30))
        await until(lambda: desk.numbers[-1:] == [30], seconds=PATIENCE)
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        assert (await worker.call(ACCOUNT, "get_msg", {})).ok


async def test_a_bug_of_ours_is_nothing_that_became_of_a_call(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> NoReturn:
        raise ZeroDivisionError("a bug")

    async with gateway_of(broker, Sockets()), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        monkeypatch.setattr(module, "publish", broken)
        with pytest.raises(ZeroDivisionError):
            await worker.call(ACCOUNT, "send_msg", {})


async def outcome_of(worker: Shop) -> str:
    """What became of a call; the broker's end may come before its confirmation, or before its answer."""
    try:
        return (await worker.call(ACCOUNT, "send_msg", {})).outcome
    except ActionUnanswered:
        return "unanswered"


async def test_a_call_on_a_channel_that_is_closed_already_was_not_made(broker: str) -> None:
    """A worker that wakes from a freeze finds it so before it has heard that the connection is gone."""
    sockets = Sockets()
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        channel = worker.calls._channel
        assert channel is not None
        await channel.close()
        worker.calls._channel = channel
        worker.where.update(replace(sockets.here, gateway="frost.gateway.a"))
        with pytest.raises(NotConnected, match="the broker cannot be reached"):
            await worker.call(ACCOUNT, "send_msg", {})
    assert sockets.calls == []


async def test_a_call_that_is_too_large_is_not_made(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets()
    monkeypatch.setattr(module, "LARGEST", 1000)
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        with pytest.raises(ActionRefused, match="too large for a cluster") as refused:
            await worker.call(ACCOUNT, "send_msg", {"file": "x" * 1000})
    told = judge_refusal(refused.value.wording, refused.value.retcode).reason
    assert told == "too large: its files have more than 5 MB together. Send smaller ones, or say it in words"
    assert sockets.calls == []


async def call_on(worker: Shop, made: list[str]) -> NoReturn:
    """Until it raises: a broker with an alarm reads on until it has found out what comes to it."""
    while True:
        made.append(f"before {len(made)}")
        await worker.call(ACCOUNT, made[-1], {})


async def test_a_call_that_lay_in_the_socket_through_an_alarm_is_not_made_once_its_caller_has_given_it_up(
    broker: str, own_node: Rabbit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "LOOK", 3600.0)  # nobody knows of the alarm, as in its first moments
    monkeypatch.setattr(link, "HEARTBEAT", 60)  # a busy machine ends no connection for its silence
    monkeypatch.setattr(module, "WRITTEN_WITHIN", 1.0)
    sockets, made = Sockets(), list[str]()
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        await asyncio.to_thread(own_node.alarm, on=True)
        worker.where.update(replace(sockets.here, gateway="frost.gateway.a"))  # it was there a moment ago
        try:
            with pytest.raises(ActionUnanswered, match="the broker did not confirm a call"):
                await call_on(worker, made)
        finally:
            await asyncio.to_thread(own_node.alarm, on=False)
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        assert (await worker.call(ACCOUNT, "after", {})).ok
    assert [call.action for call in sockets.calls] == [*made[:-1], "after"]


async def test_a_call_that_comes_too_late_is_refused_and_one_of_an_older_worker_never(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets = Sockets()
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        monkeypatch.setattr(worker.where, "deadline", lambda *_: 0.001)
        late = await worker.call(ACCOUNT, "late", {})
        assert (late.outcome, late.wording) == ("not_connected", "it came too late")
        monkeypatch.setattr(worker.where, "deadline", lambda *_: 0.0)
        assert (await worker.call(ACCOUNT, "older", {})).ok
    assert [call.action for call in sockets.calls] == ["older"]
