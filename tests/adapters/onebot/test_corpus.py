"""The captured frames: those of our making show all that servers are known to send."""

from __future__ import annotations

from tests.adapters.onebot.corpus import OURS, features_of, ours, shared

LISTED = frozenset((OURS / "features.txt").read_text("utf-8").splitlines())


def test_every_feature_of_the_list_is_shown_by_a_case_of_ours_and_no_other() -> None:
    shown = set().union(*map(features_of, ours().values()))
    assert sorted(shown ^ LISTED) == []


def test_the_list_has_all_that_the_shared_frames_show() -> None:
    missing = {capture.name: more for capture in shared() if (more := features_of(capture) - LISTED)}
    assert missing == {}
    assert {capture.name for capture in shared()} <= ours().keys()
