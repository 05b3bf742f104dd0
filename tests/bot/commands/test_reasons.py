from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from bot.commands import reasons
from bot.commands.reasons import (
    CALLS,
    FAILURES,
    NOTHING,
    SILENCES,
    STOPS,
    both,
    deciding,
    deciding_end,
    end_of,
    words_of,
)
from bot.domain.errors import ModelError
from bot.domain.run import Stop
from bot.policy.wake import Called, Silence
from config.settings import Settings

ROOT = Path(reasons.__file__).parents[2]
CHINESE = re.compile("[\u4e00-\u9fff]")
KIND = re.compile(r"""(?:error=|text = |state, )f?"([a-z_]+): """)
"""How a run that fails says which kind of failure that is, where it is no ModelError."""

ALL = (*CALLS.values(), *SILENCES.values(), *STOPS.values())


def kinds(error: type[ModelError] = ModelError) -> Iterator[str]:
    yield error.kind
    for one in error.__subclasses__():
        yield from kinds(one)


def test_every_reason_there_is_stands_in_the_table_with_what_decides_it() -> None:
    assert set(CALLS) == set(get_args(Called))
    assert set(SILENCES) == set(Silence)
    assert set(STOPS) == set(Stop)


def test_every_kind_of_failure_says_what_decides_it() -> None:
    rooms = (ROOT / "bot/engine", ROOT / "bot/conversation/turns")
    told = {kind for room in rooms for file in room.glob("*.py") for kind in KIND.findall(file.read_text("utf-8"))}
    assert {"limit", "deadline", "tool", "empty", "bug"} <= told
    ours = {*kinds(), *told} - {"interrupted", "hook"}  # ends of their own: INTERRUPTED, STOPPED
    assert ours == set(FAILURES)


def test_only_what_nothing_decides_has_no_setting() -> None:
    undecided = {one for one in ALL if one.deciding == NOTHING}
    assert {one.en for one in undecided} == {
        *("written in private", "mentioned", "quoted me", "asked again after a crash"),
        *("found after a reconnect, answered or too old", "answered", "failed", "was interrupted by a restart"),
    }


def test_each_setting_that_is_named_is_one() -> None:
    known = {name.upper() for name in Settings.model_fields}
    words = [text for one in ALL for text in one.deciding] + [text for one in FAILURES.values() for text in both(one)]
    words += [reasons.CALLED_BY, reasons.DENIALS]
    named = {name for text in words for name in re.findall(r"[A-Z]+_[A-Z_]+(?![A-Z_…])", text)}
    assert named <= known
    begun = {name for text in words for name in re.findall(r"([A-Z_]+_)…", text)}
    assert (
        {name for name in begun if any(one.startswith(name) for one in known)}
        == begun
        == {
            "BOT_DAY_COST_",
            "BOT_DAY_TOKENS_",
        }
    )


def test_in_chinese_it_is_chinese_and_in_english_english() -> None:
    assert [one.zh for one in ALL if not CHINESE.search(one.zh)] == []
    assert [one.en for one in ALL if CHINESE.search(one.en + both(one.decides)[1])] == []


def test_what_an_older_journal_holds_is_told_as_it_stands() -> None:
    assert words_of("of before") == ("of before", "of before")
    assert deciding("of before") == NOTHING
    assert end_of("of before") == ("of before", "of before")
    assert (end_of(""), deciding_end(""), deciding_end("answered"), deciding_end("x")) == (
        reasons.GOES_ON,
        None,
        None,
        None,
    )


def test_a_failure_is_decided_by_its_kind() -> None:
    assert deciding_end("failed", "model_not_found: no such model") == both("LLM_MODEL")
    assert deciding_end("failed", "of before: x") == deciding_end("failed") == NOTHING
    assert deciding_end("stopped", "auth: x") == both("/stop")
    assert deciding_end("denied") == both(reasons.DENIALS)
