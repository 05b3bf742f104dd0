"""Somebody's word on a call, as people write it: what they are asked, and how their answer is read.
Pure. A line is there in Chinese and in English, by its `tongue`.

Invariant: only we write at the beginning of a line of a request. What the model or a person wrote
stands in one line, without anything that cannot be seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.core.events import MessageReceived
from frostagent.engine.authority import in_one_line
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.runs import Asker, Led, PendingCall
from frostagent.types.speech import Mention, Quote, Text

MAX_ARGUMENTS = 400  # characters of what is to be done: the owner reads it on a phone
MAX_QUESTION = 80
MAX_REASON = 200
MAX_OPEN = 3  # requests of one asker that wait at a time: an owner is no mailbox
INNER_QUOTES = str.maketrans("「」", "『』")

NOTICE = (
    "这一步要主人同意才能做，我去问一下，请稍等。（{numbers}）",
    "That needs my owner's yes: I have asked, one moment please. ({numbers})",
)
DONE = ("A{number} {word}。", "A{number} is {word}.")
ALLOWED, DENIED = ("已同意", "allowed"), ("已拒绝", "denied")
DECIDED = ("A{number} 已经处理过了：{by} {word}。", "A{number} is settled already: {word} by {by}.")
EXPIRED = (
    "A{number} 过期了：没有人及时同意，所以没有做。",
    "A{number} has expired: nobody allowed it in time, it was not done.",
)
WITHDRAWN = (
    "A{number} 不用管了：提问已经撤回或结束，没有做。",
    "A{number} needs no word any more: its question was recalled or is over. It was not done.",
)
UNDONE = (
    ("A{number} 同意过，但没有做：我在那里被禁言，一直等到过期。要做的话，请解除禁言后再问一次。"),
    (
        "A{number} was allowed, but not done: I was muted there until its time was over. "
        "Lift the mute and ask again."
    ),
)
UNKNOWN = (
    "没有编号为 A{number} 的请求，可能已经过期或处理过了。",
    "There is no request A{number}; it may have expired or be settled.",
)
WHICH = (
    "这句话可能指 {names}，还没有算数。请带上编号再发一次，比如「{example}」。",
    'That may mean {names}, so nothing was decided. Please name one, as in "{example}".',
)
AGAIN = (
    "这条回复比 A{number} 的请求早，或是断线时发的，没有算数；A{number} 还在等，要回复请再发一次。",
    (
        "That answer is older than the request A{number}, or came while I was away, and is void;"
        " A{number} still waits: please answer once more."
    ),
)
FILE = (
    "完整内容在随后的文件 A{number}.txt 里。",
    "All of it is in the file A{number}.txt that follows.",
)
BUSY = (
    "现在处理不过来，A{number} 还在等，请过一会儿再回复一次。",
    "I cannot take that now, A{number} still waits: answer again in a while.",
)
HOW = (
    "回复「同意 A{number}」或「拒绝 A{number} 理由」，也可以引用这条回复；{minutes} 分钟内有效。",
    (
        'Answer "approve A{number}" or "deny A{number} reason", or quote this, '
        "within {minutes} minutes."
    ),
)
IN_GROUP, IN_PRIVATE = ("群 {group}", "group {group}"), ("私聊", "in private")
ASKED = ("{name}({account})，{place}：「{words}」", "{name}({account}), {place}: 「{words}」")
BEFORE = ("此前读到：{led}", "Read before: {led}")
OTHERS, TOOLS = ("别人的话", "words of others"), ("工具带来的内容", "what tools brought")
NAMED = ("{what}（{names}）", "{what} ({names})")
COMMA, AND = ("、", ", "), ("；", "; ")

TOO_MANY = (
    f"{MAX_OPEN} requests of this asker wait for the owner's word already, this one was not made. "
    "Do not try again; say that those must be decided first"
)
TOO_LONG = "its arguments are too long to be shown to the owner"
NO_OWNER = "the bot has no owner who could be asked (BOT_OWNERS is empty)"
UNREACHABLE = "no owner of the bot could be reached"
NOT_PROMISED = (
    "what was allowed cannot be written down at the moment, so it was not done; "
    "it may be asked for later"
)

YES = ("同意", "approve")
WORD_OF = {True: YES, False: ("拒绝", "deny")}
NUMBER = r"[#＃]?\s*[aAａＡ]\s*(?P<number>[0-9０-９]{1,9})(?![0-9A-Za-z])"
ANSWER = re.compile(
    rf"\s*(?P<word>同意|拒绝|approve|deny)(?![0-9B-Zb-z])(?:\s*{NUMBER})?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
MARKS = " \t\r\n\u3000,，:：;；.。!！~～、"
REQUEST = re.compile(r"#A([0-9]{1,9}) ")


@dataclass(frozen=True, slots=True)
class Answer:
    """A yes or a no; `number` is the request's, None if the answer names none."""

    allows: bool
    number: int | None = None
    reason: str = ""


def read_answer(text: str) -> Answer | None:
    """`同意 A3`, `拒绝 A3 理由`, `approve a3`, `deny A3 reason`, or the same without a number; None
    for anything else.

    A yes has nothing behind it: with a condition it is none.
    """
    match = ANSWER.fullmatch(text)
    if match is None:
        return None
    number, rest = match["number"], match["rest"]  # A0 is a number that no request has
    allows = match["word"].lower() in YES
    # 同意书, 拒绝的话 and denying are words of their own; behind a number anything may follow.
    joined = number is None and rest and rest[0] not in MARKS
    reason = " ".join(rest.strip(MARKS).split())
    if joined or (allows and reason):
        return None
    return Answer(allows, None if number is None else int(number), reason[:MAX_REASON])


def answer_in(message: MessageReceived) -> Answer | None:
    """The answer that a message is."""
    words = words_in(message)
    return None if words is None else read_answer(words)


def words_in(message: MessageReceived) -> str | None:
    """The words of a message that is nothing else, but for a mention of the bot and a quote; None
    where it is.
    """
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
    return "".join(words)


def quote_in(message: MessageReceived) -> str:
    """The id of the message it quotes; empty where it quotes none."""
    return next(
        (segment.message_id for segment in message.segments if isinstance(segment, Quote)), ""
    )


def number_in(text: str) -> int:
    """The number of the request that a text begins like; 0 for anything else."""
    match = REQUEST.match(text)
    return int(match[1]) if match else 0


def what(pending: PendingCall) -> str:
    """The first line of a request: `#A3 tool arguments`; of long ones the beginning and the end."""
    return f"#A{pending.number} {in_one_line(_told(pending), MAX_ARGUMENTS)}"


def full_request(pending: PendingCall) -> str:
    """All that is to be allowed, where the first line does not show it all; else empty.

    Only its own first line stands at the beginning of a line: nobody reads another request in it.
    What cannot be seen is spelt out.
    """
    told = _told(pending)
    line = in_one_line(told, len(told))
    if len(line) <= MAX_ARGUMENTS:
        return ""
    try:
        arguments = json.dumps(
            json.loads(pending.arguments or pending.call.arguments), ensure_ascii=False, indent=2
        )
    except (ValueError, RecursionError):
        arguments = in_one_line(pending.call.arguments, len(pending.call.arguments))
    indented = "\n".join(f"  {part}" for part in arguments.split("\n"))
    return f"#A{pending.number} {line}\n{_seen(indented)}"


def request_parts(pending: PendingCall) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The same for a page: what is to be done, and the arguments by their names. Without arguments
    where they are no JSON object: then only the text says all. What cannot be seen is spelt out.
    """
    told = _told(pending)
    try:
        given = json.loads(pending.arguments or pending.call.arguments)
        told = told.removesuffix(json.dumps(given, ensure_ascii=False))
    except (ValueError, RecursionError):
        given = None
    action = in_one_line(told, MAX_ARGUMENTS)
    if not isinstance(given, dict):
        return action, ()
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in given.items()
    }
    return action, tuple((_seen(name), _seen(value)) for name, value in values.items())


def _seen(text: str) -> str:
    return "".join(map(_spelt, text))


def _told(pending: PendingCall) -> str:
    name, asks = pending.call.name, pending.asks
    return asks if asks.startswith(name) else f"{name}: {asks}"


def _spelt(char: str) -> str:
    return char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1]


def who(
    asker: Asker, where: Conversation, question: str, *, tongue: Language = Language.CHINESE
) -> str:
    """The second line: who asked, where, and in which words."""
    name = in_one_line(asker.name, 24).translate(INNER_QUOTES) or "?"
    place = (IN_GROUP if where.is_group else IN_PRIVATE)[tongue].format(group=where.session_id)
    words = in_one_line(question, MAX_QUESTION).translate(INNER_QUOTES)
    return ASKED[tongue].format(name=name, account=asker.user_id, place=place, words=words)


def led_in_words(led: Led | str, *, tongue: Language = Language.CHINESE) -> str:
    """The same for whoever is asked; empty for nobody's. Older versions wrote words down."""
    if isinstance(led, str):
        return led
    parts = [(OTHERS, led.names)] if led.people else []
    if led.read:
        parts.append((TOOLS, led.read))
    return AND[tongue].join(
        NAMED[tongue].format(what=what[tongue], names=COMMA[tongue].join(names))
        if names
        else what[tongue]
        for what, names in parts
    )


def influence_line(pending: PendingCall, *, tongue: Language = Language.CHINESE) -> str:
    """The third line, where others' words led there; else empty."""
    led = led_in_words(pending.led, tongue=tongue)
    return "\n" + BEFORE[tongue].format(led=led) if led else ""


def reply_line(number: int, seconds: float, *, tongue: Language = Language.CHINESE) -> str:
    """The last line: what may be answered."""
    return HOW[tongue].format(number=number, minutes=max(1, round(seconds / 60)))


def waiting_line(numbers: Iterable[int], *, tongue: Language = Language.CHINESE) -> str:
    """The line that tells the asker which requests wait for the owner."""
    return NOTICE[tongue].format(numbers=COMMA[tongue].join(f"A{number}" for number in numbers))


def message_words(message: MessageReceived) -> str:
    """The words of a message, without what it quotes."""
    return "".join(segment.text for segment in message.segments if isinstance(segment, Text))


def mentions_the_bot(message: MessageReceived) -> bool:
    """Whether the message is addressed to the bot by a mention."""
    return any(
        isinstance(each, Mention) and each.user_id == message.self_id for each in message.segments
    )


def without_blanks(text: str) -> str:
    """The text as it can be compared, after a server has put its blanks in order."""
    return "".join(text.split())
