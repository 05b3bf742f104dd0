"""The words of the console, in Chinese and English: a file of words for each, and the choice.

What other parts say in English, `sentences.json` has in Chinese.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from adapters.console.figures import lasting
from bot.domain.events import Conversation, NotAConversation
from bot.domain.language import Translations

HERE = Path(__file__).parent / "words"
LANGUAGES = ("zh", "en")
THING = re.compile(r"\[([a-z_]+)\]")
WAITING = re.compile(r"(\d+):([ARD]\d+)")  # an approval, a request or a draft of an account
COOKIE = "frost-language"
NONE: Final[Mapping[str, str]] = {}


class Speech:
    """The words of one language: `speech("nav.today")`."""

    def __init__(
        self, language: str, words: Mapping[str, str], sentences: Mapping[str, str] = NONE
    ) -> None:
        """`sentences` are those of other parts of the bot, by the English ones."""
        self.language = language
        self._words = words
        self._sentences = Translations(sentences)

    @property
    def is_chinese(self) -> bool:
        """Whether it is Chinese."""
        return self.language == "zh"

    def __call__(self, key: str, **values: object) -> str:
        """The words of a key, with these values in them; those of `KEY.one`, where there are any
        and the `count` is one. Raises KeyError for a key there is not.
        """
        singular = self._words.get(f"{key}.one") if str(values.get("count")) == "1" else None
        return (self._words[key] if singular is None else singular).format(**values)

    def of(self, kind: str, name: str) -> str:
        """The words of a name; the name itself where there are none."""
        return self._words.get(f"{kind}.{name}", name)

    def lasting(self, seconds: float) -> str:
        """The words of a time that something takes."""
        number, unit = lasting(seconds)
        return self(f"unit.{unit}", number=number)

    def place(self, where: Conversation, name: str = "", *, account: bool = False) -> str:
        """A chat as people call it, beside its number; with the bot's account, if there are several
        of those.
        """
        kind = "group" if where.is_group else "private"
        place = self(f"place.{kind}", number=where.session_id)
        if account:
            place = self("place.account", place=place, account=where.platform_id)
        return self("place.named", name=name, place=place) if name else place

    def place_named(self, name: str, called: str = "", *, account: bool = False) -> str:
        """A chat, or what waits for an approval (`10001:A3`), by its name in the journal, in words;
        anything else as it stands there.
        """
        if found := WAITING.fullmatch(name):
            return self("place.account", place=found[2], account=found[1])
        try:
            return self.place(Conversation.parse(name), called, account=account)
        except NotAConversation:
            return name

    def told(self, sentence: str) -> str:
        """A sentence of another part of the bot; in English where there is no other."""
        return self._sentences(sentence)

    def plain(self, text: str) -> str:
        """The line of a message (`plain_words`), with what is no words in it called by its name."""
        return THING.sub(lambda found: self._words.get(f"thing.{found[1]}", found[0]), text)

    def has(self, key: str) -> bool:
        """Whether there are words for it."""
        return key in self._words


@cache
def speech(language: str) -> Speech:
    """The speech of a language."""
    return Speech(language, _read(language), _read("sentences") if language == "zh" else NONE)


def _read(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text("utf-8"))


def speech_for(request: web.BaseRequest) -> Speech:
    """As somebody chose it, else as the browser prefers."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in LANGUAGES:
        return speech(chosen)
    accepted = request.headers.get("Accept-Language", "").lower()
    places = [(accepted.find(language), language) for language in LANGUAGES]
    return speech(min(((at, one) for at, one in places if at >= 0), default=(0, "en"))[1])
