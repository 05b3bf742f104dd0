"""What ruff and import-linter cannot hold of the house.

Sizes, mirrored tests and docstrings are for reviewers. Imports at the top, the clock and the environment are ruff's
(`banned-api` in pyproject.toml). Each test collects all its findings and fails with one line for each.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tools

ROOT = Path(__file__).parents[1]
PACKAGES = ("frostagent", "bot", "adapters", "tools", "config")

# A task without an owner ends unseen. The receivers are the names a loop has in this code base.
OWNERLESS = re.compile(
    r"\basyncio\.(create_task|ensure_future)\b|\b\w*loop(\(\))?\.create_task\b"
    r"|\bfrom asyncio import [^\n]*\b(create_task|ensure_future)\b"
)
# As a context manager a connection of sqlite3 ends a transaction and stays open.
OPEN_CONNECTION = re.compile(r"\bwith\s[^\n]*(?<!closing\()sqlite3\.connect\(")

# Written in two halves, so that this file does not accuse itself.
FOREIGN = re.compile(
    "|".join(
        [
            re.escape("pypi" + ".org"),
            re.escape("pythonhosted" + ".org"),
            re.escape("npmjs" + ".org"),
            re.escape("tuna.tsinghua" + ".edu"),
            r"mirrors\.[a-z]+\.(com|cn|edu)" + r"(\.cn)?/pypi",
            "--(extra-)?index" + "-url",
            "--find" + "-links",
            r"(?<![\w.-])/wo" + "rk/",
            r"(?<![\w.-])/opt/py" + "pi",
            re.escape(f"{ROOT}/"),
        ]
    )
)

SERVICE = re.compile(r"(?<![\w./-])(bot|adapters|tools|config)/[a-z_]+")  # a file or folder of it

HAN = re.compile(r"[\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
OTHERS_WORDS = {
    "frostagent/models/failover.py": "servers' words for pictures, in errors",
    "frostagent/models/openai/errors.py": "what servers say was wrong",
    "frostagent/models/openai/leaks.py": "headings that models put before sources",
    "frostagent/models/openai/markup.py": "calls that models write as text",
    "frostagent/models/openai/streaming.py": "the same, and how it begins",
}
"""Where the library has Chinese, and whose."""
CHATS = re.compile(r"\bqq\b|_qq\b|\bqq_|onebot|napcat|lagrange|cqhttp", re.IGNORECASE)
NUMBERED = re.compile(r"\b\w*(?:_id|_ids|asker|conversation|session)\b: [^=,;)\n]*\bint\b")

SUPPRESSION = re.compile(r"#\s*(type:\s*ignore|noqa|pragma:|mypy:|ruff:|nosec|pylint:)")
EXPLAINED = re.compile(r"# (type: ignore\[[a-z-]+(, ?[a-z-]+)*\]|noqa: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*)  # \S+")


@cache
def sources() -> dict[str, str]:
    """Every Python file of ours but this one: path from the root -> text."""
    files = (file for folder in (*PACKAGES, "tests") for file in sorted((ROOT / folder).rglob("*.py")))
    texts = {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}
    del texts[Path(__file__).relative_to(ROOT).as_posix()]
    return texts


def text_files() -> Iterator[tuple[str, str]]:
    """What is, or is about to be, in a commit; all of our Python if this is no checkout."""
    listed = b""
    if git := shutil.which("git"):
        words = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=False, timeout=30).stdout
    for path in filter(None, listed.decode().split("\0")) if listed else sources():
        file = ROOT / path
        content = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
        if b"\0" not in content:
            yield path, content.decode("utf-8", "replace")


def matches(pattern: re.Pattern[str], texts: Iterable[tuple[str, str]], *parts: str) -> Iterator[tuple[str, str, str]]:
    """Where the pattern is: path:line, the line, the match. Every match has one of the `parts` in it, which are found
    a hundred times faster.
    """
    for path, text in texts:
        if any(part in text for part in parts):
            for number, line in enumerate(text.splitlines(), 1):
                for match in pattern.finditer(line):
                    yield f"{path}:{number}", line, match[0]


def fail_with(lines: Iterable[str]) -> None:
    """Fail with these lines, if there are any."""
    if found := sorted(lines):
        pytest.fail("\n".join(found), pytrace=False)


def test_every_task_has_an_owner() -> None:
    found = matches(OWNERLESS, sources().items(), "create_task", "ensure_future")
    fail_with(f"{where}: {match}; use an asyncio.TaskGroup" for where, _, match in found)


def test_every_connection_is_closed() -> None:
    fail_with(
        f"{where}: use contextlib.closing"
        for where, *_ in matches(OPEN_CONNECTION, sources().items(), "sqlite3.connect(")
    )


def test_no_text_names_a_path_of_this_machine_or_a_package_index() -> None:
    parts = (
        "pypi",
        "pythonhosted",
        "npmjs",
        "tsinghua",
        "index" + "-url",
        "find" + "-links",
        "/wo" + "rk/",
        f"{ROOT}/",
    )
    fail_with(f"{where}: {match}" for where, _, match in matches(FOREIGN, text_files(), *parts))


def test_the_library_names_no_file_of_the_service() -> None:
    fail_with(f"{path}: {found[0]}" for path, text in library() for found in SERVICE.finditer(text))


def library() -> Iterator[tuple[str, str]]:
    return ((path, text) for path, text in sources().items() if path.startswith("frostagent/"))


def test_the_library_has_no_words_but_english_ones_and_those_of_servers() -> None:
    found = [(path, number) for path, text in library() for number, line in lines_with(HAN, text)]
    fail_with(f"{path}:{number}: Chinese" for path, number in found if path not in OTHERS_WORDS)
    fail_with(f"{path}: has no Chinese any more" for path in {*OTHERS_WORDS} - {path for path, _ in found})


def test_the_library_knows_no_kind_of_chat() -> None:
    fail_with(f"{path}:{number}: {line}" for path, text in library() for number, line in lines_with(CHATS, text))


def test_ids_are_texts_in_the_library() -> None:
    fail_with(f"{path}:{number}: {line}" for path, text in library() for number, line in lines_with(NUMBERED, text))


def lines_with(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    return ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if pattern.search(line))


def test_every_suppression_has_a_code_and_a_reason() -> None:
    found = matches(SUPPRESSION, sources().items(), "#")
    fail_with(f"{where}: {line[line.index(match) :]}" for where, line, match in found if not is_explained(line, match))


def is_explained(line: str, match: str) -> bool:
    return EXPLAINED.match(line, line.index(match)) is not None


def undescribed(schema: dict[str, Any], where: str) -> Iterator[str]:
    """The parameters inside a schema that the model knows only by name."""
    for name, parameter in schema.get("properties", {}).items():
        if not parameter.get("description", "").strip():
            yield f"{where}.{name}"
        yield from undescribed(parameter, f"{where}.{name}")
    if "items" in schema:
        yield from undescribed(schema["items"], f"{where}[]")


def test_every_tool_and_every_parameter_of_it_is_described() -> None:
    offered = tools.discover()
    assert offered
    fail_with(tool.name for tool in offered if not tool.description.strip())
    fail_with(line for tool in offered for line in undescribed(tool.spec.parameters, tool.name))


@pytest.mark.parametrize(
    ("pattern", "bad", "good"),
    [
        (OWNERLESS, "asyncio.create_task(x())", "group.create_task(x())"),
        (OWNERLESS, "self._loop.create_task(x())", "tasks.create_task(x())"),
        (OWNERLESS, "from asyncio import Event, ensure_future", "from asyncio import Event"),
        (OPEN_CONNECTION, "with sqlite3.connect(file) as db:", "with closing(sqlite3.connect(file)) as db:"),
        (FOREIGN, "pip install --index" + "-url x", "pip install x"),
        (SERVICE, "see `bot/prompt/compose.py`", "import frostagent.models"),
        (HAN, "SENT = '已发送'", "SENT = 'sent'  # 【…】"),
        (CHATS, "Refused(by_qq=True)", "sqqueeze"),
        (NUMBERED, "    user_id: int", "    user_id: str"),
        (NUMBERED, "    conversation: str | int = 0", "    message_id: str; number: int"),
    ],
)
def test_what_a_pattern_is_to_find_it_finds(pattern: re.Pattern[str], bad: str, good: str) -> None:
    assert pattern.search(bad)
    assert not pattern.search(good)
