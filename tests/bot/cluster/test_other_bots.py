"""All bots of a cluster are shown as one, with who is missing, and a word is passed on to whom it concerns."""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace

from adapters.broker.partitions import partition_of
from adapters.broker.queries import ClusterQuery, ClusterReply, ContextQuery, ContextReply, DecisionResult, StatusQuery
from adapters.broker.requests import RequestExchange
from bot.cluster.other_bots import FAILURES, ClusterBots, merge_statuses
from bot.console.console_backend import DRAFTS
from bot.core.console_views import (
    AccountState,
    BotStatus,
    Failure,
    ModelState,
    OutboxState,
    OwnerDecision,
    State,
    WaitingCall,
    WaitingDraft,
    WaitingJoinRequest,
)
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.other_bots import ALONE
from bot.core.query_results import Ignored
from bot.core.settlement import Settled

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


OWN = BotStatus(0, state(HERE, 5.0, cooldown=0.0), 2, drafts(HERE, 1.0, 3.0), 4, {"": (), "cat": ("a", "1")})
ELSEWHERE = BotStatus(
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


def asking(others: Others) -> ClusterBots:
    return ClusterBots(cast("RequestExchange", others))


async def test_all_are_asked_and_who_says_nothing_is_counted() -> None:
    others = Others(ELSEWHERE, count=3)
    bots = asking(others)
    assert bots.waiting == 0
    assert await bots.add_statuses(OWN, with_drafts=True) == merge_statuses((OWN, ELSEWHERE), absent=2)
    assert others.asked == [(0, StatusQuery(with_drafts=True))]
    assert bots.waiting == 5
    others.says = DecisionResult(Settled("done", ""))  # no answer to that question
    assert (await bots.add_statuses(OWN)).state.absent == 3
    assert bots.waiting == 0


async def test_a_word_is_passed_on_with_its_account() -> None:
    there = OwnerDecision(THERE, "A", 1, allows=True)
    others = Others(DecisionResult(Settled("over", "there")))
    assert await asking(others).decide(there) == Settled("over", "there")
    assert others.asked == [(THERE, there)]


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
    bots = asking(Others(says))
    assert (await bots.decide(OwnerDecision(THERE, "A", 1, allows=True))).kind == kind
    assert await bots.render_context(AT_THERE) == parts


async def test_the_prompt_of_a_chat_is_told_by_who_has_its_account() -> None:
    others = Others(ContextReply(("there",)))
    assert await asking(others).render_context(AT_THERE) == ("there",)
    assert others.asked == [(THERE, ContextQuery(AT_THERE))]


async def test_with_no_other_bot_the_status_is_the_bots_own() -> None:
    assert await asking(Others(None, count=0)).add_statuses(OWN) == merge_statuses((OWN,))
    assert await ALONE.add_statuses(OWN, with_drafts=True) == OWN
    assert ALONE.waiting == 0
    assert not ALONE.can_alarm


async def test_who_answers_for_a_partition_that_another_has_by_now_is_shown_once() -> None:
    stale = replace(OWN, waiting=50)
    found = await asking(Others(ELSEWHERE, 2, ELSEWHERE, stale)).add_statuses(OWN)
    assert [one.account for one in found.state.accounts] == [HERE, THERE]
    assert (found.waiting, found.state.absent) == (7, 1)
