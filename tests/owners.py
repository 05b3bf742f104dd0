"""Owners of one language, on paper."""

from __future__ import annotations

from frostagent.text.language import Language, NotifyOwners


def read(told: list[str], tongue: Language = Language.ENGLISH) -> NotifyOwners:
    """What owners who read this language are told goes into the list."""
    return lambda line: told.append(line[tongue])
