"""Whether the bot chimes in: the pure parts, and 40 labelled logs through the whole request with the demo model as
the judge. How it goes in a chat is in the scenarios 987 to 991.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from adapters.offline.brain import think
from bot.chat.chime_in import CHIME, PAUSE, ChimeState, chime_request, read_number, threshold
from bot.core.events import MessageReceived, Sender
from tests.cases import each_case
from tests.fakes import said

LOGS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("chime_logs.yaml").read_text("utf-8"))


def lines_of(log: dict[str, Any]) -> list[MessageReceived]:
    """What people say in a log."""
    parts = (line.partition(": ") for line in log["lines"])
    people = {"小明": 1, "阿澈": 2, "小红": 3, "Tom": 4, "Ann": 5, "Ben": 6}
    return [replace(said(words), sender=Sender(people[name], name)) for name, _, words in parts]


def judged(log: dict[str, Any]) -> float:
    """The demo model's number for a log."""
    request = chime_request((), lines_of(log), name="Frost")
    return read_number(think([{"role": one.type, "content": one.text} for one in request.messages], ()).text)


def figures(chime_in: float) -> tuple[float, float]:
    """How often it was right to speak, and how often it was silent where a person would be, each of 1."""
    spoken = [log["speak"] for log in LOGS if judged(log) >= threshold(chime_in)]
    silent = [judged(log) < threshold(chime_in) for log in LOGS if not log["speak"]]
    return sum(spoken) / len(spoken), sum(silent) / len(silent)


def test_there_are_forty_logs_in_two_languages_of_both_labels() -> None:
    labels = [log["speak"] for log in LOGS]
    chinese = ["\u4e00" <= log["lines"][0][0] <= "\u9fff" for log in LOGS]
    assert (len(LOGS), sum(labels), sum(chinese)) == (40, 21, 20)


@each_case(("chime_in", "spoken"), [(0.2, 19), (0.5, 19), (0.8, 21), (1.0, 21)])
def test_the_more_readily_it_speaks_the_more_often_it_does(chime_in: float, spoken: int) -> None:
    assert sum(judged(log) >= threshold(chime_in) for log in LOGS) == spoken


@pytest.mark.parametrize("chime_in", [0.2, 0.5, 1.0])
def test_where_the_judge_is_right_it_speaks_when_a_person_would_and_is_silent_when_none_would(chime_in: float) -> None:
    precision, silence = figures(chime_in)
    assert precision >= 0.95
    assert silence >= 0.95


def test_the_request_offers_no_tools_and_names_nobody_by_a_number() -> None:
    request = chime_request(lines_of(LOGS[0]), lines_of(LOGS[11]), name="Fro#3st: x")
    assert request.tools == ()
    text = "\n".join(one.text for one in request.messages)
    assert "「Fro st x」" in text
    assert text.index("[之前]") < text.index("有人会第三题吗") < text.index("[刚才]") < text.index("你几点到")
    assert "#" not in text


@each_case(
    ("answer", "number"),
    [
        ('{"number": 8, "reason": "x"}', 8), ('```json\n{"number": 7.5}\n```', 7.5), ("number：6", 6), ("9", 9),
        ("Score: 4 of 10", 4), ('{"number": "10"}', 10), ("", 0), ("I would speak", 0), ('{"number": 99}', 0),
        ('{"reason": "3 people", "number": 2}', 2),
    ],
)  # fmt: skip
def test_a_number_is_read_as_models_write_it(answer: str, number: float) -> None:
    assert read_number(answer) == number


@each_case(("chime_in", "wanted"), [(0.0, 10), (0.2, 9), (0.5, 7.5), (1.0, 5)])
def test_the_setting_is_a_threshold(chime_in: float, wanted: float) -> None:
    assert threshold(chime_in) == wanted


def test_what_was_done_in_a_day_is_kept_as_text() -> None:
    state = ChimeState(1_700_000_000.0, 12, 3, 1_700_000_123.0, 2 * PAUSE, is_settled=False)
    assert CHIME.read(CHIME.write(state)) == state
    assert CHIME.read("nonsense") is None
    assert CHIME.read("1 2 3") is None
