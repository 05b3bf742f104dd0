"""Calls and their answers."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from adapters.onebot.accounts import Role
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.protocol import MAX_FRAME, ActionReply
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from tests.adapters.onebot.conftest import PATIENCE
from tests.cases import each_case


class Line:
    """A connection that keeps what is sent."""

    role = Role.UNIVERSAL
    is_open = True

    def __init__(self, *, account: int = 1, refuses: bool = False, hangs: bool = False) -> None:
        self.account = account
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._refuses = refuses
        self._hangs = hangs

    async def send(self, frame: bytes) -> None:
        if self._refuses:
            raise NotConnected("closed")
        if self._hangs:
            await asyncio.Event().wait()
        self.sent.put_nowait(orjson.loads(frame))

    async def close(self, reason: str, *, code: int = 1000) -> None: ...

    async def is_alive(self, within: float) -> bool:
        return True

    async def echo(self) -> str:
        async with asyncio.timeout(PATIENCE):
            echo: str = (await self.sent.get())["echo"]
        return echo


def ok(echo: str, data: object = None, *, final: bool = True) -> ActionReply:
    return ActionReply(echo=echo, ok=True, retcode=0, data=data, final=final)


async def test_answers_may_come_out_of_order() -> None:
    calls, line = OneBotCalls(boot="b"), Line()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        first = group.create_task(calls.make(line, "a", {}))
        second = group.create_task(calls.make(line, "b", {}))
        echoes = [await line.echo(), await line.echo()]
        calls.answer(ok(echoes[1], "second"), by=line)
        calls.answer(ok(echoes[0], "first"), by=line)
    assert (first.result().data, second.result().data) == ("first", "second")


async def test_echoes_differ_between_calls_and_between_processes() -> None:
    line = Line()
    for boot in ("one", "two"):
        calls = OneBotCalls(boot=boot, deadline=0.0)
        for _ in range(2):
            with pytest.raises(ActionUnanswered):
                await calls.make(line, "a", {})
    echoes = [await line.echo() for _ in range(4)]
    assert len(set(echoes)) == 4


async def test_a_call_without_an_answer_has_an_unknown_outcome() -> None:
    with pytest.raises(ActionUnanswered, match="get_msg"):
        await OneBotCalls(boot="b", deadline=0.01).make(Line(), "get_msg", {})


async def test_a_call_has_time_for_what_the_server_fetches_beside_it() -> None:
    calls, light, heavy = OneBotCalls(boot="b", deadline=0.01), Line(), Line()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        large = group.create_task(calls.make(heavy, "a", {}, beside=10**9))
        with pytest.raises(ActionUnanswered):
            await calls.make(light, "a", {})
        calls.answer(ok(await heavy.echo(), "sent"), by=heavy)
    assert large.result().data == "sent"


async def test_a_write_that_hangs_ends_with_the_deadline_of_its_call() -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ActionUnanswered, match="get_msg"):
            await OneBotCalls(boot="b", deadline=0.01).make(Line(hangs=True), "get_msg", {})


async def test_a_call_that_never_reached_the_wire_is_not_connected() -> None:
    with pytest.raises(NotConnected):
        await OneBotCalls(boot="b").make(Line(refuses=True), "get_msg", {})


async def test_a_frame_no_server_would_take_is_refused_before_the_wire() -> None:
    line = Line()
    with pytest.raises(ActionRefused) as refused:
        await OneBotCalls(boot="b").make(line, "send_msg", {"message": "x" * MAX_FRAME})
    assert refused.value.retcode == 413
    assert line.sent.empty()


async def test_only_the_last_answer_of_a_stream_counts_and_a_second_one_is_ignored() -> None:
    calls, line = OneBotCalls(boot="b"), Line()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        call = group.create_task(calls.make(line, "download_file_stream", {}))
        echo = await line.echo()
        calls.answer(ok(echo, "chunk", final=False), by=line)
        calls.answer(ok(echo, "whole"), by=line)
        calls.answer(ok(echo, "again"), by=line)
    assert call.result().data == "whole"
    calls.answer(ok(echo, "late"), by=line)


@each_case(("account", "heard"), [(1, True), (2, False), (0, False)])
async def test_only_a_connection_of_the_same_account_answers_a_call(account: int, heard: bool) -> None:
    """Echoes can be guessed, and the own ones of a process show what the next one is."""
    calls, line, other = OneBotCalls(boot="b"), Line(), Line(account=account)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        call = group.create_task(calls.make(line, "get_msg", {}))
        echo = await line.echo()
        calls.answer(ok(echo, "the other's"), by=other)
        calls.answer(ok(echo, "the own"), by=line)
    assert call.result().data == ("the other's" if heard else "the own")


async def test_a_connection_nobody_knows_answers_only_its_own_calls() -> None:
    calls, line, other = OneBotCalls(boot="b"), Line(account=0), Line(account=0)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        call = group.create_task(calls.make(line, "get_login_info", {}))
        echo = await line.echo()
        calls.answer(ok(echo, 2), by=other)
        line.account = 1  # as it may be by the time
        calls.answer(ok(echo, 1), by=line)
    assert call.result().data == 1


async def test_what_a_closed_connection_was_asked_has_an_unknown_outcome_soon_and_no_other() -> None:
    calls, line, other = OneBotCalls(boot="b", gone_within=0.01), Line(), Line()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        asked = group.create_task(calls.make(other, "b", {}))
        echo = await other.echo()
        call = group.create_task(_unanswered(calls, line))
        await line.echo()
        line.is_open = False
        calls.fail_calls_of(line)
        assert "closed" in await call
        calls.answer(ok(echo), by=other)
    assert asked.result().ok


async def _unanswered(calls: OneBotCalls, line: Line) -> str:
    with pytest.raises(ActionUnanswered) as unanswered:
        await calls.make(line, "a", {})
    return str(unanswered.value)


async def test_an_answer_may_come_over_another_connection_a_little_later() -> None:
    calls, line, other = OneBotCalls(boot="b"), Line(), Line()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        call = group.create_task(calls.make(line, "a", {}))
        echo = await line.echo()
        calls.fail_calls_of(line)
        await asyncio.sleep(0)
        calls.answer(ok(echo), by=other)
    assert call.result().ok


async def test_an_answer_to_a_cancelled_call_is_ignored() -> None:
    calls, line = OneBotCalls(boot="b"), Line()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        call = group.create_task(calls.make(line, "a", {}))
        echo = await line.echo()
        call.cancel()
        calls.answer(ok(echo), by=line)
    assert call.cancelled()
    calls.answer(ok(echo), by=line)
