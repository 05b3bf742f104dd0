"""The description of a setting, at its declaration; `make docs` builds docs/settings.md from it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.language import Bilingual


@dataclass(frozen=True, slots=True)
class About:
    """One sentence about a setting in each language, at most 20 words, as Markdown.

    `unit` is the unit of a number, or the format of a text if its type does not show it. `unset`
    says what applies if the setting is not set and its default does not show it. `example` is a
    value that loads. `see` is the page of docs/ that has more.
    """

    en: str
    zh: str
    unit: Bilingual | None = None
    unset: Bilingual | None = None
    example: str = ""
    see: str = ""


CALLS = Bilingual("calls", "次")
DAYS = Bilingual("days", "天")
DOLLARS = Bilingual("US dollars", "美元")
FOLDER = Bilingual("folder", "目录")
GROUPS = Bilingual("group numbers", "群号")
MESSAGES = Bilingual("messages", "条")
QUESTIONS = Bilingual("questions", "个")
LINKS = Bilingual("links", "个链接")
REPLIES = Bilingual("replies", "次")
REQUESTS = Bilingual("requests", "个")
SECONDS = Bilingual("seconds", "秒")
TOKENS = Bilingual("tokens", "token 数")
