"""Drafts, as an owner reads them and answers: what the bot would have said in a group. Pure.

Only we write at the beginning of a line; what others wrote is indented, or in one line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.policy.approval import INNER_QUOTES, MARKS
from frostagent.engine.authority import in_one_line
from frostagent.text.language import Language

FRESH = 600.0  # seconds after which nobody remembers the question: it is not quoted any more
MAX_GROUP = 24  # characters of a group's name
MAX_QUESTION = 80
MAX_CALL = 200  # characters of a call that was not run

HEAD = ("[草稿 D{number} {group}]", "[Draft D{number} {group}]")
SHADOW = ("[影子 {group}]", "[Shadow {group}]")
HOW = (
    "回复「发 D{number}」发出去，或「改 D{number} 新的话」；不回复就不发。",
    'Answer "send D{number}" to publish it, or "edit D{number} other words"; else it stays here.',
)
NOT_RUN = ("没有做：{call}", "Not done: {call}")
UNSHOWN = (
    "一小时内的草稿太多，有 {count} 条没有给你看。",
    "Too many drafts in an hour: {count} were not shown to you.",
)
DONE = ("D{number} 发出去了。", "D{number} is published.")
CHANGED = ("D{number} 改好发出去了。", "D{number} is published with your words.")
OVER = ("D{number} 已经处理过了：{what}。", "D{number} is settled already: {what}.")
BY = ("{by} 发了", "{by} published it")
SAID = ("发了", "it was published")
UNSURE = ("可能发了，QQ 没有回答", "it may have been published, QQ did not answer")
TAKEN_BACK = ("提问撤回了，没有发", "its question was recalled, it was left")
RECALLED = (
    "D{number} 不用管了：提问撤回了，没有发。",
    "D{number} needs no word any more: its question was recalled. It is not published.",
)
FORGOTTEN = ("记录删掉了，没有发", "its words are forgotten, it was left")
LEFT = ("没有发", "it was left")
DROPPED = ("D{number} 不发了。", "D{number} is left.")
GIVEN_UP = (
    "群 {group} 不再是影子，还在等的 {count} 条草稿不发了。",
    "Group {group} is no shadow any more: {count} drafts that waited are given up.",
)
UNDER_WAY = ("正在发", "it is on its way")
OFFLINE = (
    "现在没有连上 QQ；两分钟内连上就发，连不上 D{number} 就还在等。",
    "QQ is not connected: D{number} is published if it is within two minutes, else it still waits.",
)
EXPIRED = (
    "D{number} 过期了：草稿只留一天，没有发。",
    "D{number} has expired: drafts wait for a day.",
)
UNKNOWN = (
    "没有编号为 D{number} 的草稿，可能已经过期或处理过了。",
    "There is no draft D{number}; it may have expired or be settled.",
)
GONE = (
    "D{number} 发不了：提问已经撤回，或者记录删掉了。",
    "D{number} cannot be published: its question was recalled, or is forgotten.",
)
NO_MEDIA = (
    "D{number} 的图片或文件太大，没有留下来；可以用「改 D{number} 新的话」。",
    'The pictures or files of D{number} were too large to keep; "edit D{number} words" works.',
)
AGAIN = (
    "这条回复是断线时发的，没有算数；D{number} 还在等，要发请再回复一次。",
    "That answer came while I was away and is void; D{number} still waits: please answer again.",
)
NO_WORDS = ("要改成什么？请发「改 D{number} 新的话」。", 'To what? "edit D{number} other words".')
REFUSED = (
    "D{number} 没有发出去：{what}。它还在等。",
    "D{number} was not published: {what}. It still waits.",
)
UNANSWERED = (
    "D{number} 发出去没有，QQ 没有回答；请在群里看一下，不会再发。",
    "QQ did not answer whether D{number} was published; look in the group, it is not sent again.",
)
IN_PART = (
    "D{number} 只发出去一部分，后面的 QQ 不收：{what}。不会再发。",
    "D{number} is published in part: QQ refused the rest: {what}. It is not sent again.",
)
BUSY = (
    "现在记不下来，D{number} 还在等，请过一会儿再回复一次。",
    "That cannot be written down now, D{number} still waits: answer again in a while.",
)

ANSWER = re.compile(
    r"\s*(?P<word>发布|发|改|send|publish|edit|change)"
    r"(?:\s*[#＃]?\s*[dDｄＤ]\s*(?P<number>[0-9０-９]{1,9})(?![0-9０-９A-Za-z]))?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
NUMBERED = re.compile(r"\[(?:草稿|Draft) D([0-9]{1,9}) ")
CHANGES = ("改", "edit", "change")
BEFORE = " \t\r\n\u3000,，:："  # between a number and other words


@dataclass(frozen=True, slots=True)
class DraftWord:
    """An owner's word about a draft: it is published, with other `words` if the owner `changes` it.
    The number is None if the word names none.
    """

    number: int | None
    changes: bool = False
    words: str = ""


def read_word(text: str) -> DraftWord | None:
    """`发 D7`, `改 D7 words`, `send D7`, or beside a quote `发` and `改 words`; None for anything
    else.
    """
    if (match := ANSWER.fullmatch(text)) is None:
        return None
    rest, number = match["rest"], None if match["number"] is None else int(match["number"])
    if match["word"].lower() in CHANGES:
        if number is None and rest and rest[0] not in MARKS:  # 改天, changed
            return None
        return DraftWord(number, changes=True, words=rest.lstrip(BEFORE).rstrip())
    return None if rest.strip(MARKS) else DraftWord(number)


def publish_word(text: str, number: int) -> str:
    """The word of this answer with the number of a draft: `发 D7`."""
    match = ANSWER.match(text)
    return f"{match['word']} D{number}" if match else f"D{number}"


def number_in(text: str) -> int | None:
    """The number of the draft that a line of ours shows; None for any other text."""
    match = NUMBERED.match(text)
    return int(match[1]) if match else None


def shadow_notice(group: str, calls: tuple[str, ...], *, tongue: Language) -> str:
    """The line about what would have been done there, where nothing would have been said."""
    return "\n".join([SHADOW[tongue].format(group=_name(group)), *_not_run(calls, tongue)])


def draft_text(
    number: int, group: str, asked: str, words: str, calls: tuple[str, ...], *, tongue: Language
) -> str:
    """The line to an owner: the group, the question `asked` there, the words, and what would have
    been done beside them.
    """
    lines = [HEAD[tongue].format(number=number, group=_name(group))]
    if asked:
        lines.append(in_one_line(asked, MAX_QUESTION).translate(INNER_QUOTES))
    lines += [f"  {line}" for line in words.splitlines()]
    lines += _not_run(calls, tongue)
    return "\n".join([*lines, HOW[tongue].format(number=number)])


def _name(group: str) -> str:
    return in_one_line(group, MAX_GROUP).replace("]", "］")


def _not_run(calls: tuple[str, ...], tongue: Language) -> list[str]:
    return [NOT_RUN[tongue].format(call=in_one_line(call, MAX_CALL)) for call in calls]
