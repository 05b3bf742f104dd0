"""The oracle of drafts, with recorded ledgers and no process: what is planted is noticed."""

from __future__ import annotations

from typing import Any

from adapters.simulator.call import SentMessage
from adapters.simulator.wire import text
from tests.torture.drafting import OWNER, Wishes, judge_drafts
from tests.torture.evidence import Evidence
from tests.torture.journal import Journal
from tests.torture.model import Asked
from tests.torture.moments import Kind
from tests.torture.stage import ACCOUNT, ONE

DRAFT = "[草稿 D1 g]\nuser：plain#q1\n  A:q1\n回复"
SHOWN = SentMessage(1, (text(DRAFT),), user_id=OWNER)
SAID = SentMessage(2, (text("A:q1"),), group_id=ONE)
DONE = SentMessage(3, (text("D1 发出去了。"),), user_id=OWNER)


def complaints(
    *delivered: SentMessage, wanted: bool = True, prompt: str = "", sends: Any = (), answered: tuple[str, ...] = ()
) -> list[str]:
    asked = Asked(f"{ACCOUNT}:group:{ONE}", "last", "q2", 0, ({"role": "user", "content": prompt},))
    wishes = Wishes({"q1": "A:q1"} if wanted else {})
    wishes.requests.answered.update(answered)
    journal = Journal()
    journal.integrity, journal.sends = "ok", list(sends)
    evidence = Evidence(
        kind=Kind.DRAFTING,
        questions=[],
        sent=[],
        delivered=list(delivered),
        delivered_in=[],
        asked=[asked] if prompt else [],
        asked_in=[],
        asked_again=[],
        invalid=[],
        promised=[[]],
        rung=[],
        journal=journal,
        errors=[],
        log=[],
    )
    return judge_drafts(evidence, wishes).complaints


def test_what_is_published_is_there_once_and_told_as_said() -> None:
    assert complaints(SHOWN, SAID, DONE, prompt="我: A:q1") == []
    assert len(complaints(SHOWN, SAID, SAID)) == 1
    assert len(complaints(SHOWN, SAID, wanted=False)) == 1
    assert len(complaints(SHOWN, SAID, prompt="hm")) == 1
    assert len(complaints(SHOWN, SAID, prompt="A:q1 A:q1")) == 1


def test_what_is_not_published_is_lost_unless_nobody_knows() -> None:
    row = {"send_id": "published-1-a", "state": "unknown", "segments": ""}
    assert len(complaints(SHOWN)) == 1
    assert len(complaints(SHOWN, DONE)) == 2
    assert complaints(SHOWN, sends=[row], prompt="A:q1") == []
    assert complaints(SHOWN, wanted=False) == []
    assert len(complaints(SHOWN, wanted=False, prompt="A:q1")) == 1


def test_a_request_or_an_invite_is_answered_once_if_it_was_granted() -> None:
    friend, invite = (SentMessage(4, (text(f"R{number} 已同意。"),), user_id=OWNER) for number in (1, 2))
    assert complaints(friend, invite, wanted=False, answered=("f", "g")) == []
    assert complaints(friend, wanted=False, answered=("f", "g")) == []  # the owner had not heard of it yet
    assert len(complaints(friend, invite, wanted=False, answered=("f",))) == 1
    assert len(complaints(friend, invite, wanted=False, answered=("f", "g", "g"))) == 1
