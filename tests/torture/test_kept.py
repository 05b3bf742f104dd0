"""The oracle of what is kept for long, with recorded ledgers and no process: what is planted is noticed."""

from __future__ import annotations

import json
from typing import Any

from adapters.simulator.call import SentMessage
from adapters.simulator.wire import text
from bot.core.conversation import Conversation
from bot.core.journal import Entry, UsageAdded, UsageReleased, UsageReserved, WindowMoved
from bot.core.memories import MemoriesForgotten, MemoryKept, StoredFact
from bot.policy.memory_rules import terms
from frostagent.types.messages import Usage
from tests.torture.evidence import Evidence
from tests.torture.journal import Journal
from tests.torture.keepsakes import FOUR, MARKS, MENDED, QUIET, SEAL, SUMMED, THREE, WRITTEN, Deed
from tests.torture.kept import Keepsakes, gone_places, judge_kept
from tests.torture.model import Asked
from tests.torture.moments import Kind
from tests.torture.stage import ACCOUNT, ONE

HERE = f"{ACCOUNT}:group:{ONE}"
RESET, LEFT = f"{ACCOUNT}:group:{THREE}", f"{ACCOUNT}:group:{FOUR}"


def complaints(
    *deeds: Deed, kept: Keepsakes | None = None, shown: tuple[tuple[str, int, str], ...] = (), **more: Any
) -> list[str]:
    """What is said of these requests (place, life, words), and of what else was recorded."""
    asked = [Asked(where, "plain", "q9", 0, ({"role": "user", "content": words},)) for where, _, words in shown]
    recorded: dict[str, Any] = {"questions": [], "sent": [], "delivered": [], "delivered_in": [], "asked_again": []}
    recorded |= {"invalid": [], "promised": [[], []], "rung": [], "journal": Journal(), "errors": [], "log": []}
    evidence = Evidence(
        kind=Kind.KEEPING, **recorded | {"asked": asked, "asked_in": [life for _, life, _ in shown]} | more
    )
    return list(judge_kept(evidence, deeds, kept or Keepsakes()))


def told(where: str, words: str) -> dict[str, Any]:
    group = int(where.rpartition(":")[-1])
    return {"delivered": [SentMessage(1, (text(words),), group_id=group)], "delivered_in": [0]}


def fact(words: str) -> MemoryKept:
    memory = StoredFact(memory_id="m", scope=Conversation.parse(HERE), subject=7, author=7, text=words)
    return MemoryKept(memory, terms(words))


def row(words: str, *found_by: str) -> Keepsakes:
    memory = {"memory_id": "m", "text": words, "subject": 7, "sources": "[]"}
    return Keepsakes(memories=[memory], terms={"m": set(found_by or terms(words))})


def test_a_fact_is_whole_and_in_its_last_words_and_gone_where_it_was_forgotten() -> None:
    def of(kept: Keepsakes, *entries: Entry) -> list[str]:
        return complaints(kept=kept, promised=[list(entries), []])

    assert of(row(WRITTEN), fact(WRITTEN)) == of(row(MENDED), fact(WRITTEN)) == []
    assert "is lost" in of(row(WRITTEN), fact(WRITTEN), fact(MENDED))[0]
    assert "is lost" in of(Keepsakes(), fact(WRITTEN))[0]
    assert "was forgotten, and is there" in of(row(WRITTEN), fact(WRITTEN), MemoriesForgotten(("m",)))[0]
    assert "is found by other words" in of(row(WRITTEN, "芒果"))[0]
    assert "are left" in of(Keepsakes(terms={"m": {"芒果"}}))[0]


def test_a_persona_that_was_told_to_be_chosen_is_who_answers_from_then_on() -> None:
    deed = Deed("人设 mars", HERE, 0, 1, "好，从下一句起", (), 0)
    chosen = Keepsakes(choices={HERE: "mars"})
    assert complaints(deed, kept=chosen, shown=((HERE, 0, "before"), (HERE, 1, SEAL))) == []
    assert "came back in life 3" in complaints(deed, shown=((HERE, 1, SEAL), (HERE, 2, "before")))[0]
    before = {"shown": ((HERE, 1, "before"),), **told(HERE, "好，从下一句起我是火星。")}
    assert "came back in life 2" in complaints(deed, **before)[0]
    assert "says otherwise" in complaints(deed, kept=chosen, shown=((HERE, 0, "before"),))[0]


def test_a_wish_that_was_promised_is_kept_with_its_end() -> None:
    deed, done = Deed(QUIET, HERE, 0, 1, "好，安静到", (), 0), told(HERE, "好，安静到 16:00；期间我照样看消息。")
    assert complaints(deed) == complaints(deed, kept=Keepsakes(wishes={HERE: "1700000000"}), **done) == []
    assert "is ''" in complaints(deed, **done)[0]
    assert "is 'nan'" in complaints(deed, kept=Keepsakes(wishes={HERE: "nan"}))[0]


def test_a_reset_leaves_all_or_nothing() -> None:
    deed = Deed("重来", RESET, 0, 1, "好，从这里重新开始", ("q1", "q2"), 1)
    first = RESET, 0, "plain#q1 plain#q2"
    for left in ("plain#q1 plain#q2 plain#q3", "plain#q3"):
        assert complaints(deed, shown=(first, (RESET, 1, left))) == []
    assert "left {'q2'}" in complaints(deed, shown=(first, (RESET, 1, "plain#q2 plain#q3")))[0]


def test_who_is_forgotten_is_in_no_table_no_file_and_no_later_prompt() -> None:
    deed, mark = Deed("忘记 我", LEFT, 0, 1, "删好了", (), 0), MARKS[LEFT]
    assert complaints(deed, kept=Keepsakes(text=mark), shown=((LEFT, 1, mark),)) == []
    done = told(LEFT, "删好了：3 条记录。")
    assert complaints(deed, shown=((LEFT, 0, mark), (LEFT, 1, "plain")), **done) == []
    assert "is stored" in complaints(deed, kept=Keepsakes(text=mark), **done)[0]
    assert "in the files" in complaints(deed, kept=Keepsakes(raw=mark.encode()))[0]
    assert "came back in life 2" in complaints(deed, shown=((LEFT, 1, mark),), **done)[0]
    assert gone_places([deed], Keepsakes(text=mark)) == frozenset() != gone_places([deed], Keepsakes()) == {LEFT}


def test_a_round_is_told_or_summarised_never_neither_never_both() -> None:
    def rolled(summary: str, *, first: int = 2, **more: Any) -> list[str]:
        rounds = [{"id": n, "conversation": HERE, "round": json.dumps([{"text": f"plain#q{n}"}])} for n in (1, 2)]
        window = {"first_turn": first, "summary": summary}
        return complaints(kept=Keepsakes(turns=rounds, windows={HERE: window}), **more)

    assert rolled(f"{SUMMED} q1") == rolled("· user: plain#q1 -> A:q1") == rolled("·（更早的 1 轮从略）") == []
    assert "neither told nor summarised" in rolled(f"{SUMMED} q0")[0]
    assert "told and summarised" in rolled(f"{SUMMED} q1 q2")[0]
    assert "the last prompt" in rolled(f"{SUMMED} q1", shown=((HERE, 1, "q2"),))[0]
    moved = WindowMoved(Conversation.parse(HERE), "t2", summary=f"{SUMMED} q1")
    assert "that was promised is lost" in rolled("", first=0, promised=[[moved], []])[0]


def test_what_was_spent_is_counted_once() -> None:
    spent = {"turn_id": "t", "step": 1, "reserved": 0, "at": 5.0}
    assert "counted 2 times" in complaints(kept=Keepsakes(usage=[spent, spent]))[0]
    assert complaints(kept=Keepsakes(usage=[spent, spent | {"reserved": 7}])) == []  # it was cut off before
    beside = UsageAdded(turn_id="t", model="m", usage=Usage(), at=5.0)
    assert "counted 0 times" in complaints(promised=[[beside], []])[0]
    assert complaints(kept=Keepsakes(usage=[spent | {"step": 0}]), promised=[[beside], []]) == []


def test_what_was_reserved_is_a_row_until_what_it_took_takes_its_place() -> None:
    reserved = UsageReserved(turn_id="t", number=7, model="m", usage=Usage(9), at=5.0)
    took = UsageAdded(turn_id="t", model="m", usage=Usage(8, reserved=7), at=6.0)
    before = {"turn_id": "t", "step": 1, "reserved": 7, "at": 5.0}
    after = before | {"step": 0, "reserved": 0, "at": 6.0}
    for promised, rows in (([reserved], before), ([reserved], after), ([reserved, took], after)):
        assert complaints(kept=Keepsakes(usage=[rows]), promised=[promised, []]) == []
    assert "only 0 are counted" in complaints(promised=[[reserved], []])[0]
    both = complaints(kept=Keepsakes(usage=[before, after]), promised=[[reserved, took], []])
    assert "beside what was reserved" in both[0]
    assert complaints(promised=[[reserved, UsageReleased(turn_id="t", number=7)], []]) == []
