"""A console shows all bots of a cluster as one, says who is missing, and passes on a word to whom it concerns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from bot.console import cluster_console, console_backend
from bot.console.cluster_console import FAILURES, ClusterConsole, merge_statuses
from bot.console.console_backend import DRAFTS, answer_query
from bot.core.cluster_messages import ClusterPartition, partition_of
from bot.core.cluster_queries import (
    ClusterQuery,
    ClusterReply,
    ContextQuery,
    ContextReply,
    DecisionResult,
    OwnerDecision,
    PartitionStatus,
    StatusQuery,
)
from bot.core.console_views import (
    AccountState,
    Failure,
    ModelState,
    OutboxState,
    State,
    WaitingCall,
    WaitingDraft,
    WaitingJoinRequest,
)
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.query_results import Ignored
from bot.core.settlement import Settled
from bot.memory.newest import Newest
from frostagent.types.conversation import Conversation
from tests.fakes import SteppedClock

SHARE = ClusterPartition(0, 2)
HERE, THERE = (next(account for account in range(1, 99) if partition_of(account, 2) == part) for part in range(2))
AT_HERE, AT_THERE = Conversation(HERE, "group", 4242), Conversation(THERE, "group", 4242)


def state(account: int, at: float, *, cooldown: float) -> State:
    where = Conversation(account, "group", 4242)
    return State(
        accounts=(AccountState(account, online=True),),
        active=1,
        waiting=2,
        models=(ModelState("m", cooldown, is_priced=account == HERE), ModelState(f"of {account}")),
        place="postgresql",
        in_trouble=account == THERE,
        unwritten=3,
        calls=(WaitingCall(1, where, "wipe", 9.0),),
        petitions=(WaitingJoinRequest(1, 5, 0, "", 9.0, account),),
        failures=tuple(Failure(at + number, "t", "broke") for number in reversed(range(FAILURES))),
        paused=(where,),
        outbox=(OutboxState(where, 1, 0, at),),
        ignored=(Ignored(where, 5, "muted", at),),
    )


def drafts(account: int, *expire: float) -> tuple[WaitingDraft, ...]:
    where = Conversation(account, "group", 4242)
    return tuple(WaitingDraft(number, where, "x", "hi", "ho", at) for number, at in enumerate(expire))


OWN = PartitionStatus(0, state(HERE, 5.0, cooldown=0.0), 2, drafts(HERE, 1.0, 3.0), 4, {"": (), "cat": ("a", "1")})
ELSEWHERE = PartitionStatus(
    1, state(THERE, 4.5, cooldown=7.0), 5, drafts(THERE, 2.0, *[0.5] * DRAFTS), 1, {"cat": ("b", "1"), "dog": ("c",)}
)


def test_what_several_show_is_one_page() -> None:
    found = merge_statuses((OWN, ELSEWHERE), absent=2)
    told = found.state
    assert [one.account for one in told.accounts] == [HERE, THERE]
    assert (told.active, told.waiting, told.unwritten, told.in_trouble, told.place) == (2, 4, 6, True, "postgresql")
    assert [(one.name, one.cooldown) for one in told.models] == [("m", 7.0), (f"of {HERE}", 0.0), (f"of {THERE}", 0.0)]
    assert [one.name for one in told.models if one.is_priced] == ["m"]
    assert [one.where for one in told.calls] == [AT_HERE, AT_THERE]
    assert [one.account for one in told.petitions] == [HERE, THERE]
    assert told.paused == (AT_HERE, AT_THERE)
    assert [one.at for one in told.failures][:3] == [24.0, 23.5, 23.0]
    assert len(told.failures) == FAILURES
    assert [one.where for one in told.outbox] == [AT_THERE, AT_HERE]
    assert [one.where for one in told.ignored] == [AT_THERE, AT_HERE]
    assert told.absent == 2
    assert [one.expires for one in found.drafts] == [3.0, 2.0, 1.0, *[0.5] * (DRAFTS - 3)]
    assert (found.more, found.waiting) == (4 + 1 + 3, 7)
    assert found.personas == {"": (), "cat": ("a", "1", "b"), "dog": ("c",)}
    assert merge_statuses((OWN,)).state == OWN.state


class Others:
    """One other bot, which says what it is to, or raises it; what it was asked, and about which account."""

    def __init__(self, says: ClusterReply | Exception | None, count: int = 1, *also: ClusterReply) -> None:
        self.says, self.count, self.also = says, count, also
        self.asked: list[tuple[int, ClusterQuery]] = []

    async def ask_all(self, ask: ClusterQuery, /) -> tuple[ClusterReply, ...]:
        self.asked.append((0, ask))
        return () if self.says is None or isinstance(self.says, Exception) else (self.says, *self.also)

    async def ask(self, account: int, ask: ClusterQuery, /) -> ClusterReply:
        self.asked.append((account, ask))
        if self.says is None or isinstance(self.says, Exception):
            raise self.says or AssertionError(ask)
        return self.says


def seen(others: Others) -> Any:
    journal = SimpleNamespace(share=SHARE, shown=None)
    return SimpleNamespace(journal=journal, others=others, newest=Newest(), clock=SteppedClock())


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> list[ClusterQuery]:
    """This bot shows that, and keeps what it is to do."""
    done: list[ClusterQuery] = []

    async def read_status(_backend: Any, *, with_drafts: bool) -> PartitionStatus:
        done.append(StatusQuery(with_drafts))
        return OWN

    async def decide(_rooms: Any, decision: OwnerDecision) -> Settled:
        done.append(decision)
        return Settled("done", "here")

    def render_context(_rooms: Any, where: Conversation) -> tuple[str, ...]:
        done.append(ContextQuery(where))
        return ("here",)

    monkeypatch.setattr(cluster_console, "read_status", read_status)
    monkeypatch.setattr(console_backend, "read_status", read_status)
    monkeypatch.setattr(console_backend, "decide", decide)
    monkeypatch.setattr(console_backend, "render_context", render_context)
    monkeypatch.setattr(cluster_console, "count_decisions", lambda _rooms: 2)
    return done


async def test_all_are_asked_and_who_says_nothing_is_counted(own: list[ClusterQuery]) -> None:
    others = Others(ELSEWHERE, count=3)
    shown = ClusterConsole(seen(others))
    assert shown.count_waiting() == 2
    found = await shown.look(with_drafts=True)
    assert found == merge_statuses((OWN, ELSEWHERE), absent=2)
    assert (others.asked, own) == ([(0, StatusQuery(with_drafts=True))], [StatusQuery(with_drafts=True)])
    assert shown.count_waiting() == 2 + 5
    others.says = DecisionResult(Settled("done", ""))  # no answer to that question
    assert (await shown.look()).state.absent == 3
    assert shown.count_waiting() == 2


async def test_a_word_is_carried_out_by_who_has_the_account(own: list[ClusterQuery]) -> None:
    there, here = (OwnerDecision(account, "A", 1, allows=True) for account in (THERE, HERE))
    others = Others(DecisionResult(Settled("over", "there")))
    shown = ClusterConsole(seen(others))
    assert await shown.decide(here) == Settled("done", "here")
    assert (own, others.asked) == ([here], [])
    assert await shown.decide(there) == Settled("over", "there")
    assert (own, others.asked) == ([here], [(THERE, there)])


@pytest.mark.parametrize(
    ("says", "kind", "parts"),
    [
        (NotConnected("nobody"), "away", None),
        (ActionUnanswered("late"), "lost", None),
        (ELSEWHERE, "lost", None),
        (DecisionResult(Settled("busy", "")), "busy", None),
        (ContextReply(("there",)), "lost", ("there",)),
    ],
)
async def test_what_comes_of_it_where_that_does_not_go_well(
    says: ClusterReply | Exception, kind: str, parts: tuple[str, ...] | None
) -> None:
    shown = ClusterConsole(seen(Others(says)))
    assert (await shown.decide(OwnerDecision(THERE, "A", 1, allows=True))).kind == kind
    assert await shown.render_context(AT_THERE) == parts


async def test_the_prompt_of_a_chat_is_told_by_who_has_its_account(own: list[ClusterQuery]) -> None:
    others, anywhere = Others(ContextReply(("there",))), Conversation(0, "private", 0)
    shown = ClusterConsole(seen(others))
    assert [await shown.render_context(where) for where in (AT_HERE, AT_THERE, anywhere)] == [
        ("here",),
        ("there",),
        ("here",),
    ]
    assert (own, others.asked) == ([ContextQuery(AT_HERE), ContextQuery(anywhere)], [(THERE, ContextQuery(AT_THERE))])


async def test_another_bots_questions_are_answered_as_the_pages_own_are(own: list[ClusterQuery]) -> None:
    bot, word = seen(Others(None)), OwnerDecision(HERE, "D", 1, allows=False)
    assert await answer_query(bot, StatusQuery(with_drafts=True)) == OWN
    assert await answer_query(bot, word) == DecisionResult(Settled("done", "here"))
    assert await answer_query(bot, ContextQuery(AT_HERE)) == ContextReply(("here",))
    assert own == [StatusQuery(with_drafts=True), word, ContextQuery(AT_HERE)]


async def test_a_bot_alone_looks_at_nobody_else() -> None:
    shown = ClusterConsole(seen(alone := Others(None, count=0)))
    async with shown.open():
        assert (await shown.look()).state == OWN.state
        assert shown.feed.number == 0
    assert alone.asked == [(0, StatusQuery())]


async def test_who_answers_for_a_partition_that_another_has_by_now_is_shown_once() -> None:
    stale = replace(OWN, waiting=50)
    found = await ClusterConsole(seen(Others(ELSEWHERE, 2, ELSEWHERE, stale))).look()
    assert [one.account for one in found.state.accounts] == [HERE, THERE]
    assert (found.waiting, found.state.absent) == (7, 1)
