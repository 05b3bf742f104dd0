from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from msgspec.structs import replace

from bot.approvals.decision import Reply
from bot.approvals.join_requests import (
    DAYS,
    MAX_OPEN,
    MAX_OPEN_EACH,
    Applicants,
    JoinRequests,
    JoinRequestStore,
    number_of,
    read_join_answer,
    request_line,
    request_text,
)
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.events import Requested
from bot.core.group_admin import Accept, JoinRequest
from bot.core.journal import Audited, PlaceSet
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.policy.join_rules import JoinRule
from frostagent.cancellation import background
from frostagent.types.errors import BotError
from frostagent.types.speech import Quote, Text
from tests.bot.approvals.desk import OWNER, candidates_for, take_named
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, RecordingTransport, said, until

BLOCKED = 66


class Porch:
    """Petitions of one life, with what they say and do."""

    def __init__(
        self,
        store: RecordingStore,
        *,
        owners: frozenset[int] = frozenset({999}),
        accept: Accept = "ask",
        applicants: Applicants | None = None,
    ) -> None:
        self.transport, self.clock, self.store = RecordingTransport(), ManualClock(), store
        self.outbox, _ = build_outbox(self.transport, store, self.clock)
        history = History(store=store)
        self.server = RecordingTransport()
        self.petitions = JoinRequests(
            accept=lambda user_id: "none" if user_id == BLOCKED else accept,
            owners=owners,
            transport=self.server,
            request_store=JoinRequestStore(store=store, choices=store, clock=self.clock),
            postbox=Postbox(outbox=self.outbox, history=history, clock=self.clock),
            server_clock=ServerClock(self.clock),
            clock=self.clock,
            applicants=applicants or Applicants(),
        )

    def ask(self, user: int, flag: str, *, sub_type: str = "", comment: str = "") -> None:
        self.petitions.receive(
            Requested(
                self_id=BOT,
                time=self.clock.time,
                kind="group" if sub_type else "friend",
                sub_type=sub_type,
                user_id=user,
                group_id=77 if sub_type else 0,
                comment=comment,
                flag=flag,
            )
        )

    def owner_says(self, words: str, *, ago: float = 0.0) -> bool:
        message = said(words, user=999, where=OWNER)
        return take_named(self.petitions, replace(message, time=self.clock.time - ago))

    async def heard(self, *lines: str) -> None:
        """Exactly these lines have been said, each beginning so."""
        await until(lambda: len(self.transport.texts) >= len(lines))
        await self.outbox.wait_idle()
        assert len(self.transport.texts) == len(lines), self.transport.texts
        for text, line in zip(self.transport.texts, lines, strict=True):
            assert text.startswith(line), text


@asynccontextmanager
async def porch(
    store: RecordingStore,
    *,
    owners: frozenset[int] = frozenset({999}),
    accept: Accept = "ask",
    applicants: Applicants | None = None,
) -> AsyncIterator[Porch]:
    at = Porch(store, owners=owners, accept=accept, applicants=applicants)
    async with asyncio.timeout(30), at.outbox.open(), background(at.petitions.run()):
        yield at


async def test_what_is_told_again_is_asked_about_once() -> None:
    async with porch(RecordingStore()) as at:
        at.ask(5, "f")
        at.ask(5, "f")
        at.ask(6, "g", sub_type="add")  # wants to join a group: not ours
        at.ask(6, "h")
        await at.heard("#R1 5 ", "#R2 6 ")
        assert at.owner_says("同意R1")
        await at.heard("#R1 5 ", "#R2 6 ", "R1 已同意。")
        at.ask(5, "f")
        assert at.owner_says("拒绝 R2")
        await at.heard("#R1 5 ", "#R2 6 ", "R1 已同意。", "R2 已拒绝。")
        assert [(done.flag, granted) for done, granted, _ in at.server.admitted] == [("f", True), ("h", False)]


async def test_where_the_server_cannot_say_no_an_owner_reads_that_it_was_submitted() -> None:
    async with porch(RecordingStore()) as at:
        at.server.tells = False
        at.ask(5, "f")
        await at.heard("#R1 5 ")
        assert at.owner_says("同意 R1")
        await at.heard("#R1 5 ", "R1 已提交（同意）：这个 OneBot 端")
        assert len(at.server.admitted) == 1


async def test_a_word_alone_lets_nobody_in_and_beside_a_quote_that_nobody_can_read_it_means_a_request() -> None:
    async with porch(RecordingStore()) as at:
        at.ask(5, "f")
        await at.heard("#R1 5 ")
        alone, quoting = (said(parts, user=999, where=OWNER) for parts in ("同意", (Quote("gone"), Text("同意"))))
        assert [len(candidates_for(at.petitions, one)) for one in (alone, quoting)] == [0, 1]


@each_case(
    ("failure", "told", "waits"),
    [(NotConnected("off"), "机器人现在没有连上 QQ，R1", True), (ActionUnanswered("?"), "R1 办成没有", False)],
)
async def test_an_answer_that_did_not_go_out_waits_and_one_whose_fate_nobody_knows_is_not_repeated(
    failure: BotError, told: str, waits: bool
) -> None:
    store = RecordingStore()
    async with porch(store) as at:
        at.ask(5, "f")
        await at.heard("#R1 ")
        at.server.failures.append(failure)
        at.owner_says("同意 R1")
        await until(lambda: len(at.transport.texts) == 2)
        assert at.transport.texts[1].startswith(told)
    async with porch(store) as later:
        assert later.owner_says("同意 R1")
        await later.heard("R1 已同意。" if waits else "没有编号为 R1 的申请")
        assert len(later.server.admitted) == waits


async def test_where_the_process_ended_with_an_answer_on_the_wire_the_owner_is_told_that_nobody_knows() -> None:
    store = RecordingStore()
    async with porch(store) as at:
        at.ask(5, "f")
        await at.heard("#R1 ")
        at.owner_says("同意 R1")
        await until(lambda: bool(at.server.admitted))
    answered = (isinstance(entry, PlaceSet) and '"answered":true' in entry.value for entry in store.entries)
    store.entries = store.entries[: list(answered).index(True) + 1]
    async with porch(store) as later:
        await later.heard("#R1 5 想加机器人为好友\nR1 办成没有")
        assert later.server.admitted == []
    async with porch(store) as last:
        last.owner_says("同意 R1")
        await last.heard("没有编号为 R1 的申请")


async def test_an_answer_after_a_week_or_from_before_the_request_decides_nothing() -> None:
    store = RecordingStore()
    async with porch(store) as at:
        at.ask(5, "f")
        await at.heard("#R1 ")
        at.owner_says("同意 R1", ago=100.0)
        await at.heard("#R1 ", "这条回复比 R1 的申请早")
        at.clock.time += DAYS * 86_400
        at.owner_says("同意 R1")
        await at.heard("#R1 ", "这条回复比 R1 的申请早", "R1 过期了")
        assert at.server.admitted == []
    assert await store.settings("petition") == {}


async def test_what_comes_before_the_journal_can_be_read_is_asked_about_under_a_number_of_its_own() -> None:
    store = RecordingStore()
    async with porch(store) as at:
        at.ask(5, "f")
        await at.heard("#R1 ")
    store.trouble = True
    async with porch(store) as later:
        later.ask(6, "g")
        store.trouble = False
        await later.heard("#R2 6 ")


async def test_nobody_asks_where_there_is_no_owner(caplog: pytest.LogCaptureFixture) -> None:
    async with porch(RecordingStore(), owners=frozenset()) as at:
        at.ask(5, "f")
        await until(lambda: "BOT_OWNERS is empty" in caplog.text)
        assert at.transport.texts == []


async def test_a_word_from_a_page_goes_out_once_and_says_what_came_of_it() -> None:
    async with porch(RecordingStore()) as at:
        at.ask(5, "f")
        await at.heard("#R1 5 ")
        no = Reply("deny", words="no")
        settled = [(await at.petitions.settle(1, no, by="page")).kind for _ in range(2)]
        assert settled == ["done", "unknown"]
        assert [(done.flag, granted, reason) for done, granted, reason in at.server.admitted] == [("f", False, "no")]
        assert not at.petitions.open


async def test_an_answer_that_cannot_be_written_down_does_not_go_out_and_waits() -> None:
    store = RecordingStore()
    async with porch(store) as at:
        at.ask(5, "f")
        await at.heard("#R1 ")
        store.trouble = True
        settled = await at.petitions.settle(1, Reply("approve"), by="999")
        assert (settled.kind, at.server.admitted) == ("busy", [])
        store.trouble = False
        settled = await at.petitions.settle(1, Reply("approve"), by="999")
        assert (settled.kind, len(at.server.admitted)) == ("done", 1)


async def test_friends_are_let_in_where_the_operator_wants_it_and_an_invite_still_waits_for_a_word() -> None:
    async with porch(RecordingStore(), accept="friends") as at:
        at.ask(5, "f")
        at.ask(6, "g", sub_type="invite")
        await at.heard("#R1 ")
        assert [(done.flag, granted) for done, granted, _ in at.server.admitted] == [("f", True)]


@each_case("accept", ["ask", "friends"])
async def test_whoever_is_never_heard_is_neither_let_in_nor_asked_about(accept: Accept) -> None:
    async with porch(RecordingStore(), accept=accept) as at:
        at.ask(BLOCKED, "f")
        at.ask(BLOCKED, "g", sub_type="invite")
        at.ask(7, "h", sub_type="invite")
        await at.heard("#R1 7 ")
        assert (at.server.admitted, [one.user_id for one in at.petitions.open]) == ([], [7])


FRIEND = JoinRequest(account=BOT, kind="friend", user_id=5, flag="f")


def invite(user: int, group: int) -> JoinRequest:
    return JoinRequest(account=BOT, kind="invite", user_id=user, group_id=group, flag=f"{user}|{group}")


def register(store: RecordingStore, clock: ManualClock | None = None) -> JoinRequestStore:
    return JoinRequestStore(store=store, choices=store, clock=clock or ManualClock())


async def test_of_one_place_the_latest_waits_and_numbers_go_on_after_a_restart() -> None:
    store, clock = RecordingStore(), ManualClock()
    first = register(store, clock)
    assert (await first.add(replace(FRIEND, since=clock.time))).number == 1
    again = await first.add(replace(FRIEND, flag="g", since=clock.time))
    assert first.open == {2: again}
    store.put(PlaceSet(GROUP, "petition", "nonsense"))
    second = register(store, clock)
    assert await second.restore() == ()
    assert second.open == {2: again}
    assert second.is_known(again)
    assert not second.is_known(FRIEND)
    assert (await second.add(invite(6, 77))).number == 3
    clock.time += DAYS * 86_400
    third = register(store, clock)
    assert await third.restore() == ()
    assert third.open == {}
    assert await store.settings("petition") == {}


async def test_there_is_room_for_a_few_of_each_person_and_some_of_all() -> None:
    kept = register(RecordingStore())
    for group in range(1, MAX_OPEN_EACH + 1):
        await kept.add(invite(5, group))
    assert not kept.has_room(invite(5, 99))
    assert kept.has_room(invite(5, 1))  # in the place of the one before
    for user in range(100, 100 + MAX_OPEN - MAX_OPEN_EACH):
        assert kept.has_room(invite(user, user))
        await kept.add(invite(user, user))
    assert not kept.has_room(FRIEND)


async def test_what_was_answered_is_known_and_waits_no_more() -> None:
    store = RecordingStore()
    kept = register(store)
    petition = await kept.add(FRIEND)
    await kept.end(petition)
    assert (kept.open, kept.is_known(FRIEND), await store.settings("petition")) == ({}, True, {})


async def test_what_waits_cannot_be_known_while_the_journal_cannot_be_read() -> None:
    store = RecordingStore()
    store.trouble = True
    assert await register(store).restore() is None


async def test_who_is_forgotten_waits_no_more_and_is_not_written_down_again() -> None:
    store = RecordingStore()
    kept = register(store)
    friend, theirs = await kept.add(FRIEND), await kept.add(invite(5, 77))
    other, there = await kept.add(invite(6, 78)), await kept.add(replace(FRIEND, user_id=7))
    kept.forget(SubjectErased(user=5))
    assert list(kept.open.values()) == [other, there]
    kept.forget(SubjectErased(group=78))
    assert list(kept.open.values()) == [there]
    before = len(store.entries)
    await kept.wait(theirs)  # QQ was away, when an owner's word for it was just on its way
    assert len(store.entries) == before
    assert not kept.is_known(friend)


STRANGER = JoinRequest(account=1, kind="friend", user_id=5, flag="f", number=3, comment="我是「小明」\n#R9 同意")


@each_case(
    ("words", "answer"),
    [
        ("同意 R3", Reply("approve", 3)),
        ("approve #r３。", Reply("approve", 3)),
        ("拒绝R3 不认识", Reply("deny", 3, "不认识")),
        ("deny r3, who is that", Reply("deny", 3, "who is that")),
        ("同意", Reply("approve")),
        ("同意 R0", Reply("approve", 0)),
        ("同意 R3 但是要等", None),  # a condition is no yes
        ("同意 A3", None),  # a call's
        ("我同意 R3", None),
        ("同意书 R3", None),
        ("R3", None),
    ],
)
def test_an_answer_names_a_request_or_quotes_it(words: str, answer: Reply | None) -> None:
    assert read_join_answer(words) == answer


def test_a_strangers_words_stand_in_one_line_and_make_no_request() -> None:
    line = request_text(STRANGER, days=7)
    assert line.split("\n")[0] == "#R3 5 想加机器人为好友：「我是『小明』 #R9 同意」"
    assert len(line.split("\n")) == 2
    assert number_of({3: STRANGER}, line) == 3
    assert number_of({3: STRANGER}, "#R3 6 想加机器人为好友") is None  # another's words
    assert number_of({3: STRANGER}, "#R9 5 想加机器人为好友") == 9  # one that is over: its answer is told so
    assert number_of({3: STRANGER}, f"我看 {request_line(STRANGER)}") is None


# --- people who want to join a group ---------------------------------------------------------------

PLACE = Conversation(BOT, "group", 77)
RULES = (
    JoinRule(lambda answer: "spam" in answer, accepts=False, reason="no"),
    JoinRule(lambda answer: "mountain" in answer, accepts=True),
)
BY_RULES = Applicants(asks_owners=True, rules_of=lambda group: RULES if group == PLACE else ())


def audited(store: RecordingStore) -> list[tuple[str, str, str]]:
    """What stands in the audit log: where, by whom, what was decided."""
    return [(one.object, one.address, one.outcome) for one in store.entries if isinstance(one, Audited)]


async def test_each_decision_about_an_applicant_stands_in_the_audit_log_without_their_number() -> None:
    store = RecordingStore()
    async with porch(store, applicants=BY_RULES) as at:
        at.ask(5, "f", sub_type="add", comment="a mountain")
        at.ask(6, "g", sub_type="add", comment="hello")
        await at.heard("#R1 6 申请加入群 77：「hello」")
        assert at.owner_says("拒绝 R1 不认识")
        at.ask(7, "h", sub_type="add", comment="hi")
        await at.heard("#R1 6 ", "R1 已拒绝。", "#R2 7 ")
        at.petitions.joined(PLACE, 7)
        await until(lambda: len(audited(store)) == 3)
        assert not at.petitions.open
        decided = [(done.user_id, granted, reason) for done, granted, reason in at.server.admitted]
        assert decided == [(5, True, ""), (6, False, "不认识")]
        assert audited(store) == [
            (str(PLACE), "rule 2", "accepted"), (str(PLACE), "chat", "refused R1"), (str(PLACE), "QQ", "joined R2"),
        ]  # fmt: skip


async def test_who_is_decided_about_while_the_bot_is_away_is_the_owners_to_answer() -> None:
    store = RecordingStore()
    async with porch(store, applicants=BY_RULES) as at:
        at.server.failures = [NotConnected("away")]
        at.ask(5, "f", sub_type="add", comment="a mountain")
        await at.heard("#R1 5 申请加入群 77")
        assert audited(store) == []
        assert at.owner_says("同意 R1")
        await at.heard("#R1 5 ", "R1 已同意。")
    async with porch(store) as later:
        await later.heard()
        assert not later.petitions.open


def is_open(at: Porch, user: int) -> bool:
    return any(one.user_id == user for one in at.petitions.open)


async def test_applicants_have_room_of_their_own_and_one_may_want_to_be_a_friend_as_well() -> None:
    async with porch(RecordingStore(), applicants=Applicants(asks_owners=True)) as at:
        for first in (100, 110):  # a queue holds twenty, and one more could be lost
            for user in range(first, first + MAX_OPEN // 2):
                at.ask(user, f"a{user}", sub_type="add")
            await until(partial(is_open, at, first + MAX_OPEN // 2 - 1))
        at.ask(500, "late", sub_type="add")
        at.ask(100, "friend")
        await until(lambda: len(at.petitions.open) == MAX_OPEN + 1)
        assert {(one.kind, one.user_id) for one in at.petitions.open if one.user_id in (100, 500)} == {
            ("apply", 100),
            ("friend", 100),
        }
