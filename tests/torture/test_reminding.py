"""The oracle of reminders, with recorded ledgers and no process: what is planted is noticed."""

from __future__ import annotations

from typing import Any

from tests.cases import each_case
from tests.torture.reminding import said_wrongly

SAID, DONE, MISSED = "⏰ 提醒：R:q1", "A:r2", "⏰ I missed this:\n· 14:10 R:q1 (J1)"


def job(words: str = "R:q1", **more: Any) -> dict[str, Any]:
    return {"number": 1, "words": words, "state": "ended", "kind": "text", "claim": "s1", **more}


REMINDER, TASK = job(), job("later#r2", kind="run")


@each_case(
    ("delivered", "jobs", "state", "wrong"),
    [
        ([SAID, DONE], [REMINDER, TASK], "confirmed", 0),
        ([f" {SAID}（迟到 1 分钟）"], [REMINDER], "confirmed", 0),
        ([MISSED], [REMINDER], "confirmed", 0),
        ([], [REMINDER], "unknown", 0),
        ([], [], "confirmed", 0),
        ([], [TASK], "confirmed", 0),  # its turn is judged as any other
        ([SAID, SAID], [REMINDER], "confirmed", 1),
        ([DONE, DONE], [TASK], "confirmed", 1),
        ([SAID], [], "confirmed", 1),
        ([], [REMINDER], "confirmed", 1),
        ([], [REMINDER], "dropped", 1),
        ([SAID, MISSED], [REMINDER], "confirmed", 1),
        ([MISSED, MISSED], [REMINDER], "confirmed", 1),
        ([SAID], [job(state="firing")], "confirmed", 1),
    ],
)
def test_what_is_said_once_or_told_as_missed_once_is_right(
    delivered: list[str], jobs: list[dict[str, Any]], state: str, wrong: int
) -> None:
    assert len(list(said_wrongly(delivered, jobs, [{"send_id": "s1", "state": state}]))) == wrong
