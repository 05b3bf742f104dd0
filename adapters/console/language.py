"""The console's text in Chinese and English; numbers, times and money for people."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from aiohttp import web

from bot.core.conversation import Conversation, NotAConversation
from bot.core.language import CATALOGUE, Phrase, text_in
from bot.core.language import Language as BotLanguage
from bot.core.query_results import UsageSum


def moment(seconds: float) -> str:
    """Date and time in the process's time zone, as every time here."""
    return _local(seconds).strftime("%m-%d %H:%M:%S")


def clock(seconds: float) -> str:
    return _local(seconds).strftime("%H:%M")


def minute(seconds: float) -> str:
    """A time in the format of an HTML `datetime-local` field."""
    return _local(seconds).strftime("%Y-%m-%dT%H:%M")


def date(seconds: float) -> str:
    return _local(seconds).strftime("%Y-%m-%d")


def day(seconds: float) -> str:
    return _local(seconds).strftime("%m-%d")


def money(used: UsageSum) -> str:
    """US dollars: `+?` if the price of some requests is unknown, `$?` if of all."""
    if used.unpriced >= max(used.requests, 1) and not used.cost:
        return "$?"
    return f"{dollars(used.cost)}{'+?' if used.unpriced else ''}"


def dollars(number: float) -> str:
    """US dollars; below one, to a hundredth of a cent."""
    return f"${number:.{4 if number < 1 else 2}f}"


def tokens(number: float) -> str:
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.1f}{unit}"
    return f"{number:.0f}"


def lasting(seconds: float) -> tuple[str, str]:
    """A duration and its unit: 20 ms, 0.41 s, 4.1 s, 2 min, 3 h, 7 d."""
    if seconds >= 172_800:
        return f"{seconds / 86_400:.0f}", "d"
    if seconds >= 7_200:
        return f"{seconds / 3_600:.0f}", "h"
    if seconds >= 120:
        return f"{seconds / 60:.0f}", "min"
    if seconds < 0.1:
        return f"{1000 * seconds:.0f}", "ms"
    return f"{seconds:.2f}" if seconds < 1 else f"{seconds:.1f}", "s"


def share(part: float, whole: float) -> str:
    """A share in percent; 0 if the whole is 0."""
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def _local(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).astimezone()


WORDS_FOLDER = Path(__file__).parent / "words"
LANGUAGES = ("zh", "en")
PLACEHOLDER = re.compile(r"\[([a-z_]+)\]")
APPROVAL_NAME = re.compile(r"(\d+):([ARD]\d+)")  # an approval, a request or a draft of an account
LANGUAGE_COOKIE = "frost-language"


class Language:
    """The console's words in one language: `language("nav.today")`."""

    def __init__(self, language: str, words: Mapping[str, Phrase]) -> None:
        self.language = language
        self.is_chinese = language == "zh"
        self.bot_language = BotLanguage.CHINESE if self.is_chinese else BotLanguage.ENGLISH
        self._words = words

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key with these values; of `KEY.one`, if it exists and `count` is 1.
        Raises KeyError for an unknown key.
        """
        singular = self._words.get(f"{key}.one") if str(values.get("count")) == "1" else None
        return (singular or self._words[key]).format(self.bot_language, **values)

    def of(self, kind: str, name: str) -> str:
        """The text of a name, or the name itself."""
        key = f"{kind}.{name}"
        return self(key) if key in self._words else name

    def lasting(self, seconds: float) -> str:
        number, unit = lasting(seconds)
        return self(f"unit.{unit}", number=number)

    def place(self, where: Conversation, name: str = "", *, account: bool = False) -> str:
        """A chat by name and number, with the bot's account if there are several."""
        kind = "group" if where.is_group else "private"
        place = self(f"place.{kind}", number=where.session_id)
        if account:
            place = self("place.account", place=place, account=where.platform_id)
        return self("place.named", name=name, place=place) if name else place

    def place_named(self, name: str, called: str = "", *, account: bool = False) -> str:
        """A chat or pending decision (`10001:A3`) by its journal name; others unchanged."""
        if found := APPROVAL_NAME.fullmatch(name):
            return self("place.account", place=found[2], account=found[1])
        try:
            return self.place(Conversation.parse(name), called, account=account)
        except NotAConversation:
            return name

    def text(self, text: str) -> str:
        """The text of another package, in this language if it has both."""
        return text_in(self.bot_language, text)

    def plain(self, text: str) -> str:
        """The text of a message (`plain_words`); its placeholders are translated (`[image]`)."""

        def translated(found: re.Match[str]) -> str:
            key = f"thing.{found[1]}"
            return self(key) if self.has(key) else found[0]

        return PLACEHOLDER.sub(translated, text)

    def has(self, key: str) -> bool:
        return key in self._words


@cache
def language_named(language: str) -> Language:
    return Language(language, read_words())


@cache
def read_words() -> Mapping[str, Phrase]:
    """The console's text by the files' keys, which begin with `console` in the catalogue. Raises
    ValueError if the files differ in their keys.
    """
    zh, en = (json.loads((WORDS_FOLDER / f"{name}.json").read_text("utf-8")) for name in LANGUAGES)
    if only := sorted(zh.keys() ^ en.keys()):
        raise ValueError(f"one language has no words for {', '.join(only)}")
    words = {key: Phrase(zh[key], en[key]) for key in zh}
    CATALOGUE.register("console", words)
    return words


LANGUAGE: Final = web.RequestKey("language", Language)


def choose_language(request: web.Request) -> Language:
    """The language chosen in this browser, else the one it prefers."""
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    if chosen in LANGUAGES:
        return language_named(chosen)
    accepted = request.headers.get("Accept-Language", "").lower()
    places = [(accepted.find(language), language) for language in LANGUAGES]
    return language_named(min(((at, one) for at, one in places if at >= 0), default=(0, "en"))[1])
