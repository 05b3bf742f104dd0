"""Owners of one language, on paper."""

from __future__ import annotations

from bot.core.language import Language, NotifyOwners, Phrase, bilingual, text_in


def both(text: Phrase | str) -> tuple[str, str]:
    """A text in Chinese and in English."""
    return bilingual(text).zh, bilingual(text).en


def read(told: list[str], language: Language = Language.ENGLISH) -> NotifyOwners:
    """What owners who read this language are told goes into the list."""
    return lambda line: told.append(text_in(language, line))
