"""The oracle of the kill test, with recorded ledgers and no process: what is planted is noticed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapters.simulator.call import SentMessage
from adapters.simulator.wire import text
from bot.core.conversation import Conversation
from bot.core.journal import Entry, MessageErased, MessageObserved
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import opening, steering
from tests.cases import each_case
from tests.fakes import said
from tests.fallback_lines import SORRY
from tests.torture.evidence import Evidence
from tests.torture.journal import Journal, Turn, read_journal
from tests.torture.model import Asked
from tests.torture.moments import Kind
from tests.torture.oracle import judge
from tests.torture.stage import ACCOUNT, ONE, Question, _quote

QUESTION = Question("q1", "plain", 0, group=ONE, effect="ring", message_id=7)


def answer(words: str = "F:q1", *, quotes: int = 7) -> SentMessage:
    return SentMessage(9, (*_quote(quotes), text(words)), group_id=ONE)


def evidence(**more: Any) -> Evidence:
    """One question in a first life, answered in a second and last one, with its effect."""
    recorded: dict[str, Any] = {
        "kind": Kind.KILL,
        "questions": [QUESTION],
        "sent": [answer()],
        "delivered": [answer()],
        "delivered_in": [1],
        "asked": [],
        "asked_in": [],
        "asked_again": [],
        "invalid": [],
        "promised": [[], []],
        "rung": ["ring q1"],
        "journal": Journal(integrity="ok"),
        "errors": [],
        "log": [],
    }
    return Evidence(**recorded | more)


def complaints(**more: Any) -> list[str]:
    return judge(evidence(**more)).complaints


def test_where_all_is_well_nothing_is_said() -> None:
    assert complaints() == []


def test_a_second_answer_is_noticed_at_either_end_of_the_wire() -> None:
    twice = [answer(), answer()]
    assert complaints(delivered=twice, delivered_in=[0, 1]) == [f"{QUESTION} was answered 2 times: ['F:q1', 'F:q1']"]
    assert complaints(sent=twice) == [f"{QUESTION} was answered 2 times: ['F:q1', 'F:q1']"]


def test_a_polite_line_beside_an_answer_is_a_second_answer() -> None:
    (complaint,) = complaints(delivered=[answer(), answer(SORRY)], delivered_in=[0, 1])
    assert "was answered 2 times" in complaint


def test_a_second_effect_is_noticed_and_one_that_never_was() -> None:
    assert complaints(rung=["ring q1", "ring q1"]) == ["a tool did 2 times: ring q1"]
    assert complaints(rung=[]) == ["a tool never did: ring q1"]


def test_only_where_the_journal_was_deleted_before_any_answer_an_effect_may_come_again() -> None:
    twice = {"kind": Kind.GONE, "rung": ["ring q1", "ring q1"]}
    assert complaints(**twice) == []
    assert complaints(**twice, delivered_in=[0]) == ["a tool did 2 times: ring q1"]


def observed() -> MessageObserved:
    message = said("plain", message_id="7", where=Conversation(ACCOUNT, "group", ONE))
    return MessageObserved(message, overheard=False)


def test_a_question_that_was_heard_and_lost_is_noticed() -> None:
    journal = Journal(integrity="ok", messages={(QUESTION.where, "7"): [{}]})
    silence = {"sent": [], "delivered": [], "delivered_in": [], "rung": [], "journal": journal}
    assert complaints(**silence) == []  # nobody knows that it was heard
    (complaint,) = complaints(**silence, promised=[[observed()], []])
    assert "got no reply (heard: True)" in complaint


def test_a_loss_is_excused_by_a_reason_that_is_counted() -> None:
    silence = {"sent": [], "delivered": [], "delivered_in": [], "rung": [], "promised": [[observed()], [], []]}
    verdict = judge(evidence(kind=Kind.GONE, **silence))
    assert verdict.complaints == []
    assert verdict.excused == {"asked before the journal was lost": 1}


def test_a_promise_that_the_journal_does_not_keep_is_noticed() -> None:
    (complaint,) = complaints(promised=[[observed()], []])
    assert complaint.startswith("lost: MessageObserved")


def test_chatter_that_no_prompt_holds_is_noticed_and_recalled_words_in_one() -> None:
    where = Conversation(ACCOUNT, "group", ONE)
    heard = MessageObserved(said("chatter", message_id="8", where=where), overheard=True)

    def unread(*promised: Entry, prompt: str) -> list[str]:
        told = {"role": "user", "content": prompt}
        request = Asked(str(where), "plain", "q1", 0, (told,))
        found = complaints(promised=[[heard, *promised], []], asked=[request], asked_in=[0])
        return [said for said in found if "in the last prompt" in said]

    recalled = MessageErased(where, "8")
    assert unread(prompt="小明#2: chatter") == unread(recalled, prompt="plain") == []
    assert "is 0 times" in unread(prompt="plain")[0]
    assert "is 1 times" in unread(recalled, prompt="小明#2: chatter")[0]


def test_words_nobody_asked_for_are_noticed() -> None:
    stray = SentMessage(10, (text("A:q9"),), group_id=ONE)
    assert complaints(delivered=[answer(), stray], delivered_in=[1, 1]) == ["nobody asked for 'A:q9'"]


def test_a_model_that_is_asked_again_after_the_answer_is_noticed() -> None:
    assert complaints(asked_again=[QUESTION]) == [f"the model was asked {QUESTION} again after its answer"]


def test_a_request_of_a_turn_that_is_not_stored_is_noticed() -> None:
    request = Asked(QUESTION.where, "plain", "q1", 0, ({"role": "user", "content": "plain#q1"},))
    counted = Journal(integrity="ok", usage=[{"turn_id": "t", "step": 1}])
    (complaint,) = complaints(asked=[request], asked_in=[0], journal=counted)
    assert "in a turn that is not stored" in complaint


@each_case("kind", [Kind.KILL, Kind.AWAY])
def test_what_was_logged_as_wrong_is_noticed_but_for_the_journal_that_was_made_so(kind: Kind) -> None:
    line = "1 ERROR bot.app: The journal could not be written before the end"
    assert complaints(kind=kind, log=[line]) == ([line] if kind is Kind.KILL else [])
    assert complaints(kind=kind, log=["1 ERROR bot.turn: no"]) == ["1 ERROR bot.turn: no"]


def test_a_request_without_a_row_is_noticed_and_one_that_was_cut_off_and_counted_twice() -> None:
    asked = Asked("", "task", "none0", 0, ({"role": "user", "content": "make it"},))

    def counted(*steps: int, kind: Kind = Kind.UNLIMITED, stepped: bool = False) -> list[str]:
        journal = Journal(integrity="ok", usage=[{"turn_id": "t", "step": step} for step in steps])
        journal.opened["t"] = []
        journal.steps |= {("t", 1): ""} if stepped else {}
        return complaints(kind=kind, journal=journal, asked=[asked], asked_in=[0])

    assert counted() == ["of 1 requests only 0 are counted"]
    assert counted(kind=Kind.LOCKED) == []
    for steps in ((1,), (0, 0, 1)):
        assert counted(*steps) == []
    assert counted(1, 2) == ["the request of turn t that was cut off is counted 2 times"]
    assert counted(1, 2, stepped=True) == []  # that of its second step


@each_case(
    ("rows", "came", "lines", "is_well"),
    [
        (2, 2, 1, True),  # it was asked anew with a line, and then cut off
        (2, 1, 1, False),  # the line was read before the first request
        (2, 2, 0, False),
        (3, 3, 1, False),
        (3, 3, 2, True),
    ],
)
def test_each_line_that_steers_a_turn_off_may_be_one_more_request_where_that_came(
    rows: int, came: int, lines: int, is_well: bool
) -> None:
    turn = Turn("t", QUESTION.where, str(QUESTION.message_id), "", None, closed=True, stop="", retry_of="")
    journal = Journal(integrity="ok", turns=[turn], usage=[{"turn_id": "t", "step": 1}] * rows)
    journal.opened["t"], journal.steered["t"] = [], lines
    asked = Asked(QUESTION.where, "plain", QUESTION.token, 0, ({"role": "user", "content": "plain#q1"},))
    wrong = [
        line for line in complaints(journal=journal, asked=[asked] * came, asked_in=[0] * came) if "counted" in line
    ]
    assert wrong == ([] if is_well else [f"the request of turn t that was cut off is counted {rows} times"])


async def test_of_the_lines_that_steered_a_turn_those_before_its_first_answer_are_read(tmp_path: Path) -> None:
    async with opened(f"sqlite+aiosqlite:///{tmp_path}/bot.db") as there:
        there.store.put(opening("t"), steering("t"), steering("t", said("and")), steering("t", said("so"), step=1))
        assert await there.store.commit(opening("u"), steering("u", said("no"), step=1))
    assert read_journal(tmp_path / "bot.db").steered == {"t": 2}
