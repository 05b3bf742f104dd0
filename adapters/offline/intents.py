"""Recognizes a question's intent, and its cities or game, by Chinese and English rules. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from adapters.offline.reminders import read_reminding

# --- words around a name --------------------------------------------------------------------------

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
# no word for a day is stripped here: 明日方舟 is a game
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
    return bool(CHINESE_WEATHER.search(text) or ENGLISH_WEATHER.search(text))


def find_cities(text: str) -> tuple[str, ...]:
    """The cities named, as written, at most four."""
    found = _chinese_place(text) if CHINESE_WEATHER.search(text) else _english_place(text)
    cities = dict.fromkeys(
        name for city in BETWEEN.split(found) if (name := city.strip()) and name not in NO_CITY
    )
    return tuple(cities)[:MAX_CITIES] if all(map(_could_be_a_city, cities)) else ()


def _could_be_a_city(name: str) -> bool:
    """Excludes half sentences."""
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
    """The game named, as written, or an empty string."""
    if "版本" in text:
        trailer = CHINESE_GAME.search(text)
        parts = (text.split("版本", 1)[0], trailer[1] if trailer else "")
        return _first(map(_strip_chinese_game, parts))
    patterns = (ENGLISH_OF, ENGLISH_BEFORE_VERSION, ENGLISH_AFTER_VERSION)
    return _first(
        _strip_english(match[1]) for pattern in patterns if (match := pattern.search(text))
    )


# --- the web --------------------------------------------------------------------------------------

LINK = re.compile(r"https?://[!-~]+", re.IGNORECASE)
SEARCHED = re.compile(
    r"(?:搜一下|搜搜|搜索一下|搜索|上网(?:查|搜)(?:一下|查)?|网上(?:查|搜)(?:一下|查)?|百度一下)[\s:：，,]*(.+)|"
    r"\b(?:search (?:the web )?for|look up online|google|web search)\b[\s:]*(.+)",
    re.IGNORECASE,
)


WHAT = re.compile(
    r"讲|说|写|什么|内容|总结|概括|\bwhat\b|\babout\b|\bsummar|\bsays?\b", re.IGNORECASE
)
SUMMED = re.compile(r"概括|摘要|总结|\bsummar", re.IGNORECASE)
FOLLOWED = re.compile(r"订阅|\bsubscribe\b|\bfollow\b", re.IGNORECASE)


def find_link(text: str) -> str:
    """The first URL in the text; empty if there is none."""
    found = LINK.search(text)
    return found[0].rstrip(".,;:!?)]}'\"") if found else ""


def asks_what_it_says(text: str) -> bool:
    """Whether a question is what a page says."""
    return WHAT.search(text[:MAX_QUESTION]) is not None


def wants_summaries(text: str) -> bool:
    """Whether news of a feed is wanted with summaries."""
    return SUMMED.search(text[:MAX_QUESTION]) is not None


def wants_feed(text: str) -> bool:
    """Whether a question with a link asks to follow it."""
    return FOLLOWED.search(text[:MAX_QUESTION]) is not None


def find_search(text: str) -> str:
    """The query if a web search is wanted; else empty."""
    found = SEARCHED.search(text[:MAX_QUESTION])
    words = next(filter(None, found.groups()), "") if found else ""
    return re.sub(r"[\s。.!！?？吧]+$", "", words)


@dataclass(frozen=True, slots=True)
class Greeting:
    pass


@dataclass(frozen=True, slots=True)
class Thanks:
    pass


@dataclass(frozen=True, slots=True)
class Help:
    """Asks who the bot is, or what it can do."""


@dataclass(frozen=True, slots=True)
class WeatherIntent:
    """Cities as written; none if the question names none."""

    cities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GameVersion:
    """A game as written; empty if the question names none."""

    game: str


@dataclass(frozen=True, slots=True)
class Code:
    """A task for Coder."""

    task: str


@dataclass(frozen=True, slots=True)
class SendIntent:
    """Wants a message, with or without an image."""

    picture: bool


@dataclass(frozen=True, slots=True)
class Recap:
    """Asks what was said before."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Wants an attachment opened: image, file, voice message or forward."""


@dataclass(frozen=True, slots=True)
class SayNothing:
    """Wants silence."""


@dataclass(frozen=True, slots=True)
class Tale:
    """Wants a long text."""


@dataclass(frozen=True, slots=True)
class Table:
    """Wants Markdown."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """Wants something done with reminders."""


@dataclass(frozen=True, slots=True)
class Other:
    pass


Intent: TypeAlias = (
    Greeting
    | Thanks
    | Help
    | WeatherIntent
    | GameVersion
    | Code
    | SendIntent
    | Recap
    | Opening
    | SayNothing
    | Tale
    | Table
    | Reminder
    | Other
)

MAX_QUESTION = 400  # characters of a question; the rest is ignored


def recognise(question: str) -> Intent:
    """Return the most specific intent; a greeting only if there is nothing else."""
    text = question.strip()[:MAX_QUESTION]
    if ABLE.search(text):
        return Help()
    if read_reminding(text) is not None:
        return Reminder()
    if _is_code(text):
        return Code(question.strip())
    if SEND.search(text) and not SHOWN.search(text):
        return SendIntent(picture=PICTURE.search(text) is not None)
    if asks_for_weather(text):
        return WeatherIntent(find_cities(text))
    if VERSION.search(text):
        game = find_game(text)
        return (
            Help() if game.casefold() in OURSELVES or ABOUT_US.search(text) else GameVersion(game)
        )
    for pattern, intent in IN_A_WORD:
        if pattern.search(text):
            return intent
    if HELP.search(text):
        return Help()
    if THANKS.search(text):
        return Thanks()
    return Greeting() if GREETING.fullmatch(text) else Other()


# --- plain words ----------------------------------------------------------------------------------

VERSION = re.compile(r"版本|\bversion\b", re.IGNORECASE)
OURSELVES = frozenset({"你", "你们", "机器人", "bot", "frostagent", "you", "your"})
ABOUT_US = re.compile(r"你是什么版本|\bversion are you\b", re.IGNORECASE)

GREETING = re.compile(
    r"(?:\W|你好|您好|大家好|哈喽|哈啰|嗨|嘿|早上好|上午好|中午好|下午好|晚上好|早安|晚安|早|"
    r"在吗|在不在|有人吗|机器人|呀|啊|哦|吗|呢|"
    r"\b(?:hi|hello|hey|hiya|yo|good (?:morning|afternoon|evening|night)|morning)\b|"
    r"\b(?:there|everyone|all|bot|again|world)\b)*+",
    re.IGNORECASE,
)
THANKS = re.compile(r"谢谢|多谢|感谢|辛苦了|\bthank(?:s|\s+you)\b|\bthx\b", re.IGNORECASE)
HELP = re.compile(
    r"帮助|功能|你是谁|你叫什么|介绍一下(?:你|自己)|(?:会|能|可以)(?:做|干|帮我做)?(?:些|点)?(?:什么|啥)|怎么用|"
    r"^/?help\b|\bwhat can you do\b|\bwho are you\b|\bwhat are you\b|"
    r"\bhow do(?:es)? (?:i|this|it) (?:use|work)\b|"
    r"\byour (?:name|features|skills)\b",
    re.IGNORECASE,
)

PICTURE = re.compile(r"图|照片|\b(?:picture|image|photo|pic)s?\b", re.IGNORECASE)
SEND = re.compile(
    r"(?:发|传|来|整|给我)[我一个张幅条点些看]{0,3}(?:图(?!书)|照片|消息)|"
    r"\b(?:send|show|give|post)\b.*\b(?:picture|image|photo|pic|message)s?\b",
    re.IGNORECASE,
)
SHOWN = re.compile(
    r"[这那](?:张|个|幅|条)?(?:图|照片|消息)|\b(?:this|that) (?:picture|image|photo|pic|message)",
    re.IGNORECASE,
)

RECAP = re.compile(
    r"(?:刚才|之前|今天|你们)[^。]{0,6}(?:聊|说|讲)了?(?:些|点)?(?:什么|啥)|我?错过了?什么|"
    r"\bwhat did (?:i miss|we say|they say)\b|\brecap\b",
    re.IGNORECASE,
)
OPENING = re.compile(
    r"看看|看一下|打开|听听|听一下|[这那](?:张图|[个份]文[件档]|[个份]表格|[个份]PDF|个压缩包|本书|段语音|个转发|是什么)|"
    r"里面?(?:是|写|说|讲|有)了?(?:些|点)?(?:什么|啥)|"
    r"\b(?:open|look at|listen to|read) (?:it|this|that)\b|\bwhat(?: is|'s) (?:this|that|in it)\b|"
    r"\b(?:this|that|the) (?:file|document|pdf|sheet|archive|zip|book|slides)\b",
    re.IGNORECASE,
)
QUIET = re.compile(
    r"^(?:别说话|不要说话|安静(?:点|一下)?|嘘+|shh+|be quiet|say nothing)\W*$", re.IGNORECASE
)
STORY = re.compile(r"长(?:文|故事|一点的故事)|\blong (?:story|text)\b", re.IGNORECASE)
TABLE = re.compile(r"表格|markdown|\btable\b", re.IGNORECASE)
IN_A_WORD: tuple[tuple[re.Pattern[str], Intent], ...] = (
    (RECAP, Recap()),
    (OPENING, Opening()),
    (QUIET, SayNothing()),
    (STORY, Tale()),
    (TABLE, Table()),
)

# --- code -----------------------------------------------------------------------------------------

WRITE = re.compile(
    r"写|编|实现|来[一个段]|给我|生成|\b(?:write|implement|code|create|make|give|show|program|generate)\b",
    re.IGNORECASE,
)
PROGRAM = re.compile(
    r"代码|程序|函数|脚本|算法|排序|斐波那契|阶乘|素数|质数|回文|反转|正则|爬虫|"
    r"python|javascript|typescript|\bjava\b|c\+\+|\bgolang\b|\brust\b|\bsql\b|html|"
    r"\b(?:code|function|program|script|algorithm|class|regex|hello,? world|"
    r"fibonacci|factorial|primes?|palindrome|"
    r"fizz ?buzz|quick ?sort|bubble ?sort|sort(?:ing)?|revers(?:e|ing))\b",
    re.IGNORECASE,
)
NAMED = re.compile(
    r"快速排序|快排|冒泡排序|斐波那契|fizz ?buzz|\b(?:quick ?sort|bubble ?sort|fibonacci)\b",
    re.IGNORECASE,
)

ABLE = re.compile(
    r"[会能]写(?:代码|程序)[吗么]|^can you (?:write )?(?:code|programs?)\W*$", re.IGNORECASE
)


def _is_code(text: str) -> bool:
    return bool(NAMED.search(text)) or bool(WRITE.search(text) and PROGRAM.search(text))
