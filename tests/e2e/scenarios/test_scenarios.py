"""Every scenario in this folder is as its script says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.configured_tools import READERS
from tests.cases import each_case
from tests.e2e.scenarios.play import play
from tests.e2e.scenarios.script import NUMBERED, TOPICS, files, topic_of


@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in files()])
def test_it_goes_as_the_script_says(file: Path, tmp_path: Path) -> None:
    if any(words in file.read_text("utf-8") for words in ("\npages:", "pdf:", "epub:")):
        for library in READERS:
            pytest.importorskip(library, reason="the extra web is not installed")
    assert play(file, tmp_path).wrong == []


def test_no_two_have_the_same_number() -> None:
    numbers = [file.stem.partition("-")[0] for file in files()]
    assert len(numbers) == len(set(numbers))


@each_case(("topic", "least"), [("summary", 8), ("memory", 27), ("persona", 4), ("command", 14)])
def test_there_are_so_many_of_our_own_on_each_topic(topic: str, least: int) -> None:
    own = [file for file in files() if topic_of(file) == topic and int(file.stem.partition("-")[0]) > NUMBERED]
    assert topic in TOPICS
    assert len(own) >= least
