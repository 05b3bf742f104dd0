"""Lines of the log that a model says back under bare names: `小明: 我去`. Pure.

Who is asked what people said quotes them just so, and dialogues, lists and votes look alike. So it
is the log only where the question itself is among the lines; or where nobody asked what was said,
nor about one of those who speak, and the lines repeat what was shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from bot.policy.circling import LETTERS, letters_of, weight
from bot.prompt import marks
from bot.prompt.people import People, name_key

LONG_ENOUGH = 8 * LETTERS  # of lines without names
FEW_LINES = 3
NOBODY = "\n"  # who says a line of the log that has lost its name
NEXT = re.compile(rf"[，,、;；。\s]+(?=[^\s:：，,、;；。]{{1,24}}{marks.COLON})")
"""Between two lines of the log that stand on one."""
ASKS_WHAT_WAS_SAID = re.compile(
    r"谁|(?<![我你])说|说[了过的]?(?:什么|啥|哪)|讲了|聊|记录|原话|引用|大家|他们|她们|每人|每个人|各位|各自|分别|总结|概括|汇总|统计|整理|列|名单|报名|投票"
    r"|接龙|对话|剧本|台词|角色|模仿|复述|重复|抄|念|翻译|上面|前面|刚才|之前|群里|错过|发生|意见|回顾|消息"
    r"|\b(?:who|whose|sa(?:y|ys|id)|t(?:ell|old)|talk\w*|chat\w*|logs?|quotes?|summar\w+|lists?|recap"
    r"|every(?:one|body)|they|each|votes?|sign\w*|dialog\w*|scripts?|translate|repeat|miss(?:ed)?"
    r"|happen\w*|earlier|before|between|opinions?|messages?)\b",
    re.IGNORECASE,
)


BULLET = re.compile(r"\s*(?:[(（]?\d{1,3}[)）.、]|[-*·•])\s*(?=\S)")
BRACKETED = re.compile(r"\s*[(（\[［【]\s*(?P<inside>[^\n]*?)\s*[)）\]］】][。.]?\s*")


class Spoken(Struct, frozen=True):
    """A line of an answer: whose it is, folded, empty where it is nobody's; and the words. Nobody
    quotes a whole line in brackets.
    """

    name: str
    words: str
    in_brackets: bool = False


def without_log(text: str, people: People, *, question: str, asked: str) -> str:
    """The text without lines of the log; the very same text where it has none.

    `question` is the line that is answered, `asked` all that its asker said.
    """
    has_label = ":" in text or "：" in text
    if not has_label and text.count("\n") < FEW_LINES - 1:
        return text
    lines = [spoken for line in text.splitlines() for spoken in _spoken(line, people)]
    told = [one for one in lines if letters_of(one.words) or one.name]
    theirs = [one for one in told if one.name]
    if not theirs:
        is_log = _is_log_without_names(told, people, asked)
        return "" if is_log else text
    letters = letters_of(question)
    if any(one.in_brackets or letters_of(one.words) == letters != "" for one in theirs):
        return "\n".join(one.words for one in lines if not one.name).strip()
    if ASKS_WHAT_WAS_SAID.search(asked) or any(one.name in asked.casefold() for one in theirs):
        return text
    said = [one for one in theirs if people.has_shown(one.words)]
    if 2 * len(said) < len(theirs):
        return text
    if len(theirs) == len(told):
        return ""
    last = next(place for place, one in enumerate(lines) if one.name)
    if any(not one.name and letters_of(one.words) for one in lines[last:]) or _announces(
        lines[:last]
    ):
        return text
    return "\n".join(one.words for one in lines[:last]).rstrip()


def _announces(lines: list[Spoken]) -> bool:
    """Whether the last of these lines tells that others' words follow."""
    last = next((one.words for one in reversed(lines) if one.words.strip()), "")
    return marks.ANNOUNCED.search(last) is not None


def _is_log_without_names(lines: list[Spoken], people: People, asked: str) -> bool:
    """Whether it is nothing but several lines that members said, and nobody asked for that."""
    if len(lines) < FEW_LINES or not all(people.has_shown(one.words) for one in lines):
        return False
    whole = weight(letters_of("".join(one.words for one in lines)))
    return whole >= LONG_ENOUGH and ASKS_WHAT_WAS_SAID.search(asked) is None


def _spoken(line: str, people: People) -> Iterator[Spoken]:
    """The line; where several stand on it, under names of the log, each of them."""
    parts = NEXT.split(line)
    found = [_one(part, people) for part in parts]
    is_log = any(one.name for one in found) and all(
        one.name or people.has_shown(one.words) for one in found
    )
    if len(parts) > 1 and is_log:
        yield from (Spoken(one.name or NOBODY, one.words) for one in found)
    else:
        yield _one(line, people)


def _one(line: str, people: People) -> Spoken:
    inside = BRACKETED.fullmatch(line)
    if inside and (one := _one(inside["inside"], people)).name:
        return Spoken(one.name, one.words, in_brackets=True)
    begin, name = BULLET.match(line), ""
    said = line[begin.end() :] if begin else line
    if (match := marks.LINE.match(said)) and people.called(match["number"]):
        name = name_key(match["name"])  # whatever: the number is one of the record's
    elif match := marks.LABELLED.match(said):
        key = name_key(match["name"])
        name = key if people.is_shown(key) else ""
    if match is None or not name:
        return Spoken("", line)
    return Spoken(name, marks.OUR_QUOTE.sub("", said[match.end() :].strip(), count=1))
