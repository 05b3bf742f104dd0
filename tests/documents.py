"""The documents as tests read them: pages, the blocks in them, the settings in their tables."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    file.relative_to(ROOT).as_posix()
    for file in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/zh/*.md"))
    if file.name not in {"CHANGELOG.md", "ARCHITECTURE.md"}
)

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: what stands behind the fence, its text, and where it is."""

    info: str
    text: str
    place: str


@cache
def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(name: str, info: str | None = None) -> list[Block]:
    """The blocks of a page that are marked so; all of them, without."""
    found = [
        Block(match["info"], match["text"], f"{name}:{page(name)[: match.start()].count(chr(10)) + 1}")
        for match in FENCE.finditer(page(name))
    ]
    return [block for block in found if info in {None, block.info}]


def every(info: str) -> list[Block]:
    return [block for name in PAGES for block in blocks(name, info)]


def anchors(file: Path) -> set[str]:
    """What GitHub calls the headings of a page: small letters, blanks as hyphens, no marks."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", file.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def levels(text: str) -> list[str]:
    """How deep each heading of a page is, in order; lines of code are none."""
    return re.findall(r"^(#+) ", FENCE.sub("", text), re.MULTILINE)


def settings_of(text: str) -> list[list[str]]:
    """The variables in the first column of each row of a table."""
    return [
        names for row in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE) if (names := re.findall("`([A-Z_]+)`", row))
    ]


def commands_of(block: Block) -> list[list[str]]:
    """The words of each line that an operator types, remarks aside; of a program, whose texts are translated, none."""
    lines = block.text.splitlines() if block.info.startswith("sh") else []
    return [shlex.split(line, comments=True) for line in lines]
