"""What an answered message costs in a busy group, and what the model is shown of the talk: bars, on made logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.chat import deduplicator
from bot.jobs import changes
from bot.memory import history
from bot.outbox import sends
from tests.bench.replay import counted, replay
from tests.bench.talk import make_talk
from tests.bench.weight import weigh

BUDGET = 4000
HEADING = 30  # tokens of the frame around a summary
FULL = 1000  # messages that are kept in mind: the half of the log is more than that


def test_the_same_seed_is_the_same_log() -> None:
    assert make_talk(1, lines=50) == make_talk(1, lines=50) != make_talk(2, lines=50)


@pytest.mark.parametrize(("asked", "tokens"), [(0.01, 9000), (0.04, 9000)])
async def test_a_thousand_lines_cost_little_are_cached_and_nothing_said_is_passed_over(
    tmp_path: Path, asked: float, tokens: int
) -> None:
    """Ten thousand and more it was, with numbers of accounts in every line."""
    talk = make_talk(1, asked=asked)
    done = await replay(talk, tmp_path)
    assert len(done.answers) == len(done.asked) == sum(line.asks for line in talk.lines) > 8
    assert done.tokens <= tokens, done.table()
    assert done.steady >= 0.96, done.table()
    assert (done.unsteady, done.unaccounted) == ([], [])


async def test_five_thousand_lines_stay_in_their_budget_and_each_is_told_or_summarised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in memory after half of them is all that is: what is kept of the latest is full by then."""
    monkeypatch.setattr(history, "MAX_KNOWN", FULL)
    monkeypatch.setattr(deduplicator, "MAX_IDENTITIES", FULL)
    monkeypatch.setattr(sends, "MAX_SENDS", 20)
    monkeypatch.setattr(changes, "MAX_CHANGES", 20)
    done = await replay(make_talk(7, lines=5000, asked=0.02), tmp_path, bot_history_tokens=BUDGET)
    assert (done.unsteady, done.unaccounted) == ([], [])
    assert len(done.moves) > 5
    assert max(request.history for request in done.asked) <= BUDGET + HEADING
    assert done.forgotten == []
    assert len(done.heard) > 4500
    assert len(done.heard - done.told) == sum(map(counted, done.asked))  # by their ids: each in a round, or counted
    half, after_all = done.weights
    assert half.objects > 10 * FULL
    assert after_all.objects - half.objects < 2500 * 0.2, done.table()
    assert after_all.size < half.size * 1.05, done.table()


def test_all_that_can_be_reached_weighs_once_and_a_longer_list_more() -> None:
    word = "a word that nobody else keeps"
    one, two = weigh([word]), weigh([word, word])
    assert one.objects == two.objects == 2
    assert one.size > len(word)
    assert weigh([f"{number} words" for number in range(100)]).objects == 101
    assert weigh([weigh, pytest, int]).objects == 1  # the program
