from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.core.actions import SendMessage
from bot.core.journal import SendState
from bot.core.language import Language
from bot.outbox.owner_alerts import LONG, MAX_REASON, QUIET, Owner, RunFailureAlerts, stall_alerts
from frostagent.text.masking import MASK, Mask
from frostagent.types.messages import Usage
from frostagent.types.runs import Asker, Outcome, RunFinished, RunStarted, Stop
from frostagent.types.speech import Text
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, RecordingTransport, until

SECRET = "sk-1234567890"


class Desk:
    def __init__(self, *, language: Language = Language.CHINESE) -> None:
        self.transport, self.clock = RecordingTransport(), ManualClock()
        self.outbox, sender = build_outbox(self.transport, RecordingStore(), self.clock)
        self.owner = Owner(owners=frozenset({8}), sender=sender, clock=self.clock, language=language)
        self.alarm = RunFailureAlerts(self.owner, mask=Mask([SECRET]))

    def fail(self, error: str, *, run: str = "t1", stop: Stop = Stop.FAILED) -> None:
        outcome = Outcome(stop, "", (), Usage(), steps=1, error=error)
        self.alarm.notice(RunFinished(run_id=run, outcome=outcome, seconds=1.0))

    async def received(self, number: int) -> list[str]:
        await until(lambda: len(self.transport.sent) >= number)
        return self.transport.texts


@asynccontextmanager
async def desk(*, language: Language = Language.CHINESE) -> AsyncIterator[Desk]:
    there = Desk(language=language)
    async with asyncio.timeout(30), there.outbox.open():
        there.owner.connected(BOT)
        yield there


async def test_a_failed_run_is_told_with_its_id_its_reason_and_what_to_do() -> None:
    async with desk() as there:
        there.fail("auth: 401 invalid\n key", run="abcd2345")
        (line,) = await there.received(1)
    assert line == "运行 abcd2345 失败（auth）：401 invalid key\n请检查密钥（LLM_API_KEY）是否正确、是否有权限。"


async def test_a_long_stall_is_told_and_each_is_counted() -> None:
    async with desk() as there:
        counted: list[float] = []
        stalled = stall_alerts(there.owner, counted.append)
        stalled(LONG - 1)
        stalled(LONG)
        there.fail("auth: one")
        lines = await there.received(2)
    assert (lines[0].partition("，")[0], lines[1][:2]) == ("程序卡住了 30 秒", "运行")
    assert counted == [LONG - 1, LONG]


async def test_alarms_are_in_the_language_of_the_owners() -> None:
    async with desk(language=Language.ENGLISH) as there:
        there.fail("auth: 401 invalid key", run="abcd2345")
        there.fail("odd", run="t2")
        stall_alerts(there.owner, lambda _: None)(31.4)
        action = SendMessage(GROUP, (Text("hi"),))
        there.owner.tell_of_send(action, SendState.UNKNOWN, "")
        there.owner.tell_of_send(action, SendState.DROPPED, "too late")
        assert await there.received(5) == [
            (
                "Run abcd2345 failed (auth): 401 invalid key\n"
                "Check the key (LLM_API_KEY): is it right, and allowed to use the model?"
            ),
            "Run t2 failed (odd): nobody knows why, look into the log",
            "The bot stood still for 31 s and heard nobody; where, the log says.",
            f"QQ did not confirm a message to {GROUP}: it may have arrived, and is not sent again.",
            f"A message to {GROUP} was not sent: too late",
        ]


async def test_a_class_of_errors_is_told_once_in_ten_minutes() -> None:
    async with desk() as there:
        there.fail("auth: one", run="t1")
        there.fail("auth: two", run="t2")
        there.fail("content_filter: three", run="t3")
        assert [line.split()[1] for line in await there.received(2)] == ["t1", "t3"]
        there.clock.time += QUIET
        there.fail("auth: four", run="t4")
        assert [line.split()[1] for line in await there.received(3)] == ["t1", "t3", "t4"]


async def test_a_secret_in_the_vendor_s_words_is_masked_even_where_they_are_cut() -> None:
    async with desk() as there:
        there.fail(f"transport: {'x' * (MAX_REASON - 5)}{SECRET} and more")
        (line,) = await there.received(1)
    assert f"x{MASK} a…" in line
    assert "sk-" not in line


@each_case(("error", "kind"), [("", "unknown"), ("deadline", "deadline")])
async def test_an_error_without_a_reason_sends_the_owner_to_the_log(error: str, kind: str) -> None:
    async with desk() as there:
        there.fail(error)
        assert await there.received(1) == [f"运行 t1 失败（{kind}）：原因不明，请查看日志"]


async def test_a_run_that_did_not_fail_is_nobody_s_trouble() -> None:
    async with desk() as there:
        there.alarm.notice(RunStarted(run_id="t1", conversation=str(GROUP), asker=Asker("777")))
        for stop in set(Stop) - {Stop.FAILED}:
            there.fail("", stop=stop)
        await there.outbox.wait_idle()
    assert there.transport.sent == []


async def test_a_run_inside_another_one_that_fails_is_its_business() -> None:
    async with desk() as there:
        outcome = Outcome(Stop.FAILED, "", (), Usage(), steps=1, error="deadline: too slow")
        there.alarm.notice(RunFinished(run_id="t1/1/c0", parent="t1", outcome=outcome, seconds=1.0))
        there.fail("auth: 401", run="t2")
        (line,) = await there.received(1)
    assert "t2" in line
