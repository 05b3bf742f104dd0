"""The oracle of servers that refuse, number anew or forget: what is planted is noticed."""

from __future__ import annotations

from typing import Any

from adapters.simulator.call import SentMessage
from adapters.simulator.wire import text
from adapters.simulator.world import other_id
from bot.core.conversation import Conversation
from bot.core.journal import MessageErased
from tests.fallback_lines import SORRY
from tests.torture.evidence import Evidence
from tests.torture.journal import Journal, Turn
from tests.torture.model import Asked
from tests.torture.moments import SERVERS, Crossed, Kind, draw
from tests.torture.servers import OWNER, OwnRecall, judge_server
from tests.torture.stage import ACCOUNT, ONE, Question, _quote

WHERE = f"{ACCOUNT}:group:{ONE}"


def said(words: str, *, quotes: int = 7) -> SentMessage:
    return SentMessage(9, (*_quote(quotes), text(words)), group_id=ONE)


def forward(*words: str) -> SentMessage:
    nodes = [{"type": "node", "data": {"content": [text(one)]}} for one in words]
    return SentMessage(9, tuple(nodes), group_id=ONE)


def complaints(*delivered: SentMessage, kind: str = "refused", state: str = "confirmed", **more: Any) -> list[str]:
    own_recalls = more.pop("own_recalls", [])
    journal = Journal(integrity="ok")
    journal.sends = [{"send_id": "s", "turn_id": "t", "conversation": WHERE, "state": state, "segments": '["A:q1"]'}]
    journal.sends[0]["message_id"] = "9"
    journal.turns = [Turn("t", WHERE, "7", user="", round=None, stop="answered", closed=True, retry_of="")]
    recorded: dict[str, Any] = {
        "kind": Kind.REFUSED,
        "questions": [Question("q1", kind, 0, group=ONE, message_id=7)],
        "sent": list(delivered),
        "delivered": list(delivered),
        "delivered_in": [0] * len(delivered),
        "asked": [],
        "asked_in": [],
        "asked_again": [],
        "invalid": [],
        "promised": [[]],
        "rung": [],
        "journal": journal,
        "errors": [],
        "log": [],
    }
    return judge_server(Evidence(**recorded | more), own_recalls).complaints


def test_a_refused_answer_comes_without_its_quote_or_is_apologised_for() -> None:
    assert complaints(said("A:q1")) == []
    assert complaints(said("A:q1\n@user2", quotes=0)) == []
    assert complaints(said(SORRY), state="refused") == []
    for told in ([], [SentMessage(9, (text("发到 群的消息没有送出：no"),), user_id=OWNER)]):
        (complaint,) = complaints(*told, state="refused")
        assert "was refused, and its asker heard nothing" in complaint


def test_a_refused_answer_that_is_told_as_confirmed_is_noticed() -> None:
    assert any("reached nobody, and is confirmed" in one for one in complaints())
    assert complaints(state="unknown") == []


def test_an_answer_that_comes_twice_in_any_form_is_noticed() -> None:
    for twice in ([said("A:q1"), said("A:q1", quotes=0)], [forward("A:q1\n\nmore", "and more"), said("A:q1\n\nmore")]):
        assert any("was delivered 2 times" in one for one in complaints(*twice, kind="long"))
    assert complaints(forward("A:q1\n\nmore", "and more"), kind="long") == []


def test_an_answer_may_quote_the_id_of_a_history() -> None:
    assert complaints(said("A:q1", quotes=other_id(7)), kind="plain") == []
    assert complaints(said("A:q1", quotes=8), kind="plain") != []


def test_own_words_that_were_recalled_are_told_to_no_model_any_more() -> None:
    recall = OwnRecall("A:q1", WHERE, 9, life=0, asked=1)
    later = Question("q2", "plain", 0, group=ONE, message_id=8)
    erased = [[MessageErased(Conversation(ACCOUNT, "group", ONE), "9")], []]

    def told(words: str, *, life: int, promised: list[Any], of: OwnRecall = recall) -> list[str]:
        messages = ({"role": "user", "content": words},)
        found = complaints(
            said("A:q1"),
            said("A:q2", quotes=8),
            questions=[Question("q1", "plain", 0, group=ONE, message_id=7), later],
            asked=[Asked(WHERE, "plain", "q2", 0, messages)],
            asked_in=[life],
            promised=promised,
            own_recalls=[of],
        )
        return [one for one in found if "was recalled, and told" in one]

    assert told("A:q1 and more", life=0, promised=erased)
    assert told("A:q1", life=1, promised=erased)
    assert not told("A:q1", life=1, promised=[[], []])  # the recall may never have been heard
    assert not told("A:q10", life=0, promised=erased)
    unknown = OwnRecall("A:q1", WHERE, 77, life=0, asked=1)  # of a send whose answer never came
    assert not told("A:q1", life=0, promised=erased, of=unknown)


def test_servers_have_their_turn_but_for_those_that_are_wrong_without_a_death() -> None:
    usual = Crossed({"a": 9}, 9, 9)
    special = dict.fromkeys((Kind.KEEPING, Kind.DRAFTING, Kind.REMINDING, Kind.UNLIMITED, *SERVERS), usual)
    assert set(SERVERS) <= {moment.kind for moment in draw(1, 60, usual, special)}
    left = draw(1, 60, usual, special, without=[Kind.REFUSED])
    assert {moment.kind for moment in left} & set(SERVERS) == set(SERVERS) - {Kind.REFUSED}
