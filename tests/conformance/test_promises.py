"""The table of promises in PROMISES.md, held to the tests: each row names one that exists, each test has its row."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("PROMISES.md")
DOCUMENTS = {
    "000 Chronos": ("test_chronos.py",),
    "001 FrostAgent": ("test_frostagent.py",),
    "002 go-agents": ("test_go_agents.py",),
    "003 or/agent": ("test_or_agent.py", "test_or_agent_hooks.py"),
    "004 pagantic": ("test_pagantic.py", "test_pagantic_safety.py"),
    "details": ("test_details.py", "test_details_seen.py"),
    "beyond": ("test_beyond.py", "test_mutants_killed.py"),
}
OWN = {"test_promises.py", "test_first_tool.py"}
ROW = re.compile(r"^\| (?P<document>[^|]+?) \| (?P<promise>[^|]+?) \| (?P<instead>[^|]*?) ?\| `(?P<test>[^`|]+)` \|$")


@dataclass(frozen=True, slots=True)
class Row:
    """A promise, and the test that shows it: `folder/test_file.py::test_name`, from tests/."""

    document: str
    promise: str
    instead: str
    test: str


def rows() -> list[Row]:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")][2:]
    return [Row(*match.groups()) if (match := ROW.match(line)) else Row(line, "", "", "") for line in lines]


@cache
def names_in(file: str) -> tuple[str, ...]:
    """The names of the tests of a file, as a row has them."""
    path = TESTS / file
    text = path.read_text("utf-8") if path.is_file() else ""
    return tuple(f"{file}::{name}" for name in re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))


def test_every_row_of_the_table_has_its_four_columns_and_a_known_document() -> None:
    assert len(rows()) > 100
    assert [row for row in rows() if row.document not in DOCUMENTS] == []


def test_every_row_names_a_test_that_exists() -> None:
    assert [row.test for row in rows() if row.test not in names_in(row.test.partition("::")[0])] == []


def test_every_test_of_conformance_has_its_one_row_at_its_document() -> None:
    told = Counter((row.document, row.test) for row in rows())
    there = [
        (document, name)
        for document, files in DOCUMENTS.items()
        for file in files
        for name in names_in(f"conformance/{file}")
    ]
    assert [each for each in there if told[each] != 1] == []
    files = {file.name for file in Path(__file__).parent.glob("test_*.py")}
    assert files == {file for files in DOCUMENTS.values() for file in files} | OWN


def test_every_promise_is_named_as_its_test() -> None:
    wrong = [row for row in rows() if "test_" + row.promise.replace(" ", "_") != row.test.partition("::")[2]]
    assert wrong == []
