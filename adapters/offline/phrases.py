"""The demo's texts in Chinese and English, its texts for tool failures, and Coder's sample
programs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapters.offline.question import Language


@dataclass(frozen=True, slots=True)
class Sample:
    """A program, and the pattern of requests for it."""

    asked: re.Pattern[str]
    code: str


def _sample(asked: str, code: str) -> Sample:
    return Sample(re.compile(asked, re.IGNORECASE), code.strip())


SAMPLES = (
    _sample(
        r"快速排序|快排|quick ?sort",
        """
def quicksort(items):
    if len(items) <= 1:
        return items
    pivot = items[len(items) // 2]
    smaller = [item for item in items if item < pivot]
    equal = [item for item in items if item == pivot]
    larger = [item for item in items if item > pivot]
    return quicksort(smaller) + equal + quicksort(larger)


print(quicksort([5, 3, 8, 1, 3]))  # [1, 3, 3, 5, 8]
""",
    ),
    _sample(
        r"冒泡|bubble ?sort",
        """
def bubble_sort(items):
    items = list(items)
    for end in range(len(items) - 1, 0, -1):
        for i in range(end):
            if items[i] > items[i + 1]:
                items[i], items[i + 1] = items[i + 1], items[i]
    return items


print(bubble_sort([5, 3, 8, 1, 3]))  # [1, 3, 3, 5, 8]
""",
    ),
    _sample(
        r"斐波那契|fibonacci",
        """
def fibonacci(count):
    numbers, a, b = [], 0, 1
    for _ in range(count):
        numbers.append(a)
        a, b = b, a + b
    return numbers


print(fibonacci(10))  # [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
""",
    ),
    _sample(
        r"阶乘|factorial",
        """
def factorial(n):
    result = 1
    for factor in range(2, n + 1):
        result *= factor
    return result


print(factorial(10))  # 3628800
""",
    ),
    _sample(
        r"素数|质数|\bprimes?\b",
        """
def is_prime(n):
    if n < 2:
        return False
    return all(n % divisor for divisor in range(2, int(n**0.5) + 1))


print([n for n in range(30) if is_prime(n)])  # [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
""",
    ),
    _sample(
        r"回文|palindrome",
        """
def is_palindrome(text):
    letters = [letter.lower() for letter in text if letter.isalnum()]
    return letters == letters[::-1]


print(is_palindrome("A man, a plan, a canal: Panama"))  # True
""",
    ),
    _sample(
        r"fizz ?buzz",
        """
for n in range(1, 16):
    print("Fizz" * (n % 3 == 0) + "Buzz" * (n % 5 == 0) or n)
""",
    ),
    _sample(
        r"反转|倒序|revers(?:e|ing)",
        """
def reverse(text):
    return text[::-1]


print(reverse("FrostAgent"))  # tnegAtsorF
""",
    ),
    _sample(r"hello,? ?world|你好,?，?世界", 'print("Hello, world!")'),
)

OTHER_LANGUAGE = re.compile(
    r"javascript|typescript|\bjava\b|c\+\+|c#|c语言|\bgo\b|golang|\brust\b|\bsql\b|\bhtml\b|\bphp\b|\bruby\b",
    re.IGNORECASE,
)


def find_sample(task: str) -> str | None:
    return next((sample.code for sample in SAMPLES if sample.asked.search(task)), None)


def asks_other_language(task: str) -> bool:
    """Whether the task names a language other than Python."""
    return OTHER_LANGUAGE.search(task) is not None


@dataclass(frozen=True, slots=True)
class Phrase:
    """One sentence in both languages; `{}` fields are filled by name."""

    zh: str
    en: str

    def say(self, language: Language, **fields: str) -> str:
        words = self.zh if language == "zh" else self.en
        return words.format(**fields)


SKILLS = Phrase(
    "查天气（“北京天气”）、查游戏版本（“原神版本”）、上网搜索（“搜一下霜降吃什么”）、"
    "发图片（“发张图”）、请 Coder "
    "写代码（“写一个快速排序”）、回顾聊天（“刚才聊了什么”）、打开图片和文件（“看看这个文件”）、"
    "定提醒（“十分钟后提醒我喝水”）、讲长故事、画表格，也能安静（“别说话”）",
    'look up the weather ("weather in London") and game versions ("minecraft version"), search the '
    'web ("search for why cats purr"), send a picture ("send me a picture"), '
    'ask Coder for code ("write a quicksort"), recap the chat '
    '("what did I miss"), open pictures and files ("look at this"), remind you ("remind me in 10 '
    'minutes"), tell a long story, draw a table, and keep quiet ("be quiet")',
)
GREETING = Phrase(
    "你好！我是内置的演示模型，会{skills}。", "Hello! I am the built-in demo model. I can {skills}."
)
HELP = Phrase(
    "我是内置的演示模型，不联网也能用，会{skills}。想要真正的对话，请配置 "
    "LLM_BASE_URL、LLM_API_KEY 和 LLM_MODEL。",
    "I am the built-in demo model and need no key. I can {skills}. "
    "For real conversation set LLM_BASE_URL, LLM_API_KEY and LLM_MODEL.",
)
OTHER = Phrase(
    "这个我还不会：我只是内置的演示模型，会{skills}。接上真正的模型请配置 "
    "LLM_BASE_URL、LLM_API_KEY 和 LLM_MODEL。",
    "That is beyond me: I am only the built-in demo model. I can {skills}. "
    "To connect a real model set LLM_BASE_URL, LLM_API_KEY and LLM_MODEL.",
)
THANKS = Phrase("不客气！", "You are welcome!")

WHICH_CITY = Phrase(
    "想查哪个城市的天气？比如“北京天气”。", 'Which city? For example "weather in London".'
)
WHICH_GAME = Phrase(
    "想查哪个游戏的版本？比如“原神版本”。", 'Which game? For example "minecraft version".'
)
NOT_OFFERED = Phrase(
    "这件事要用到工具 {tool}，但现在没有提供给我。",
    "That needs the tool {tool}, which I have not been given.",
)

FOUND = Phrase("查到了：{text}", "Here is what I found: {text}")
NOT_FOUND = Phrase("抱歉，没有查到{what}：{why}。", "Sorry, I could not find {what}: {why}.")
PAGE_SAYS = Phrase(
    "网上是这么说的：{text}\n来源：{urls}", "This is what it says: {text}\nSources: {urls}"
)
NOT_READ = Phrase("这个网页没读成（{why}）。", "I could not read that page ({why}).")
NOT_SUBSCRIBED = Phrase("没订阅上（{why}）。", "I could not subscribe to that ({why}).")
NOT_SEARCHED = Phrase("这会儿搜不了（{why}）。", "I cannot search right now ({why}).")
NOTHING_FOUND = Phrase("没搜到“{words}”。", 'I found nothing about "{words}".')
THE_WEATHER = Phrase("{name}的天气", "the weather in {name}")
THE_VERSION = Phrase("{name}的版本", "the version of {name}")

ASKING_CODER = Phrase(
    "好的，我去请 Coder 来写，请稍等。",
    "All right, I am asking Coder to write it. One moment, please.",
)
CODER_SAID = Phrase("Coder 说：\n{text}", "Coder says:\n{text}")
CODER_FAILED = Phrase("抱歉，Coder 没能写出来：{why}。", "Sorry, Coder could not write it: {why}.")

PICTURE = Phrase("给，一片雪花：", "Here is a snowflake:")
MESSAGE = Phrase(
    "这是用 send_message 发出的一条消息。", "This is a message sent with send_message."
)
SENT = Phrase("已经发出去啦。", "There it is.")
NOT_SENT = Phrase("抱歉，没能发出去：{why}。", "Sorry, I could not send it: {why}.")

SAMPLE = Phrase("```python\n{code}\n```", "```python\n{code}\n```")
ONLY_PYTHON = Phrase(
    "内置演示里的 Coder 只会 Python，先给你 Python 版：\n",
    "The demo's Coder only knows Python, so here it is in Python:\n",
)
UNKNOWN_TASK = Phrase(
    "内置演示里的 Coder 只背下了几个小程序（快速排序、冒泡排序、斐波那契、阶乘、素数、回文、"
    "FizzBuzz、反转字符串、Hello World），这个不会。",
    "The demo's Coder knows only a few small programs by heart (quicksort, bubble sort, Fibonacci, "
    "factorial, primes, "
    "palindrome, FizzBuzz, reversing a string, hello world), and not this one.",
)

SAID_BEFORE = Phrase("之前的聊天记录：\n{text}", "This was said before:\n{text}")
SEEN = Phrase("我打开看了：\n{text}", "I have opened it:\n{text}")
SEES_ONE = Phrase(
    "看到图片了{sizes}。图里是什么，我这个演示模型认不出来：接上能看图的模型就能回答。",
    "I have got your picture{sizes}. What it shows is beyond a demo model: connect one that can "
    "see, and it will tell you.",
)
SEES_SEVERAL = Phrase(
    "看到 {count} 张图片了{sizes}。图里是什么，我这个演示模型认不出来：接上能看图的模型就能回答。",
    "I have got your {count} pictures{sizes}. What they show is beyond a demo model: connect one "
    "that can see, and it will tell you.",
)
SIZES = Phrase("（{sizes} 像素）", " ({sizes} pixels)")
TIME = Phrase("时间到了", "time is up")
REMINDS = Phrase("好。{text}", "All right. {text}")
WHEN = Phrase(
    "什么时候？比如：明天八点提醒我交作业。",
    "When? As in: remind me tomorrow at 8 to hand it in.",
)
NOT_OPENED = Phrase("抱歉，打不开：{why}。", "Sorry, I could not open it: {why}.")
STORY = Phrase(
    "\n\n".join(
        f"第{number}天，雪还在下。小雪人又往山上走了一段路，路边的松树一棵比一棵高，"
        "风从树缝里钻出来，把它的围巾吹得啪啪响。它数着自己的脚印，想着山顶那盏灯到底是谁点的，"
        "想着想着天就黑了，它在一块大石头后面睡着了。半夜里它听见有人在远处唱歌，歌声断断续续，"
        "像是从山的另一边翻过来的。它没有害怕，只是把围巾又裹紧了一圈，心想明天一定要问问那位唱歌的人，"
        "山顶的灯是不是也给他照过路。"
        for number in "一二三四五六七八九十"
    )
    + "\n\n第十一天它终于到了。灯是山顶的邮递员点的，他递给它一封信，信上写着：下山小心。",
    "\n\n".join(
        f"On day {number} it was still snowing. The little snowman walked a bit further up the "
        "mountain, past taller and taller pines, and wondered who had lit the lamp at the top. "
        "At night somebody sang far away."
        for number in range(1, 12)
    ),
)
TABLE = Phrase(
    "| 城市 | 天气 |\n|---|---|\n| **北京** | 晴 |\n| 上海 | 雨 |\n\n"
    "- 数据是编的\n- 只是给你看 `Markdown`",
    "| city | weather |\n|---|---|\n| **London** | rain |\n| Rome | sun |\n\n"
    "- all made up\n- to show `Markdown`",
)

REASONS = {
    "TOOL_TIMEOUT": Phrase("等了太久没有回应", "it took too long"),
    "TOOL_DENIED": Phrase("没有权限", "it is not allowed here"),
    "TOOL_UNAVAILABLE": Phrase("这个工具现在用不了", "the tool is not available now"),
    "TOOL_INVALID_ARGUMENTS": Phrase("我没弄明白要求", "I did not get the request right"),
}
NO_RESULT = Phrase(
    "工具没能给出结果，请换个说法或稍后再试",
    "the tool could not do it; use other words, or try again later",
)


def reason(code: str, language: Language) -> str:
    """Why a tool failed, by the code in its error; the error's text is for the model."""
    return REASONS.get(code, NO_RESULT).say(language)
