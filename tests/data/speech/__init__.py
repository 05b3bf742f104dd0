"""What models say: honest answers, frames said back, answers that are the same and answers that are not.

Entries are parted by a line `%%`, what is expected of one stands behind a line `=>`.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def entries(name: str) -> list[str]:
    """All of a file."""
    return (FOLDER / name).read_text("utf-8").removesuffix("\n").split("\n%%\n")


def pairs(name: str) -> list[tuple[str, str]]:
    """All of a file whose entries have two halves; the second may be empty."""
    halves = [f"{entry}\n".partition("\n=>\n") for entry in entries(name)]
    return [(first, second.removesuffix("\n")) for first, _, second in halves]
