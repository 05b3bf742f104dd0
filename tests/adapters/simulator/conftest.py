"""What the tests of the simulator share: a world whose time stands still, and the corpus of real frames."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator.world import Person, World

CORPUS = Path(__file__).parents[4] / "shared" / "onebot" / "events"

Frame = dict[str, Any]


@pytest.fixture
def world() -> World:
    """10001 in the groups 4242 (with 小明 and user2) and 4343; 小明 is a friend too."""
    world = World(now=lambda: 1_776_056_153.5)
    world.add_group(4242, "测试一群", (Person(20001, "小明", "明明", "owner"), Person(20002, "user2")))
    world.add_group(4343, "二群")
    world.add_friend(Person(20001, "小明"))
    return world


@pytest.fixture
def recorded() -> Callable[[str], Frame]:
    """Reads a frame of the corpus by name; skips the test where the corpus is not there."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus of OneBot frames is not beside the repository")

    def read(name: str) -> Frame:
        frame: Frame = json.loads((CORPUS / f"{name}.json").read_text("utf-8"))
        return frame

    return read
