"""Bots are asked by the accounts they have, or all at once, over a real broker; who is not there is known at once, and
who says nothing does not hold anybody up for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import NoReturn, cast

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractExchange

from adapters.broker import requests
from adapters.broker.gateway import Gateway
from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.queries import ClusterQuery, ClusterReply, ContextQuery, ContextReply, DecisionResult, StatusQuery
from adapters.broker.requests import RequestExchange
from adapters.broker.topology import QUESTIONS
from bot.core.console_views import BotStatus, OwnerDecision, State
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.settlement import Settled
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.line import Line, line_to
from tests.adapters.broker.street import ACCOUNT, PATIENCE, SHARE, Desk, Sockets, gateway_of, said, worker_of
from tests.fakes import GROUP, until

OTHER, THIRD = (ClusterPartition(number, PARTITIONS) for number in range(PARTITIONS) if number != SHARE.partition)
WORD = OwnerDecision(ACCOUNT, "A", 3, allows=True)
DONE = DecisionResult(Settled("done", "好了"))


def glance(share: ClusterPartition) -> BotStatus:
    return BotStatus(share.partition, State(active=share.partition))


async def test_the_bot_of_the_account_is_asked_and_no_other(broker: str) -> None:
    desks = Desk(says=DONE), Desk(says=DONE), Desk(says=DONE)
    async with (
        worker_of(broker, desks[0], share=OTHER) as asker,
        worker_of(broker, desks[1], share=SHARE),
        worker_of(broker, desks[2], share=THIRD),
    ):
        assert await asker.asks.ask(ACCOUNT, WORD) == DONE
        desks[1].says = ContextReply(("一",))
        assert await asker.asks.ask(ACCOUNT, ContextQuery(GROUP)) == ContextReply(("一",))
    assert [desk.asked for desk in desks] == [[], [WORD, ContextQuery(GROUP)], []]


async def test_all_others_are_asked_at_once_and_it_is_not_waited_longer_than_they_take(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ALL_WITHIN", 60.0)
    mine, desks = Desk(says=glance(OTHER)), [Desk(says=glance(SHARE)), Desk(says=glance(THIRD))]
    async with (
        worker_of(broker, mine, share=OTHER) as asker,
        worker_of(broker, desks[0], share=SHARE),
        worker_of(broker, desks[1], share=THIRD),
    ):
        async with asyncio.timeout(20):
            told = await asker.asks.ask_all(StatusQuery())
    assert (asker.asks.count, mine.asked, [desk.asked for desk in desks]) == (2, [], [[StatusQuery()], [StatusQuery()]])
    assert sorted(one.number for one in told if isinstance(one, BotStatus)) == sorted(
        (SHARE.partition, THIRD.partition)
    )


async def test_an_account_that_nobody_has_just_now_is_known_at_once(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ONE_WITHIN", 60.0)
    async with worker_of(broker, Desk(), share=OTHER) as asker, asyncio.timeout(20):
        with pytest.raises(NotConnected, match="no bot has this account"):
            await asker.asks.ask(ACCOUNT, WORD)


async def test_who_does_not_answer_is_missing_and_what_became_of_a_word_nobody_knows(
    broker: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(requests, "ALL_WITHIN", 0.3)
    monkeypatch.setattr(requests, "ONE_WITHIN", 0.3)
    broken, well = Desk(), Desk(says=glance(THIRD))
    async with (
        worker_of(broker, Desk(), share=OTHER) as asker,
        worker_of(broker, broken, share=SHARE),
        worker_of(broker, well, share=THIRD),
    ):
        told: tuple[ClusterReply, ...] = ()
        async with asyncio.timeout(20):
            while len(told) != 1:  # of a busy machine not even the one that answers may do so in time
                told = await asker.asks.ask_all(StatusQuery())
        with pytest.raises(ActionUnanswered):
            await asker.asks.ask(ACCOUNT, WORD)
        assert told == (glance(THIRD),)
        broken.says = DONE
        monkeypatch.setattr(requests, "ONE_WITHIN", 20.0)
        assert await asker.asks.ask(ACCOUNT, WORD) == DONE  # a bug in one answer ends nothing
    assert "what another bot asks is not answered" in caplog.text


async def test_what_cannot_be_read_is_not_answered_and_ends_nothing(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    desk = Desk(says=DONE)
    async with worker_of(broker, desk) as shop, worker_of(broker, Desk(), share=OTHER) as asker:
        async with await aio_pika.connect(broker) as connection:
            exchange = await (await connection.channel()).get_exchange(QUESTIONS)
            for headers in ({}, {"version": 99}, {"version": 1}):
                await exchange.publish(Message(b'{"type": "colour"}', headers={**headers}), "all")
        assert await asker.asks.ask(ACCOUNT, WORD) == DONE
        await until(lambda: caplog.text.count("is not answered") == 6)  # both have heard all three
        assert (desk.asked, shop.worker.is_up) == ([WORD], True)


async def test_without_a_broker_nothing_was_done() -> None:
    nobody = RequestExchange("me", ClusterPartition(0, 4))
    assert await nobody.ask_all(StatusQuery()) == ()
    with pytest.raises(NotConnected, match="the broker cannot be reached"):
        await nobody.ask(ACCOUNT, WORD)
    assert nobody.count == 3
    assert partition_of(ACCOUNT, PARTITIONS) == SHARE.partition


async def test_one_that_has_all_partitions_to_itself_asks_nobody() -> None:
    assert (
        RequestExchange("me", ClusterPartition()).count,
        await RequestExchange("me", ClusterPartition()).ask_all(StatusQuery()),
    ) == (0, ())


async def test_what_is_asked_on_a_channel_that_is_closed_already_was_not_asked(broker: str) -> None:
    desk = Desk(says=DONE)
    async with (
        worker_of(broker, Desk(), share=OTHER) as asker,
        worker_of(broker, desk),
        await aio_pika.connect(broker) as connection,
    ):
        channel = await connection.channel()
        asker.asks._exchange = await channel.get_exchange(QUESTIONS, ensure=False)
        await channel.close()
        with pytest.raises(NotConnected, match="the broker cannot be reached"):
            await asker.asks.ask(ACCOUNT, WORD)
        assert await asker.asks.ask_all(StatusQuery()) == ()
    assert desk.asked == []


async def test_a_word_that_is_being_carried_out_does_not_end_with_the_connection(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    asked, go_on, done = asyncio.Event(), asyncio.Event(), list[ClusterReply]()

    class Slow(Desk):
        async def answer(self, ask: ClusterQuery) -> ClusterReply:
            asked.set()
            await go_on.wait()
            done.append(DONE)
            return DONE

    async with worker_of(broker, Desk(), share=OTHER) as asker, worker_of(broker, Slow()) as carrier:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(asker.asks.ask(ACCOUNT, WORD))
            await asked.wait()
            channel = carrier.calls._channel
            assert channel is not None
            await channel.close()
            await until(lambda: not carrier.worker.is_up, seconds=20)
            await until(lambda: carrier.worker.is_up, seconds=20)
            go_on.set()
            await until(lambda: bool(done), seconds=20)
            waiting.cancel()
        await until(lambda: "who asked does not hear the answer" in caplog.text, seconds=20)
        assert await asker.asks.ask(ACCOUNT, WORD) == DONE
    assert done == [DONE, DONE]


async def test_a_stream_that_ends_between_two_frames_ends_nobody_who_answers(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    asked, go_on, done = asyncio.Event(), asyncio.Event(), list[ClusterReply]()

    class Slow(Desk):
        async def answer(self, ask: ClusterQuery) -> ClusterReply:
            asked.set()
            await go_on.wait()
            done.append(DONE)
            return DONE

    desk = Slow()
    async with (
        line_to(broker) as (line, url),
        gateway_of(broker, Sockets()) as gateway,
        worker_of(broker, Desk(), share=OTHER) as asker,
        worker_of(url, desk) as carrier,
        asyncio.TaskGroup() as group,
    ):
        waiting = group.create_task(asker.asks.ask(ACCOUNT, WORD))
        await asked.wait()
        await hold(line, gateway, desk)
        go_on.set()
        await until(lambda: bool(done), seconds=PATIENCE)
        await line.end()
        await until(lambda: "who asked does not hear the answer" in caplog.text, seconds=PATIENCE)
        waiting.cancel()
        await until(lambda: not carrier.worker.is_up, seconds=PATIENCE)
        await until(lambda: carrier.worker.is_up, seconds=PATIENCE)
        assert await asker.asks.ask(ACCOUNT, WORD) == DONE


async def test_what_became_of_a_word_whose_stream_ends_between_two_frames_nobody_knows(broker: str) -> None:
    desk = Desk()
    async with (
        line_to(broker) as (line, url),
        gateway_of(broker, Sockets()) as gateway,
        worker_of(url, desk) as asker,
        asyncio.TaskGroup() as group,
    ):
        await hold(line, gateway, desk)
        all_around = group.create_task(asker.asks.ask_all(StatusQuery()))
        word = group.create_task(failure_of(asker.asks.ask(ACCOUNT, WORD)))
        await until(lambda: len(asker.asks._open) == 2, seconds=PATIENCE)
        await line.end()
        assert await all_around == ()
        assert str(await word) == "the broker did not confirm (it has closed the connection)"


async def test_a_bug_of_ours_is_nothing_that_became_of_a_word(broker: str) -> None:
    class Broken:
        async def publish(self, *_: object) -> NoReturn:
            raise ZeroDivisionError("a bug")

    async with worker_of(broker, Desk(), share=OTHER) as asker:
        asker.asks._exchange = cast("AbstractExchange", Broken())
        with pytest.raises(ZeroDivisionError):
            await asker.asks.ask(ACCOUNT, WORD)


async def hold(line: Line, gateway: Gateway, desk: Desk) -> None:
    """More comes with its end than the library has room for."""
    await gateway.handle(said(0))
    await until(lambda: desk.numbers == [0], seconds=PATIENCE)
    line.is_held = True
    for number in range(1, 31):
        await gateway.handle(said(number))
    await until(lambda: line.kept.count(b"message_received") == 30, seconds=PATIENCE)


async def failure_of(asking: Awaitable[ClusterReply]) -> ActionUnanswered:
    with pytest.raises(ActionUnanswered) as raised:
        await asking
    return raised.value


async def test_an_answer_that_is_too_large_is_none(
    broker: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(requests, "LARGEST", 1000)
    monkeypatch.setattr(requests, "ALL_WITHIN", 20.0)
    large, small = Desk(says=ContextReply(("x" * 2000,))), Desk(says=ContextReply(("x",)))
    async with (
        worker_of(broker, Desk(), share=OTHER) as asker,
        worker_of(broker, large, share=SHARE),
        worker_of(broker, small, share=THIRD),
        asyncio.TaskGroup() as group,
    ):
        told = group.create_task(asker.asks.ask_all(StatusQuery()))
        await until(lambda: "it takes 20" in caplog.text, seconds=20)
        monkeypatch.setattr(requests, "LARGEST", 3000)
        assert await asker.asks.ask(ACCOUNT, ContextQuery(GROUP)) == large.says
        told.cancel()
