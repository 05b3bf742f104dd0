"""Calls, thoughts and marks that models wrote into their text, and honest words that look like them.

A line `%%` separates entries. An entry of `calls.txt` begins with `# ` and its family. Behind a line `=>` stands what
becomes of it: `call` (of get_weather for 北京), `again` (the model is asked once more) or `words`, then the words that
are left. In `thoughts.txt` and `citations.txt` what is left stands behind `=>`; the first line `+reasoning` says that
the thoughts came in a field of their own. `honest.txt` stays as it is.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def entries(name: str) -> list[str]:
    """All of a file."""
    return (FOLDER / name).read_text("utf-8").removesuffix("\n").split("\n%%\n")


def leaked_calls() -> list[tuple[str, str, str, str]]:
    """Family, text, what becomes of it, and the words that are left."""
    found = []
    for entry in entries("calls.txt"):
        head, _, text = entry.partition("\n")
        text, _, rest = f"{text}\n".partition("\n=>\n")
        verdict, _, left = rest.removesuffix("\n").partition("\n")
        found.append((head.removeprefix("# "), text, verdict, left))
    return found


def pairs(name: str) -> list[tuple[str, str]]:
    """Text and what is left of it."""
    halves = [f"{entry}\n".partition("\n=>\n") for entry in entries(name)]
    return [(text, left.removesuffix("\n")) for text, _, left in halves]
