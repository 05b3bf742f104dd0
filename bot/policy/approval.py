"""Somebody's word on a call, as people write it: what they are asked, and how their answer is read. Pure.

Invariant: only we write at the beginning of a line of a request. What the model or a person wrote stands in one line,
without anything that cannot be seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.domain.events import Conversation, MessageReceived
from bot.domain.run import Asker, PendingCall
from bot.domain.segments import Mention, Quote, Text

MAX_ARGUMENTS = 400  # characters of what is to be done: the owner reads it on a phone
MAX_QUESTION = 80
MAX_REASON = 200
INNER_QUOTES = str.maketrans("「」", "『』")

YES = ("同意", "approve")
NUMBER = r"[#＃]?\s*[aAａＡ]\s*(?P<number>[0-9０-９]{1,9})(?![0-9A-Za-z])"
ANSWER = re.compile(
    rf"\s*(?P<word>同意|拒绝|approve|deny)(?![0-9B-Zb-z])(?:\s*{NUMBER})?(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
MARKS = " \t\r\n\u3000,，:：;；.。!！~～、"
REQUEST = re.compile(r"#A([0-9]{1,9}) ")


@dataclass(frozen=True, slots=True)
class Answer:
    """Somebody's yes or no; `number` is the request's, 0 where the answer names none (it quotes the request)."""

    allows: bool
    number: int = 0
    reason: str = ""


def read_answer(text: str) -> Answer | None:
    """`同意 A3`, `拒绝 A3 理由`, `approve a3`, `deny A3 reason`, or the same without a number; None for anything else.

    A yes has nothing behind it: with a condition it is none.
    """
    match = ANSWER.fullmatch(text)
    if match is None:
        return None
    number, rest = match["number"], match["rest"]
    allows = match["word"].lower() in YES
    # 同意书, 拒绝的话 and denying are words of their own; behind a number anything may follow.
    joined = number is None and rest and rest[0] not in MARKS
    reason = " ".join(rest.strip(MARKS).split())
    if joined or (allows and reason):
        return None
    return Answer(allows, int(number or "0"), reason[:MAX_REASON])


def answer_in(message: MessageReceived) -> Answer | None:
    """The answer that a message is: its words alone, but for a mention of the bot and a quote."""
    words = []
    for segment in message.segments:
        match segment:
            case Text(text=text):
                words.append(text)
            case Mention(user_id=user_id) if user_id == message.self_id:
                pass
            case Quote():
                pass
            case _:
                return None
    return read_answer("".join(words))


def quote_in(message: MessageReceived) -> str:
    """The id of the message it quotes; empty where it quotes none."""
    return next((segment.message_id for segment in message.segments if isinstance(segment, Quote)), "")


def number_in(text: str) -> int:
    """The number of the request that a text begins like; 0 for anything else."""
    match = REQUEST.match(text)
    return int(match[1]) if match else 0


def in_one_line(text: str, limit: int) -> str:
    """The text as one line of visible characters; of a long one the beginning and the end, and how long it was."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) <= limit:
        return line
    half = limit // 2
    return f"{line[:half]} …（共 {len(line)} 字）… {line[-half:]}"


def what(pending: PendingCall) -> str:
    """The first line of a request: `#A3 tool arguments`."""
    name, asks = pending.call.name, pending.asks
    told = asks if asks.startswith(name) else f"{name}: {asks}"
    return f"#A{pending.number} {in_one_line(told, MAX_ARGUMENTS)}"


def who(asker: Asker, where: Conversation, question: str) -> str:
    """The second line: who asked, where, and in which words."""
    name = in_one_line(asker.name, 24).translate(INNER_QUOTES) or "?"
    place = f"群 {where.session_id}" if where.is_group else "私聊"
    words = in_one_line(question, MAX_QUESTION).translate(INNER_QUOTES)
    return f"{name}({asker.user_id})，{place}：「{words}」"


def how(number: int, seconds: float) -> str:
    """The last line: what may be answered."""
    minutes = max(1, round(seconds / 60))
    return f"回复「同意 A{number}」或「拒绝 A{number} 理由」，也可以引用这条回复；{minutes} 分钟内有效。"
