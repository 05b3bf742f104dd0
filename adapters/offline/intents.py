"""The intent of a question: a handful of things, recognised by their words in Chinese and English.
Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from adapters.offline import names


@dataclass(frozen=True, slots=True)
class Greeting:
    pass


@dataclass(frozen=True, slots=True)
class Thanks:
    pass


@dataclass(frozen=True, slots=True)
class Help:
    """Who are you, what can you do."""


@dataclass(frozen=True, slots=True)
class WeatherIntent:
    """Cities as they were written; none where the question names none."""

    cities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GameVersion:
    """A game as it was written; empty where the question names none."""

    game: str


@dataclass(frozen=True, slots=True)
class Code:
    """Something to be written by Coder."""

    task: str


@dataclass(frozen=True, slots=True)
class SendIntent:
    """A message wanted, with a picture or without."""

    picture: bool


@dataclass(frozen=True, slots=True)
class Recap:
    """Asked for what was said before."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A picture, file, voice or forward is to be looked at."""


@dataclass(frozen=True, slots=True)
class SayNothing:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Tale:
    """Something long is wanted."""


@dataclass(frozen=True, slots=True)
class Table:
    """Something in Markdown is wanted."""


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
    | Other
)

READ = 400  # characters of a question that are looked at


def recognise(question: str) -> Intent:
    """The most particular thing the words are about; a greeting only where nothing else is said."""
    text = question.strip()[:READ]
    if ABLE.search(text):
        return Help()
    if _is_code(text):
        return Code(question.strip())
    if SEND.search(text) and not SHOWN.search(text):
        return SendIntent(picture=PICTURE.search(text) is not None)
    if names.asks_for_weather(text):
        return WeatherIntent(names.find_cities(text))
    if VERSION.search(text):
        game = names.find_game(text)
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
    r"看看|看一下|打开|听听|听一下|[这那](?:张图|个文件|段语音|个转发|是什么)|里面(?:是|写|说)了?什么|"
    r"\b(?:open|look at|listen to|read) (?:it|this|that)\b|\bwhat(?: is|'s) (?:this|that|in it)\b",
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
