"""The demo model's answers to errands (`bot/budget/errands.py`). An errand is recognised by the
mark at the beginning of its instructions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapters.offline.question import Json, Language, read_text

LINE: Final = re.compile(r"\d\d:\d\d (?P<name>[^\n:]+): (?P<text>[^\n]+)")
GREETED: Final = re.compile(r"\] (?P<names>.+?) (?:刚(?:加入|退出)群|just (?:joined|left))")
NOTE: Final = re.compile(r"\(\d+\) (?P<text>[^\n]+)")
ENTRY: Final = re.compile(r"\((?P<number>\d+)\) [^\n]*\n  (?P<text>[^\n]+)")
LATEST: Final = re.compile(r"\[(?:刚才|Just now)\]")
TO_ALL: Final = re.compile(
    r"有没有人|有人|谁(?!都)|哪位|大家|求推荐|求助|any(?:one|body)|who knows|somebody|recommend",
    re.IGNORECASE,
)
ANSWERED: Final = re.compile(
    r"^(?:有(?![人谁没])|我|用|可以|是|在|去|试试|yes|i |try|it'?s|use )", re.IGNORECASE
)
CLOSED: Final = re.compile(
    r"难过|去世|分手|闭嘴|滚|吵|算了|解决了|搞定了|谢谢|散了|晚安"
    r"|sad|died|broke up|shut up|never ?mind|solved|fixed it|thanks|good night",
    re.IGNORECASE,
)
SENTENCE: Final = re.compile(r"[^。！？]+[。！？]?")
AT: Final = re.compile(r"@\S")
MAX_WORDS: Final = 60  # characters of a person's last message
MAX_PEOPLE: Final = 6


def do_errand(messages: Sequence[Json]) -> str:
    """The answer to an errand; empty if the messages are not one."""
    system = "".join(read_text(one) for one in messages if one.get("role") == "system")
    asked = "\n".join(read_text(one) for one in messages if one.get("role") == "user")
    for mark, (errand, language) in ERRANDS.items():
        if mark in system or asked.startswith(mark):
            return errand(asked, language)
    return ""


def _recap(asked: str, language: Language) -> str:
    """Each person's number of messages and last words."""
    if notes := NOTE.findall(asked):
        return "\n".join(notes)
    said: dict[str, list[str]] = {}
    for line in LINE.finditer(asked):
        said.setdefault(line["name"], []).append(line["text"])
    form = "{name}（{count} 条）：{last}" if language == "zh" else "{name} ({count}): {last}"
    return "\n".join(
        form.format(name=name, count=len(texts), last=texts[-1][:MAX_WORDS])
        for name, texts in list(said.items())[:MAX_PEOPLE]
    )


def _greet(asked: str, language: Language) -> str:
    """A sentence about people who joined or left."""
    news = GREETED.search(asked)
    names = news["names"] if news else ""
    if language == "zh":
        return f"{names} 慢走，有空常来！" if "退出群" in asked else f"欢迎 {names}，随便坐！"
    return (
        f"Goodbye, {names}!"
        if "just left" in asked
        else f"Welcome, {names}, make yourself at home!"
    )


def _poked(_asked: str, language: Language) -> str:
    return "诶，谁戳我？我在呢。" if language == "zh" else "Hey, who was that? I am here."


def _judge(asked: str, _language: Language) -> str:
    """A high rating if the last lines ask everyone and have no answer yet."""
    lines = [line["text"] for line in LINE.finditer(LATEST.split(asked)[-1])]
    last = lines[-1] if lines else ""
    if any(map(CLOSED.search, lines)):
        number = 0
    elif any(map(TO_ALL.search, lines[-2:])) and not ANSWERED.search(last):
        number = 9
    elif last.rstrip().endswith(("?", "？")) and not AT.search(last):
        number = 6
    else:
        number = 2
    return f'{{"number": {number}, "reason": "demo"}}'


def _sum_up(asked: str, _language: Language) -> str:
    """The first sentences of a page, which follow its title."""
    prose = [line.strip() for line in asked.splitlines()[1:] if not line.strip().startswith("#")]
    sentences = (one.strip() for line in prose for one in SENTENCE.findall(line))
    return "\n".join([one[: 2 * MAX_WORDS] for one in sentences if one][:3]) or "NONE"


def _sum_up_news(asked: str, _language: Language) -> str:
    """The first sentence of each entry, which follows its title."""
    found = ENTRY.finditer(asked)
    firsts = ((one["number"], SENTENCE.search(one["text"])) for one in found)
    return "\n".join(f"{number}. {first[0] if first else 'NONE'}" for number, first in firsts)


ERRANDS: Final[Mapping[str, tuple[Callable[[str, Language], str], Language]]] = {
    "[省流]": (_recap, "zh"),
    "[Recap]": (_recap, "en"),
    "[戳一戳]": (_poked, "zh"),
    "[Poke]": (_poked, "en"),
    "[插话]": (_judge, "zh"),
    "[Chime in]": (_judge, "en"),
    "[概括网页]": (_sum_up, "zh"),
    "[Sum up a page]": (_sum_up, "en"),
    "[概括新内容]": (_sum_up_news, "zh"),
    "[Sum up news]": (_sum_up_news, "en"),
    "[招呼]": (_greet, "zh"),
    "[Greeting]": (_greet, "en"),
}
"""By their marks: the function that answers, and its language."""
