"""Finds the name in a question: of the cities whose weather, of the game whose version is asked
for. Pure.

The name is what is left when the words people put around one are taken off, at both ends. The
patterns that must reach the end of a text are possessive (`++`, the longer word first): nobody can
make them try every way to read one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# --- what stands around a name --------------------------------------------------------------------

PUNCTUATION = r"[\s,，.。!！?？:：;；、~～…《》〈〉「」“”\"'‘’]"
TIMES = (
    "大后天|今天|今日|明天|明日|后天|昨天|现在|当前|目前|如今|这周末|这个周末|本周末|这周|本周|下周|周末|最近|今晚|明早|早上|上午|中午|下午|晚上|"
    "这两天|这几天"
)
ASKING = (
    "请问|麻烦|请|帮我|帮忙|帮|给我|告诉我|你能|你知道|能不能|可不可以|能|可以|我想知道|我想|我要|想知道|知道|想问|问一下|问问|"
    "查一下|查一查|查询|查查|查看|查|看看|看一下|搜一下|说说|一下|那么|那|你好|您好|嗨|hello|hi|hey"
)
BEFORE_CITY = re.compile(f"^(?:{PUNCTUATION}|{ASKING}|{TIMES}|我在|在)+", re.IGNORECASE)
# no days here: 明日方舟 is a game
BEFORE_GAME = re.compile(f"^(?:{PUNCTUATION}|{ASKING}|现在|当前|目前|最新的?|游戏)+", re.IGNORECASE)
AFTER_CITY = re.compile(
    f"(?:{PUNCTUATION}|{TIMES}|的|会不会|有没有|是不是|会|有|要|怎么样|怎样|如何|好不好|好吗|是多少|多少|吗|呢|吧)++$"
)
AFTER_GAME = re.compile(
    f"(?:{PUNCTUATION}|{TIMES}|的|最新|是什么|是多少|什么|多少|哪个|几|是|更新到|出到|更新|到|了|已经|游戏|吗|呢|吧)++$"
)


def _strip_chinese_city(text: str) -> str:
    return AFTER_CITY.sub("", BEFORE_CITY.sub("", text))


def _strip_chinese_game(text: str) -> str:
    return AFTER_GAME.sub("", BEFORE_GAME.sub("", text))


ENGLISH_TIMES = (
    r"(?:for |on |right )?"
    r"(?:today|tomorrow|tonight|now|currently|this (?:week|weekend|morning|afternoon|evening))"
)
ENGLISH_BEFORE = re.compile(
    r"^(?:(?:what's|whats|what|which|how's|hows|how|is|are|the|a|an|show|me|tell|give|get|check|"
    r"find|please|can|could|would|you|i|want|to|know|about|current|latest|newest|in|for|of|will|it|rain|snow|game|hi|hello|hey|"
    rf"(?:today|tomorrow)(?:'s|s)|{ENGLISH_TIMES})(?:[\s,]+|$))+",
    re.IGNORECASE,
)
ENGLISH_AFTER = re.compile(
    rf"(?:(?:^|[\s,]+)(?:{ENGLISH_TIMES}|please|thanks|like|on|at|is|have|running|out))++$",
    re.IGNORECASE,
)


def _strip_english(text: str) -> str:
    bare = re.sub(r"[?!.;:，。？！\s]+$", "", text.strip())
    return ENGLISH_AFTER.sub("", ENGLISH_BEFORE.sub("", bare)).strip()


def _first(names: Iterable[str]) -> str:
    return next((name for name in names if name), "")


# --- weather --------------------------------------------------------------------------------------

CHINESE_WEATHER = re.compile(
    r"(?<!聊)天气|气温|(?:会|要|有没有|有)(?:不会)?(?:下雨|下雪)|下雨吗|下雪吗"
)
CHINESE_TRAILER = re.compile(r"(?:天气|气温)(?:预报)?[\s:：,，]+(.+)")
ENGLISH_WEATHER = re.compile(
    r"\bweather\b|\bforecast\b|\bwill it (?:rain|snow)\b|\bis it (?:raining|snowing)\b",
    re.IGNORECASE,
)
ENGLISH_PLACE = re.compile(r"\b(?:in|for|at|of)\s+([^?!;:\n]+)", re.IGNORECASE)
ENGLISH_LEADER = re.compile(r"^(.+?)(?:'s)?\s+(?:weather|forecast)\b", re.IGNORECASE)
ENGLISH_TRAILER = re.compile(r"\b(?:weather|forecast)\s+(.+)", re.IGNORECASE)
BETWEEN = re.compile(
    r"(?<=\S)(?:以及|、|，|,|&|/|(?<!呼)[和跟与](?!田|县|平)|\s+and\s+)\s*(?=\S)", re.IGNORECASE
)
MAX_CITIES = 4
NO_CITY = frozenset(
    {
        "这里",
        "这边",
        "那边",
        "外面",
        "本地",
        "当地",
        "我这",
        "我这里",
        "谢谢",
        "nice",
        "good",
        "here",
        "outside",
    }
)
LONGEST_CITY = 24
LONGEST_CHINESE_CITY = 10


def asks_for_weather(text: str) -> bool:
    """It speaks of the weather at all."""
    return bool(CHINESE_WEATHER.search(text) or ENGLISH_WEATHER.search(text))


def find_cities(text: str) -> tuple[str, ...]:
    """The places whose weather is asked for, as they were written, at most four; none where none is
    named.
    """
    found = _chinese_place(text) if CHINESE_WEATHER.search(text) else _english_place(text)
    cities = dict.fromkeys(
        name for city in BETWEEN.split(found) if (name := city.strip()) and name not in NO_CITY
    )
    return tuple(cities)[:MAX_CITIES] if all(map(_could_be_a_city, cities)) else ()


def _could_be_a_city(name: str) -> bool:
    """Not half a sentence."""
    return len(name) <= (LONGEST_CITY if name.isascii() else LONGEST_CHINESE_CITY)


def _chinese_place(text: str) -> str:
    before = CHINESE_WEATHER.split(text, maxsplit=1)[0]
    trailer = CHINESE_TRAILER.search(text)
    return _first(map(_strip_chinese_city, (before, trailer[1] if trailer else "")))


def _english_place(text: str) -> str:
    patterns = (ENGLISH_PLACE, ENGLISH_LEADER, ENGLISH_TRAILER)
    return _first(
        _strip_english(match[1]) for pattern in patterns if (match := pattern.search(text))
    )


# --- game versions --------------------------------------------------------------------------------

CHINESE_GAME = re.compile(r"版本(?:号)?\s*的?[\s:：]*(.*)")
ENGLISH_OF = re.compile(r"\bversion\s+(?:of|is|does|for|number of)\s+([^?!;\n]+)", re.IGNORECASE)
ENGLISH_BEFORE_VERSION = re.compile(r"^(.*?)(?:'s)?\s+version\b", re.IGNORECASE)
ENGLISH_AFTER_VERSION = re.compile(r"\bversion\s+(.+)", re.IGNORECASE)


def find_game(text: str) -> str:
    """The game whose version is asked for, as it was written; empty where none is named."""
    if "版本" in text:
        trailer = CHINESE_GAME.search(text)
        parts = (text.split("版本", 1)[0], trailer[1] if trailer else "")
        return _first(map(_strip_chinese_game, parts))
    patterns = (ENGLISH_OF, ENGLISH_BEFORE_VERSION, ENGLISH_AFTER_VERSION)
    return _first(
        _strip_english(match[1]) for pattern in patterns if (match := pattern.search(text))
    )
