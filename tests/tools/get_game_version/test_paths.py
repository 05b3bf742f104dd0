"""Paths into JSON."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each_case
from tools.get_game_version.releases import BadPath, pick

DATA: dict[str, Any] = {
    "latest": {"release": "26.2"},
    "versions": [{"id": "26.3"}, "odd", {"id": "26.2", "releaseTime": "now"}, {"id": 7, "name": "seven"}],
    "loaders": [{"stable": False, "v": "2"}, {"stable": True, "v": "1"}],
    "patches": [{"n": "7.33", "at": 20}, {"n": "7.33b", "at": 30.5}, {"n": "7.32", "at": 10}, {"n": "x", "at": "99"}],
    "groups": {"26.2": ["26.2.1", "26.2"], "1.21": ["1.21.11"]},
    "huge": [{"n": "small", "at": 1.5}, {"n": "huge", "at": 10**400}],
    "empty": {},
}


@each_case(
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
        ("latest[0]", "26.2"),
        ("groups[0][0]", "26.2.1"),
        ("groups[-1][0]", "1.21.11"),
        ("groups[2]", None),
        ("latest.release.more", None),
        ("latest.release[0]", None),
        ("loaders[stable=true].v", "1"),
        ("patches[max at].n", "7.33b"),
        ("patches[max nothing].n", None),
        ("huge[max at].n", "huge"),
        ("latest[max at]", None),
        ("latest[id=1]", None),
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


@each_case("path", ["a[", "a]b", "a..b", "a[b", "[]"])
def test_a_path_that_is_none_is_an_error_of_the_table(path: str) -> None:
    with pytest.raises(BadPath):
        pick({"a": {}}, path)
