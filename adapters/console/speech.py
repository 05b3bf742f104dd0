"""The words of the console, in Chinese and English: a file of words for each, and the choice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from aiohttp import web

HERE = Path(__file__).parent / "words"
LANGUAGES = ("zh", "en")
COOKIE = "frost-language"


class Speech:
    """The words of one language: `speech("nav.today")`."""

    def __init__(self, language: str, words: Mapping[str, str]) -> None:
        self.language = language
        self._words = words

    @property
    def is_chinese(self) -> bool:
        """Whether it is Chinese."""
        return self.language == "zh"

    def __call__(self, key: str, **values: object) -> str:
        """The words of a key, with these values in them. Raises KeyError for one there is not."""
        return self._words[key].format(**values)

    def of(self, kind: str, name: str) -> str:
        """The words of a name; the name itself where there are none."""
        return self._words.get(f"{kind}.{name}", name)

    def has(self, key: str) -> bool:
        """Whether there are words for it."""
        return key in self._words


@cache
def speech(language: str) -> Speech:
    """The speech of a language."""
    return Speech(language, json.loads((HERE / f"{language}.json").read_text("utf-8")))


def speech_for(request: web.BaseRequest) -> Speech:
    """As somebody chose it, else as the browser prefers."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in LANGUAGES:
        return speech(chosen)
    accepted = request.headers.get("Accept-Language", "").lower()
    places = [(accepted.find(language), language) for language in LANGUAGES]
    return speech(min(((at, one) for at, one in places if at >= 0), default=(0, "en"))[1])
