from __future__ import annotations

import gc
import weakref

import pytest

from frostagent.engine.run_state import RunState
from frostagent.sessions import Sessions


async def test_questions_of_one_session_share_a_turn_which_is_forgotten_after_them() -> None:
    sessions = Sessions()
    turn = sessions.turn("a")
    assert sessions.turn("a") is turn
    assert sessions.turn("b") is not turn
    async with turn:
        assert sessions.turn("a").locked()
    seen = weakref.ref(turn)
    del turn
    gc.collect()
    assert seen() is None


def test_runs_are_known_by_their_session_while_they_go_on() -> None:
    sessions, first, second = Sessions(), RunState(), RunState()
    with sessions.running("a", first):
        with sessions.running("a", second):
            runs = sessions.runs("a")
            assert len(runs) == 2
            assert runs[0] is first
            assert sessions.runs("b") == ()
        # Equal states are not the same run.
        assert [each is first for each in sessions.runs("a")] == [True]
    assert sessions.runs("a") == ()


def test_a_run_without_a_session_goes_on_unknown() -> None:
    sessions = Sessions()
    with sessions.running(None, RunState()):
        assert sessions.runs("") == ()


def test_a_run_that_breaks_off_is_gone_too() -> None:
    sessions = Sessions()
    with pytest.raises(LookupError), sessions.running("a", RunState()):
        raise LookupError
    assert sessions.runs("a") == ()
