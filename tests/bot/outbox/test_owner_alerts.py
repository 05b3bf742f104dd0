from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.journal import SendState
from bot.core.other_bots import AlarmRaised, Announcement
from bot.outbox.owner_alerts import LOST, QUIET, Owner
from bot.outbox.sender import MAX_AGE
from frostagent.text.masking import Mask, Quoting
from frostagent.types.errors import BotError
from frostagent.types.speech import Text
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, ManualClock, RecordingStore, RecordingTransport, until


class Desk:
    def __init__(self, *owners: int, mask: Mask | None = None, quiet: tuple[int, ...] = ()) -> None:
        self.transport, self.clock = RecordingTransport(), ManualClock()
        self.outbox, sender = build_outbox(self.transport, RecordingStore(), self.clock, report_loss=self.tell)
        mask = mask or Mask()
        self.owner = Owner(owners=frozenset(owners), sender=sender, clock=self.clock, mask=mask, quiet=quiet)

    def tell(self, action: SendMessage, state: SendState, reason: str) -> None:
        self.owner.tell_of_send(action, state, reason)

    async def lose(self) -> None:
        """Let what waits for QQ wait for too long."""
        await until(lambda: not self.transport.failures)
        self.clock.time += MAX_AGE + 1
        self.outbox.connected()
        await self.outbox.wait_idle()
        await asyncio.sleep(0)

    async def received(self, number: int) -> list[tuple[Conversation, str]]:
        await until(lambda: len(self.transport.sent) >= number)
        pairs = zip(self.transport.sent, self.transport.texts, strict=True)
        return [(action.conversation, text) for action, text in pairs]


@asynccontextmanager
async def desk(*owners: int, mask: Mask | None = None, quiet: tuple[int, ...] = ()) -> AsyncIterator[Desk]:
    there = Desk(*owners, mask=mask, quiet=quiet)
    async with asyncio.timeout(30), there.outbox.open():
        yield there


async def test_every_owner_gets_a_private_line() -> None:
    async with desk(8, 9) as there:
        there.owner.connected(BOT)
        there.owner.tell("store", "the disk is full")
        assert await there.received(2) == [
            (Conversation(BOT, "private", 8), "the disk is full"),
            (Conversation(BOT, "private", 9), "the disk is full"),
        ]


async def test_a_quiet_owner_gets_no_alarms_but_what_is_said_to_all() -> None:
    async with desk(8, 9, quiet=(9,)) as there:
        there.owner.connected(BOT)
        there.owner.tell("store", "the disk is full")
        there.owner.post("yesterday")
        told = [(where.session_id, text) for where, text in await there.received(3)]
        assert sorted(told) == [(8, "the disk is full"), (8, "yesterday"), (9, "yesterday")]


async def test_one_kind_of_trouble_is_told_once_in_ten_minutes() -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.owner.tell("store", "one")
        there.owner.tell("store", "two")
        there.owner.tell("model", "three")
        assert [text for _, text in await there.received(2)] == ["one", "three"]
        there.clock.time += QUIET - 1
        there.owner.tell("store", "too soon")
        there.clock.time += 1
        there.owner.tell("store", "four")
        assert [text for _, text in await there.received(3)] == ["one", "three", "four"]


async def test_what_happened_before_the_connection_is_told_on_it() -> None:
    async with desk(8) as there:
        there.owner.tell("store", "early")
        there.owner.connected(BOT)
        assert [text for _, text in await there.received(1)] == ["early"]
        there.owner.connected(BOT)
        assert len(there.transport.sent) == 1


async def test_what_waits_for_a_connection_about_who_is_forgotten_is_not_told() -> None:
    async with desk(9) as there:
        there.owner.tell("loop", "a loop in 10001:group:4242")
        there.owner.tell("disk", "4242000 bytes are free")
        there.owner.forget(SubjectErased(group=4242))
        there.owner.connected(BOT)
        await there.outbox.wait_idle()
        assert there.transport.texts == ["4242000 bytes are free"]


async def test_without_owners_nobody_is_written_to() -> None:
    async with desk() as there:
        there.owner.connected(BOT)
        there.owner.tell("store", "nobody hears")
        assert there.transport.sent == []


async def test_a_line_that_was_lost_while_nobody_was_connected_is_told_on_the_next_connection_once() -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.transport.failures = [NotConnected("away")]
        there.owner.tell("store", "the disk is full")
        await there.lose()
        assert there.transport.sent == []
        there.owner.connected(BOT)
        assert [text for _, text in await there.received(1)] == ["the disk is full"]
        await there.outbox.wait_idle()
        await asyncio.sleep(0)
        there.owner.connected(BOT)
        await there.outbox.wait_idle()
        assert there.transport.texts == ["the disk is full"]


async def test_a_line_that_still_waits_is_not_told_twice_on_the_connection() -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.transport.failures = [NotConnected("away")]
        there.owner.tell("store", "the disk is full")
        await until(lambda: not there.transport.failures)
        there.owner.connected(BOT)
        there.outbox.connected()
        await there.outbox.wait_idle()
        assert there.transport.texts == ["the disk is full"]


async def test_a_line_that_is_lost_just_when_the_connection_comes_is_told_all_the_same() -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.transport.failures = [NotConnected("away")]
        there.owner.tell("store", "the disk is full")
        await until(lambda: not there.transport.failures)
        there.owner.connected(BOT)
        await there.lose()
        assert [text for _, text in await there.received(1)] == ["the disk is full"]


async def test_a_line_lost_with_one_account_is_told_by_the_one_that_connected_since() -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.transport.failures = [NotConnected("away")]
        there.owner.tell("store", "the disk is full")
        await until(lambda: not there.transport.failures)
        there.owner.connected(20002)
        await there.lose()
        assert await there.received(1) == [(Conversation(20002, "private", 8), "the disk is full")]


@each_case("failure", [ActionRefused("send", retcode=1200, wording="不是好友"), ActionUnanswered("no answer")])
async def test_a_line_that_qq_refused_or_may_have_taken_is_not_told_again(failure: BotError) -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.transport.failures = [failure]
        there.owner.tell("store", "the disk is full")
        await there.outbox.wait_idle()
        await asyncio.sleep(0)
        there.owner.connected(BOT)
        await there.outbox.wait_idle()
        assert there.transport.sent == []


async def test_what_may_be_lost_and_what_is_are_two_kinds_of_lines() -> None:
    action = SendMessage(GROUP, (Text("hello"),))
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.owner.tell_of_send(action, SendState.UNKNOWN, "no answer")
        there.owner.tell_of_send(action, SendState.DROPPED, "QQ was not connected in time")
        there.owner.tell_of_send(action, SendState.REFUSED, "muted")
        assert [text for _, text in await there.received(2)] == [
            f"发到 {GROUP} 的一条消息没有得到 QQ 的确认，可能已送达，不会重发。",
            f"发到 {GROUP} 的一条消息没有送出：QQ was not connected in time",
        ]


async def test_what_is_lost_is_told_of_each_place_and_of_places_long_ago_nothing_is_kept() -> None:
    async with desk(8) as there:
        there.owner.connected(BOT)
        for where in (GROUP, PRIVATE, GROUP):
            there.owner.tell_of_send(SendMessage(where, (Text("hello"),)), SendState.REFUSED, "no")
        assert [text for _, text in await there.received(2)] == [
            LOST.zh.format(where=where, reason="no") for where in (GROUP, PRIVATE)
        ]
        there.clock.time += QUIET
        there.owner.tell("store", "the disk is full")
        assert list(there.owner._told) == ["store"]


async def test_of_a_message_that_was_lost_after_its_caller_left_the_owner_hears() -> None:
    async with desk(8) as there:
        there.transport.failures = [NotConnected("away")]
        await there.outbox.send(SendMessage(GROUP, (Text("hello"),)), turn_id="t1", patience=0)
        await there.lose()
        there.owner.connected(BOT)
        ((_, text),) = await there.received(1)
        assert text == f"发到 {GROUP} 的一条消息没有送出：QQ was not connected in time"


async def test_what_a_vendor_said_is_for_the_owner_and_not_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with desk(8) as there:
        there.owner.connected(BOT)
        there.owner.tell("run failed: auth", Quoting("run t1 failed (zebra)"))
        assert [text for _, text in await there.received(1)] == ["run t1 failed (zebra)"]
        there.owner.tell("store", "the disk is full")
    told = [
        (record.levelno, record.getMessage()) for record in caplog.records if record.name == "bot.outbox.owner_alerts"
    ]
    assert [line for line in told if line[0] > logging.DEBUG] == [
        (logging.WARNING, "for the owner: run failed: auth"),
        (logging.WARNING, "for the owner: the disk is full"),
    ]


async def test_no_secret_is_told_to_an_owner() -> None:
    async with desk(8, mask=Mask(["open-sesame"])) as there:
        there.owner.connected(BOT)
        there.owner.tell("model", "the key open-sesame is no good")
        assert [text for _, text in await there.received(1)] == ["the key *** is no good"]


class Line:
    """Bots that hear each other at once; `crier` has an account."""

    def __init__(self) -> None:
        self.owner_replies: list[Desk] = []
        self.crier: Desk | None = None
        self.notes: list[Announcement] = []

    def of(self, at: Desk) -> Ear:
        self.owner_replies.append(at)
        at.owner._announcer = ear = Ear(self, at)
        return ear


class Ear:
    """What one of them tells, which it does not hear itself."""

    def __init__(self, line: Line, at: Desk) -> None:
        self._line, self._at = line, at

    @property
    def can_alarm(self) -> bool:
        return self._line.crier is not None

    def tell(self, note: Announcement, /) -> None:
        assert isinstance(note, AlarmRaised)
        self._line.notes.append(note)
        for one in self._line.owner_replies:
            if one is not self._at and (not note.text or self._line.crier in (None, one)):
                one.owner.hear(note)


async def test_of_several_bots_one_tells_a_trouble_and_all_may_again_after_a_while() -> None:
    line = Line()
    async with desk(8) as first, desk(8) as second:
        for there in (first, second):
            line.of(there)
            there.owner.connected(BOT)
        for there in (second, first, second):
            there.owner.tell("disk", "the disk is full")
        await second.received(1)
        for there in (first, second):
            there.clock.time += QUIET
        first.owner.tell("disk", "the disk is still full")
        await first.received(1)
        assert (first.transport.texts, second.transport.texts) == (["the disk is still full"], ["the disk is full"])
    assert line.notes == [AlarmRaised("disk"), AlarmRaised("disk")]


async def test_who_has_no_account_leaves_it_to_one_that_has_and_without_any_the_first_that_has_one_says_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = Line()
    async with desk(8, mask=Mask(["sk-secret"])) as first, desk(8) as second:
        for there in (first, second):
            line.of(there)
        assert not first.owner.is_reachable
        first.owner.tell("early", "before anybody came")
        line.crier = second
        second.owner.connected(BOT)
        assert first.owner.is_reachable
        first.owner.tell("model", Quoting("it said sk-secret"))
        first.owner.tell("model", "once more")
        first.owner.post("how the day was")
        said = [text for _, text in await second.received(3)]
        assert said == ["before anybody came", "it said ***", "how the day was"]
        first.owner.connected(BOT)
        first.owner.tell("late", "with an account of its own")
        assert [text for _, text in await first.received(1)] == ["with an account of its own"]
    assert "sk-secret" not in caplog.text
    early = [one for one in line.notes if one.kind == "early"]
    assert early == [AlarmRaised("early", "before anybody came"), AlarmRaised("early")]
    told = [one for one in line.notes if one.kind not in ("early", "late")]
    assert told == [
        AlarmRaised("model", "it said ***", is_quoting=True),
        AlarmRaised("model"),
        AlarmRaised("", "how the day was"),
    ]


async def test_what_is_for_another_is_kept_until_it_has_said_it_for_it_may_be_dead() -> None:
    line = Line()
    async with desk(8) as first, desk(8) as dead:
        line.of(first)
        line.crier = dead
        first.owner.tell("disk", "the disk is full")
        first.owner.tell("model", "it is gone")
        first.owner.hear(AlarmRaised("model"))
        first.owner.connected(BOT)
        assert [text for _, text in await first.received(1)] == ["the disk is full"]
    assert line.notes == [
        AlarmRaised("disk", "the disk is full"),
        AlarmRaised("model", "it is gone"),
        AlarmRaised("disk"),
    ]


async def test_of_what_was_said_lately_whoever_asks_hears_so_and_who_has_no_account_says_nothing() -> None:
    line = Line()
    async with desk(8) as crier, desk(8) as silent:
        line.of(crier)
        crier.owner.connected(BOT)
        for _ in range(2):
            crier.owner.hear(AlarmRaised("disk", "the disk is full"))
        assert [text for _, text in await crier.received(1)] == ["the disk is full"]
        assert line.notes == [AlarmRaised("disk"), AlarmRaised("disk")]
        line.of(silent)
        silent.owner.hear(AlarmRaised("disk", "the disk is full"))
        assert line.notes == [AlarmRaised("disk"), AlarmRaised("disk")]


async def test_without_anybody_to_alarm_nothing_waits_for_another_bot() -> None:
    line = Line()
    async with desk(8, quiet=(8,)) as there:
        line.of(there)
        there.owner.tell("disk", "the disk is full")
    assert line.notes == []
