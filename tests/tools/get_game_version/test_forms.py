"""How players call a version."""

from __future__ import annotations

from typing import Any

import pytest

from tools.get_game_version.forms import read_version, say_version
from tools.get_game_version.rows import Form


@pytest.mark.parametrize(
    ("raw", "form", "said"),
    [
        ("16.14.1", "league", "26.14"),
        ("15.1.1", "league", "25.1"),
        ("14.24.1", "league", "14.24.1"),
        ("lolpatch_7.20", "league", "lolpatch_7.20"),
        ("14035", "counter_strike", "1.40.3.5"),
        ("14107", "counter_strike", "1.41.0.7"),
        ("140351", "counter_strike", "140351"),
        ("26.3-snapshot-3", "", "26.3-snapshot-3"),
    ],
)
def test_a_known_shape_is_turned_and_an_unknown_one_left(raw: str, form: Form, said: str) -> None:
    assert say_version(raw, form) == said


@pytest.mark.parametrize("raw", ["1.20.4", "24w09a", "b1.7.3", "16.14.1+build", 14035])
def test_a_version_is_read(raw: Any) -> None:
    assert read_version(raw) == str(raw)


@pytest.mark.parametrize(
    "raw", [None, "", True, 1.5, [], {}, "latest", "1.2 3", "1.2\n", "版本1", "1" * 41, "<b>1</b>"]
)
def test_what_cannot_be_a_version_is_none(raw: Any) -> None:
    assert read_version(raw) is None
