"""The rig itself works: a few messages through all of it. What it measures here means nothing."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from frostagent.models.openai.stream import AnswerReader
from tests.adapters.storage.conftest import POSTGRES
from tests.bench import micro, report
from tests.bench.__main__ import checked_out, measure_all, run_git
from tests.bench.model import ModelProtocol, answer, stream
from tests.bench.subject import BOT, FLOOR, UNJOURNALED, cpu_clock, serving_model
from tests.bench.trial import Figures, Load, measure, percentile

FEW = Load(calm=0, warm_up=2, messages=8, groups=10, seconds=0)


def figures(**known: float) -> Figures:
    return Figures(
        **{"p10": 1, "p50": 1, "p95": 1, "p99": 1, "rate": 1, "cpu": 1, "idle": 1, "peak": 1, "start": 1} | known
    )


async def test_the_bot_and_the_floor_are_measured_and_compared() -> None:
    results = await measure_all((BOT, FLOOR), rounds=1, load=FEW)
    assert all(asdict(rounds[0])[name] > 0 for rounds in results.values() for name in report.LABELS)
    assert "bot / floor" in report.table(results, [("bot", "floor")])
    assert report.as_json(results, [("bot", "floor")])["ratios"]["bot/floor"]["p50"]["median"] > 0


async def test_the_bot_works_without_its_journal() -> None:
    async with serving_model() as model:
        assert (await measure(UNJOURNALED, FEW, model=model, cores=(0,))).rate > 0


async def test_every_part_is_measured() -> None:
    costs = await micro.measure_parts(20)
    assert all(cost.micros > 0 for cost in costs)
    assert micro.describe(costs).count("us per") == len(costs) == 7 + bool(POSTGRES)


def test_the_processor_is_read_finely() -> None:
    used = time.clock_gettime(cpu_clock(os.getpid()))
    assert used == pytest.approx(time.process_time(), abs=0.05)
    assert time.clock_gettime(cpu_clock(os.getpid())) > used


def test_a_ratio_is_of_figures_of_the_same_round() -> None:
    results = {
        "a": [figures(p50=2), figures(p50=30), figures(p50=3)],
        "b": [figures(p50=1), figures(p50=10), figures(p50=3)],
    }
    assert str(report.ratio(results, "p50", "a", "b")) == "2.00x (1.00-3.00)"


def test_a_figure_beyond_what_was_agreed_is_seen() -> None:
    floor = Figures(p10=1, p50=1, p95=1, p99=1, rate=100, cpu=1, idle=30, peak=30, start=0.4)
    bot = replace(floor, p50=1.8, rate=41, cpu=2.8, idle=84, start=1.1)
    told = report.bounds({"bot": [bot], "floor": [floor]}, "bot", "floor").splitlines()
    assert [line.split()[-1] for line in told[1:]] == ["holds", "SLIPPED", "SLIPPED", "holds", "SLIPPED"]


def test_a_percentile_is_a_value_that_was_measured() -> None:
    hundred = list(range(1, 101))
    assert [percentile(hundred, rank) for rank in (50, 95, 99)] == [50, 95, 99]
    assert percentile([7.0], 99) == 7.0


def test_the_model_answers_the_last_question_as_it_is_told() -> None:
    wait, response = answer(b'{"messages":["#Q0000001 SIZE=9","#Q0000002 WAIT=20 SIZE=300"],"stream":true}')
    assert wait == 0.02
    reader = AnswerReader()
    reader.feed(response.partition(b"\r\n\r\n")[2])
    text = reader.finish().text
    assert text == "#Q0000002" + "a" * 291  # words of its own: who only says a question back is asked once more


def test_the_model_answers_whole_where_no_stream_is_wanted() -> None:
    wait, response = answer(b"{}")
    assert (wait, b"no question" in response) == (0, True)
    assert b"application/json" in response


def test_the_model_takes_a_request_only_when_it_is_whole() -> None:
    protocol = ModelProtocol()
    protocol._received += b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab"
    assert protocol._take() is None
    protocol._received += b"cdPOST"
    assert protocol._take() == b"abcd"
    assert protocol._received == b"POST"


def test_a_streamed_answer_is_what_its_deltas_say() -> None:
    reader = AnswerReader()
    reader.feed(stream("words " * 20).partition(b"\r\n\r\n")[2])
    assert reader.finish().text == "words " * 20


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_another_revision_is_checked_out_beside_and_taken_away(tmp_path: Path) -> None:
    me = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")
    run_git(tmp_path, "init", "--quiet")
    (tmp_path / "words").write_text("then")
    run_git(tmp_path, "add", "words")
    run_git(tmp_path, *me, "commit", "--quiet", "--message=then")
    (tmp_path / "words").write_text("now")
    with checked_out("HEAD", repository=tmp_path) as (commit, tree):
        assert (tree / "words").read_text() == "then"
        assert run_git(tree, "rev-parse", "--short", "HEAD") == commit
    assert not tree.exists()
    assert str(tree) not in run_git(tmp_path, "worktree", "list")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_a_revision_that_does_not_exist_ends_the_program(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "--quiet")
    with pytest.raises(SystemExit), checked_out("nowhere", repository=tmp_path):
        pass
