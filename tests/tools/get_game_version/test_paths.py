"""Paths into JSON."""

from __future__ import annotations

from typing import Any

import pytest

from tools.get_game_version.paths import BadPath, pick

DATA: dict[str, Any] = {
    "latest": {"release": "26.2"},
    "versions": [{"id": "26.3"}, "odd", {"id": "26.2", "releaseTime": "now"}, {"id": 7, "name": "seven"}],
    "empty": {},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("latest.release", "26.2"),
        ("versions[0].id", "26.3"),
        ("versions[-1].name", "seven"),
        ("versions[id=26.2].releaseTime", "now"),
        ("versions[id=7].name", "seven"),
        ("versions[id=1.0].releaseTime", None),
        ("versions[9]", None),
        ("versions[-5]", None),
        ("versions.id", None),
        ("latest[0]", None),
        ("latest.release.more", None),
        ("nothing.at.all", None),
        ("empty", {}),
        ("", DATA),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(path: str, found: object) -> None:
    assert pick(DATA, path) == found


def test_the_root_may_be_a_list() -> None:
    assert pick(["16.14.1"], "[0]") == "16.14.1"
    assert pick(None, "[0]") is None


@pytest.mark.parametrize("path", ["a[", "a]b", "a..b", "a[b", "[]"])
def test_a_path_that_is_none_is_an_error_of_the_table(path: str) -> None:
    with pytest.raises(BadPath):
        pick({"a": {}}, path)
