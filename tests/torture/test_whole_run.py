"""The oracle of a whole run over a cluster, with recorded ledgers and no process: what is planted is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adapters.simulator.call import SentMessage
from adapters.simulator.wire import text
from tests.fallback_lines import ENGLISH, SORRY, UNANSWERED
from tests.torture.journal import Journal, Turn
from tests.torture.stage import ONE, TWO, _quote
from tests.torture.whole_run import Query, judge_run

ANN, BOB = 10004, 10002
FIRST, SECOND, THIRD = Query("q1", ANN, ONE, "7"), Query("q2", ANN, ONE, "8"), Query("q30", BOB, TWO, "7")
ASKED = FIRST, SECOND, THIRD


def words(said: str, *, quotes: str = "", group: int = ONE) -> SentMessage:
    return SentMessage(9, (*_quote(int(quotes or 0)), text(said)), group_id=group)


WELL = (words("S:q1-0"), words("S:q1-1"), words("F:q1", quotes="7"), words("A:q2", quotes="8"))
OTHER = words(SORRY, quotes="7", group=TWO)


def complaints(
    *heard: SentMessage,
    other: tuple[SentMessage, ...] = (OTHER,),
    asked: tuple[Query, ...] = ASKED,
    invalid: tuple[str, ...] = (),
    **rows: Any,
) -> list[str]:
    journal = Journal(integrity="ok", **rows)
    return judge_run(asked, {ANN: heard or WELL, BOB: other}, invalid, journal)


def test_where_all_is_well_nothing_is_said() -> None:
    assert complaints() == []
    assert complaints(words("C:done"), words("C:done"), *WELL) == []


def test_a_second_answer_is_noticed_however_much_was_said_between() -> None:
    assert complaints(*WELL, words("F:q1")) == [f"{FIRST} was answered 2 times: ['F:q1', 'F:q1']", AFTER]
    assert complaints(*WELL[:3], words("A:q2"), words("A:q2")) == [f"{SECOND} was answered 2 times: ['A:q2', 'A:q2']"]
    (complaint,) = complaints(*WELL[:3], words("A:q2"), words("F:q2"))
    assert complaint == f"{SECOND} was answered 2 times: ['A:q2', 'F:q2']"


AFTER = f"{ANN} answered q1 after q2 in {ONE}"


def test_an_apology_beside_an_answer_or_another_one_is_a_second_answer() -> None:
    for line in (SORRY, ENGLISH[SORRY], UNANSWERED.format(trace="abc1")):
        (complaint,) = complaints(*WELL, words(line, quotes="7"))
        assert complaint == f"{FIRST} was answered 2 times: {['F:q1', line]}"
    (complaint,) = complaints(other=(OTHER, OTHER))
    assert complaint == f"{THIRD} was answered 2 times: {[SORRY, SORRY]}"


def test_an_apology_belongs_to_what_it_quotes_in_its_group() -> None:
    elsewhere = words(SORRY, quotes="7", group=TWO), words(SORRY, quotes="99")
    assert complaints(*WELL, *elsewhere) == []


def test_words_of_a_tool_that_come_again_are_noticed() -> None:
    assert complaints(*WELL, words("S:q1-0")) == [f"{ANN} said 'S:q1-0' 2 times"]


def test_words_that_were_asked_for_elsewhere_or_by_nobody_are_noticed() -> None:
    strayed = complaints(*WELL, words("S:q1-2", group=TWO))
    assert strayed == [f"'S:q1-2' was said in {(ANN, TWO)}, and asked for in {(ANN, ONE)}"]
    others = complaints(other=(OTHER, words("S:q1-0")))
    assert others == [f"'S:q1-0' was said in {(BOB, ONE)}, and asked for in {(ANN, ONE)}"]
    assert complaints(*WELL, words("A:q9")) == [f"'A:q9' was said in {(ANN, ONE)}, and asked for in None"]


def test_an_answer_before_that_of_an_older_question_is_noticed_but_for_one_that_was_missed() -> None:
    turned = words("A:q2"), words("S:q1-0"), words("F:q1")
    assert complaints(*turned) == [AFTER]
    assert complaints(*turned, asked=(replace(FIRST, missed=True), SECOND, THIRD)) == []
    elsewhere = replace(SECOND, group=TWO)
    assert complaints(words("A:q2", group=TWO), words("F:q1"), asked=(FIRST, elsewhere, THIRD)) == []


def test_a_transcript_that_no_vendor_takes_is_noticed() -> None:
    assert complaints(invalid=("a request for plain#q1: it begins with []",)) == [
        "a request for plain#q1: it begins with []"
    ]


def send(state: str = "confirmed") -> dict[str, Any]:
    return {"send_id": "s", "segments": "[]", "state": state}


def test_a_send_that_nobody_ended_is_noticed_and_one_that_nobody_knows_of_is_not() -> None:
    assert complaints(sends=[send("unknown")]) == []
    for state in ("sending", "queued"):
        assert complaints(sends=[send(state)]) == [f"send s ([]) was left {state}"]


def turn(*, closed: bool = True) -> Turn:
    return Turn("t", f"{ANN}:group:{ONE}", "7", "plain#q1", None, closed, "answered", "")


def test_an_open_turn_is_noticed() -> None:
    assert complaints(turns=[turn()]) == []
    assert complaints(turns=[turn(closed=False)]) == ["turn t was left open"]


def test_a_row_that_is_there_twice_is_noticed() -> None:
    assert complaints(sends=[send(), send()]) == ["send s is stored 2 times"]
    assert complaints(turns=[turn(), turn()]) == ["turn t is stored 2 times"]
    (complaint,) = complaints(messages={(f"{ANN}:group:{ONE}", "7"): [{}, {}]})
    assert complaint.endswith("is stored 2 times")
