"""Owners of one language, on paper."""

from __future__ import annotations

from bot.domain.language import Tell, Tongue


def read(told: list[str], tongue: Tongue = Tongue.ENGLISH) -> Tell:
    """What owners who read this language are told goes into the list."""
    return lambda line: told.append(line[tongue])
