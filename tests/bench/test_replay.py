"""What an answered message costs in a busy group, and what the model is shown of the talk: bars, on made logs."""

from __future__ import annotations

from pathlib import Path

from tests.bench.replay import replay
from tests.bench.talk import make_talk


def test_the_same_seed_is_the_same_log() -> None:
    assert make_talk(1, lines=50) == make_talk(1, lines=50) != make_talk(2, lines=50)


async def test_every_question_of_a_log_is_answered_once(tmp_path: Path) -> None:
    talk = make_talk(3, lines=120, asked=0.1)
    done = await replay(talk, tmp_path)
    assert len(done.answers) == len(done.asked) == len(done.since) == sum(line.asks for line in talk.lines) > 5
    assert "of the talk shown" in done.table()
