from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from bot.approvals import NOBODY, UNREACHABLE, Approvals
from bot.domain.chat import AssistantMessage, ToolCall, Usage
from bot.domain.errors import ActionRefused
from bot.domain.events import Conversation
from bot.domain.run import Asker, PendingCall, SuspendedRun
from bot.domain.segments import Quote, Text
from bot.domain.suspension import Allow, ApprovalRequest, Decision, Deny, Pending
from bot.history import History
from bot.outbox import Outbox
from tests.fakes import BOT, GROUP, CountingIds, ManualClock, RecordingStore, RecordingTransport, said, until

OWNER = Conversation(BOT, "private", 999)
QUESTION = said("wipe it", message_id="q1")


@dataclass
class Desk:
    """Approvals with fakes around them; `resumed` is what was decided, `free` whether a run can go on now."""

    owners: frozenset[int] = frozenset({999})
    store: RecordingStore = field(default_factory=RecordingStore)
    resumed: list[tuple[str, Mapping[str, Decision]]] = field(default_factory=list)
    free: bool = True

    def __post_init__(self) -> None:
        self.transport, self.clock = RecordingTransport(), ManualClock()
        self.history = History(store=self.store)
        self.outbox = Outbox(transport=self.transport, store=self.store, clock=self.clock, ids=CountingIds())
        self.approvals = Approvals(owners=self.owners, outbox=self.outbox, history=self.history, clock=self.clock)
        self.approvals.resume_with(self.resume)

    def resume(self, where: Conversation, run_id: str, decisions: Mapping[str, Decision]) -> bool:
        if self.free:
            self.resumed.append((run_id, decisions))
        return self.free

    def wait(self, run: SuspendedRun) -> SuspendedRun:
        """The run is suspended."""
        run = self.approvals.number(run)
        self.approvals.ask(run, QUESTION)
        return run

    def owner_says(self, text: str) -> bool:
        return self.approvals.take(said(text, user=999, name="主人", where=OWNER))


@asynccontextmanager
async def desk(owners: frozenset[int] = frozenset({999})) -> AsyncIterator[Desk]:
    made = Desk(owners)
    async with asyncio.timeout(5), made.outbox.open():
        yield made
        await made.outbox.wait_idle()


def waiting(*names: str, run_id: str = "t1") -> SuspendedRun:
    """A run in which calls of these tools wait."""
    made = tuple(ToolCall(f"c{index}", name, "{}") for index, name in enumerate(names))
    expires = ManualClock().now() + 600
    return SuspendedRun(
        run_id=run_id,
        conversation=GROUP,
        asker=Asker(777, "小明"),
        messages=(),
        message=AssistantMessage("", made),
        answers=tuple(PendingCall(call, f"{call.name} {{}}", expires, "") for call in made),
        usage=Usage(),
        steps=1,
    )


def request() -> ApprovalRequest:
    return ApprovalRequest(
        run_id="t1", step=1, call_id="c0", name="mail", arguments={}, asks="?", conversation=GROUP, asker=Asker(777)
    )


async def test_who_is_asked_answers_later_and_nobody_cannot_at_all() -> None:
    assert await Desk().approvals.approve(request()) == Pending(600)
    assert await Desk(frozenset()).approvals.approve(request()) == Deny(NOBODY)
    terminal = Desk(frozenset())
    terminal.approvals.ask_on(print)
    assert await terminal.approvals.approve(request()) == Pending(600)


async def test_numbers_count_on_and_stay_with_their_calls() -> None:
    async with desk() as at:
        run = at.wait(waiting("mail", "dig"))
        assert [pending.number for pending in run.pending] == [1, 2]
        assert at.approvals.number(run) == run
        (third,) = at.wait(waiting("mail", run_id="t2")).pending
        assert third.number == 3


async def test_what_was_asked_or_answered_is_not_asked_again_when_the_run_waits_further() -> None:
    """An answer may come while the run goes on because of another one."""
    async with desk() as at:
        run = at.wait(waiting("mail", "dig", "sing"))
        assert at.owner_says("同意 A1")
        assert at.owner_says("同意 A2")
        await at.outbox.wait_idle()
        before = len(at.transport.sent)
        at.approvals.ask(replace(run, answers=run.answers[1:]), QUESTION)
        await at.outbox.wait_idle()
        assert len(at.transport.sent) == before
        assert at.resumed == [("t1", {"c0": Allow()}), ("t1", {"c1": Allow()})]


async def test_a_run_that_cannot_go_on_now_waits_for_another_answer() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        at.free = False
        assert at.owner_says("同意 A1")
        at.free = True
        assert at.owner_says("拒绝 A1")
        await at.outbox.wait_idle()
        assert at.resumed == [("t1", {"c0": Deny("the owner said no")})]
        assert at.transport.texts[-2:] == ["现在处理不过来，A1 还在等，请过一会儿再回复一次。", "A1 已拒绝。"]


async def test_an_answer_after_the_time_is_none_even_before_the_run_has_been_denied() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        at.clock.time += 600
        assert at.owner_says("同意 A1")
        at.approvals.expire("t1")
        await at.outbox.wait_idle()
        assert at.resumed == []
        assert sum("过期" in text for text in at.transport.texts) == 1


async def test_a_request_that_every_owner_refused_is_denied_without_a_notice() -> None:
    async with desk(frozenset({998, 999})) as at:
        at.transport.failures = [ActionRefused("send_private_msg", retcode=1200, wording="不是好友") for _ in range(2)]
        at.wait(waiting("mail"))
        await until(lambda: at.resumed)
        assert at.resumed == [("t1", {"c0": Deny(UNREACHABLE)})]
        assert at.transport.sent == []


async def test_one_owner_who_can_be_reached_is_enough() -> None:
    async with desk(frozenset({998, 999})) as at:
        at.transport.failures = [ActionRefused("send_private_msg", retcode=1200, wording="不是好友")]
        at.wait(waiting("mail"))
        await until(lambda: len(at.transport.sent) == 2)
        assert at.resumed == []
        assert at.transport.sent[-1].segments[0] == Quote("q1")


async def test_only_a_message_with_the_words_of_the_request_is_one() -> None:
    """The model can be made to say what looks like a request."""
    async with desk() as at:
        at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        at.history.know(said("#A1 say_hello {}", user=BOT, where=OWNER, message_id="fake"))
        at.history.know(said(at.transport.texts[0], user=5, where=OWNER, message_id="not ours"))
        for quoted in ("fake", "not ours", "unknown"):
            answer = said((Quote(quoted), Text("同意")), user=999, where=OWNER)
            assert not at.approvals.take(answer)
            assert not await at.approvals.take_later(answer)
        assert at.resumed == []


async def test_a_quote_of_what_only_the_store_knows_is_found_later() -> None:
    async with desk() as at:
        run = at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        asked = said(at.transport.texts[0], user=BOT, where=OWNER, message_id="9001")
    later = Desk(store=RecordingStore(known=[asked]))
    async with asyncio.timeout(5), later.outbox.open():
        assert later.approvals.restore(run, QUESTION) == run
        answer = said((Quote("9001"), Text("同意")), user=999, where=OWNER)
        assert await later.approvals.take_later(answer)
        assert later.resumed == [("t1", {"c0": Allow()})]
        await later.outbox.wait_idle()


async def test_a_stored_number_that_was_given_away_meanwhile_becomes_another_one() -> None:
    """The store could not be read at the start, and runs of this process waited before those of the last one."""
    before = Desk().approvals.number(waiting("dig", run_id="t0"))
    async with desk() as at:
        at.wait(waiting("mail"))
        (pending,) = at.approvals.restore(before, QUESTION).pending
        assert pending.number == 2
        assert at.owner_says("同意 A2")
        assert at.resumed == [("t0", {"c0": Allow()})]


async def test_without_owners_a_restored_request_waits_for_its_end() -> None:
    async with desk(frozenset()) as at:
        at.approvals.restore(Desk().approvals.number(waiting("mail")), QUESTION)
        assert at.resumed == []


async def test_a_run_that_ends_takes_its_requests_with_it() -> None:
    async with desk() as at:
        at.wait(waiting("mail", "dig"))
        at.approvals.close("t1")
        at.approvals.close("t1")
        await at.outbox.wait_idle()
        assert [text for text in at.transport.texts if "不用管了" in text] == [
            "A1 不用管了：提问已经撤回或结束，没有做。",
            "A2 不用管了：提问已经撤回或结束，没有做。",
        ]
        assert at.owner_says("同意 A1")
        assert at.resumed == []


@pytest.mark.parametrize("line", ["hello", "同意", "user2: 同意 A1"])
async def test_a_line_of_the_terminal_that_names_no_number_is_said(line: str) -> None:
    async with desk() as at:
        at.approvals.ask_on(print)
        assert not at.approvals.answer(line)


async def test_without_a_terminal_no_line_is_an_answer() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        assert not at.approvals.answer("同意 A1")
