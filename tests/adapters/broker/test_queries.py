"""What bots ask each other comes over the wire as it was, with all that a page shows."""

from __future__ import annotations

from adapters.broker.payloads import VERSION, pack, unpack
from adapters.broker.queries import ClusterQuery, ClusterReply, ContextQuery, ContextReply, DecisionResult, StatusQuery
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
from bot.core.query_results import Ignored
from bot.core.settlement import Settled
from frostagent.types.runs import Led
from tests.cases import each_case
from tests.fakes import GROUP

STATE = State(
    accounts=(AccountState(10001, online=True, server="NapCat"),),
    active=2,
    waiting=1,
    models=(ModelState("m", 3.5),),
    place="postgresql",
    in_trouble=True,
    unwritten=4,
    calls=(
        WaitingCall(1, GROUP, "擦掉", 9.0, "小明", "please", Led(people=True, names=("x",), read=("web",)), "群"),
        WaitingCall(2, GROUP, "wipe", 9.0, led="别人的话"),
    ),
    petitions=(WaitingJoinRequest(1, 5, 77, "让我进", 9.0, 10001),),
    failures=(Failure(1.0, "t1", "it broke"),),
    paused=(GROUP,),
    outbox=(OutboxState(GROUP, 1, 2, 3.0),),
    ignored=(Ignored(GROUP, 5, "muted", 1.0),),
    absent=1,
)
DRAFT = WaitingDraft(7, GROUP, "小明", "hi", "ho", 9.0, "群")


@each_case(
    "ask",
    [StatusQuery(), StatusQuery(with_drafts=True), OwnerDecision(10001, "D", 7, True, "别的话"), ContextQuery(GROUP)],
)
def test_a_question_comes_as_it_was(ask: ClusterQuery) -> None:
    assert unpack(ClusterQuery, pack(ask), VERSION) == ask


@each_case(
    "told",
    [
        BotStatus(3, STATE, 5, (DRAFT,), 2, {"": (), "cat": ("10001:group:1",)}),
        DecisionResult(Settled("refused", "QQ 没有接受")),
        ContextReply(("one", "两")),
    ],
)
def test_an_answer_comes_as_it_was(told: ClusterReply) -> None:
    assert unpack(ClusterReply, pack(told), VERSION) == told
