"""`python -m tests.e2e.scenarios 17` plays scenario 17 and shows it as a chat; without a number, all
there are by name; `python -m tests.e2e.scenarios memory` those of this topic, with how many of them
are our own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.e2e.scenarios.play import Play, play
from tests.e2e.scenarios.script import NUMBERED, TOPICS, files, topic_of


def chat(played: Play) -> str:
    """What happened, a line each, in order."""
    lines = [f"{happened.at:7.1f}  {happened.who}: {happened.what}" for happened in played.stage.seen]
    return "\n".join(lines)


def listed(topics: list[str]) -> list[str]:
    """The scenarios of these topics by name, then how many there are."""
    theirs = [file.stem for file in files() if topic_of(file) in topics]
    own = sum(int(name.partition("-")[0]) > NUMBERED for name in theirs)
    return [*theirs, f"{len(theirs)} of {', '.join(topics)}, {own} of them our own"]


def main(numbers: list[str]) -> int:
    """Play what is named; how many of these were not as they should be."""
    chosen = [file for file in files() if file.stem.partition("-")[0] in numbers]
    if topics := [topic for topic in TOPICS if topic in numbers]:
        sys.stdout.writelines(f"{line}\n" for line in listed(topics))
        return 0
    if not chosen:
        sys.stdout.writelines(f"{file.stem}\n" for file in files())
    wrong = 0
    for file in chosen:
        with tempfile.TemporaryDirectory() as folder:
            played = play(file, Path(folder))
        scenario = played.stage.scenario
        told = [f"== {scenario.name}: {scenario.title}", chat(played), *played.wrong, ""]
        sys.stdout.write("\n".join(told) + "\n")
        wrong += bool(played.wrong)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
