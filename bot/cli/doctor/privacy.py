"""Whether others on this machine can read the secrets, or put something in the bot's folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bot.cli.doctor.checks import Check, warn, well
from bot.cli.doctor.chinese import sentence
from bot.cli.doctor.storage import folders_of
from config.checks import writers_of
from config.settings import Settings
from config.sources import MADE

OTHERS_READ = 0o044


def check_privacy(settings: Settings, *, env_file: Path | None) -> list[Check]:
    """Files with secrets that others can read, and folders that others can write. Blocks."""
    if os.name != "posix":
        return []
    return [*_readable(env_file), *_writable(settings)] or [
        well("privacy", "nothing is open to others")
    ]


def _readable(env_file: Path | None) -> Iterator[Check]:
    for file in filter(None, (env_file, env_file and env_file.parent / MADE)):
        if file.exists() and file.stat().st_mode & OTHERS_READ:
            yield warn(
                "privacy",
                sentence("{} holds secrets, and others on this machine can read it", file),
                sentence("chmod 600 {}", file),
            )


def _writable(settings: Settings) -> Iterator[Check]:
    for folder in dict.fromkeys(folders_of(settings)):
        if writers := writers_of(folder):
            yield warn(
                "privacy",
                sentence("{} can be written by {}", folder, writers),
                sentence("See whose it is, and chmod go-w {}", folder),
            )
