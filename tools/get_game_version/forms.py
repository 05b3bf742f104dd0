"""From a version as a source writes it to the one players say. Pure; never an invented number."""

from __future__ import annotations

import re
from typing import assert_never

from tools.get_game_version.rows import Form

VERSION = re.compile(r"[\w.+-]{1,40}", re.ASCII)


def read_version(raw: object) -> str | None:
    """A version as it was found; None for what cannot be one, which a source's error text is."""
    text = str(raw) if isinstance(raw, str | int) and not isinstance(raw, bool) else ""
    return text if VERSION.fullmatch(text) and any(char.isdigit() for char in text) else None


def say_version(raw: str, form: Form) -> str:
    """What players call this version; a shape nobody told us about stays as it is."""
    match form:
        case "":
            return raw
        case "league":
            # Since 2025 patches are named by the year, ten ahead of the data: 16.14.1 is 26.14.
            if (parts := re.fullmatch(r"(\d+)\.(\d+)\.\d+", raw)) and int(parts[1]) >= 15:
                return f"{int(parts[1]) + 10}.{parts[2]}"
            return raw
        case "counter_strike":
            # PatchVersion without its dots, of one, two, one and one digit: 14035 is 1.40.3.5.
            parts = re.fullmatch(r"(\d)(\d\d)(\d)(\d)", raw)
            return ".".join(parts.groups()) if parts else raw
        case _:
            assert_never(form)
