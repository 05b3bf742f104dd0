"""Facts over a year, through the whole service and both databases: what nobody asks about for 180 days is gone."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import create_engine, select

from adapters.storage.tables import memories, memory_terms
from adapters.storage.url import read_url
from tests.e2e.scenarios.play import play

DAY = 86_400

YEAR = r"""
title: a fact that was asked about lives on, one that was not is gone, and so is the first one once nobody asks any more
settings: {BOT_MEMORY: "1", STORE_URL: %(store)s}
model:
  - call: {memory: {action: write, text: 对花生过敏}}
  - 记住了
  - call: {memory: {action: write, text: 养了一只橘猫}}
  - 也记住了
  - {say: 不能, always: true}
script:
  - 小明: "@bot 记一下，我对花生过敏。"
  - after: 10
    小红: "@bot 记一下，我养了一只橘猫。"
  - after: 10
    sent: [记住了, 也记住了]
  - restart: %(less)d
  - after: 100
    小红: "@bot 小明能吃花生吗？"
  - after: 10
    shown: ["[记得]\n", "小明#1: 对花生过敏"]
    hidden: [养了一只橘猫]
  - restart: %(less)d
  - after: 100
    小明: "@bot 谁养了橘猫？"
  - after: 10
    hidden: ["[记得]\n", 养了一只橘猫]
  - 小红: "@bot /me"
  - after: 5
    count: 3
  - 小明: {say: "@bot /me", id: me}
  - after: 5
    sent: [{has: 对花生过敏}]
  - 小红: "@bot 小明能吃花生吗？"
  - after: 10
    shown: ["[记得]\n", "小明#1: 对花生过敏"]
%(more)s
"""
GONE = r"""
  - restart: %d
  - after: 100
    小红: "@bot 小明能吃花生吗？"
  - after: 10
    hidden: ["[记得]\n"]
"""


def facts(url: str) -> tuple[list[str], set[str]]:
    """The facts that there are in the journal, and the words they are found by."""
    engine = create_engine(read_url(url))
    with engine.connect() as connection:
        found = list(connection.scalars(select(memories.c.text)))
        terms = set(connection.scalars(select(memory_terms.c.term)))
    engine.dispose()
    return found, terms


def live(url: str, folder: Path, more: str = "") -> None:
    file = folder / "0-year.yaml"
    file.write_text(YEAR % {"store": json.dumps(url), "less": 179 * DAY, "more": more}, "utf-8")
    assert play(file, folder).wrong == []


def test_a_fact_is_kept_as_long_as_it_is_asked_about(url: str, tmp_path: Path) -> None:
    live(url, tmp_path)
    found, terms = facts(url)
    assert found == ["对花生过敏"]
    assert "花生" in terms
    assert "橘猫" not in terms


def test_of_a_fact_that_nobody_asked_about_for_180_days_no_row_is_left(url: str, tmp_path: Path) -> None:
    live(url, tmp_path, GONE % (181 * DAY))
    assert facts(url) == ([], set())
