"""The text of requests to approve a tool call, in Chinese and English. Pure.

Invariant: only this module begins a line of a request. Words of the model or of a person are put in
one line, without invisible characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, Language, Phrase
from bot.prompt.render import INNER_QUOTES
from frostagent.engine.authority import in_one_line
from frostagent.types.runs import Asker, Led, PendingCall

MAX_ARGUMENTS = 400  # characters of the action: owners read it on a phone
MAX_QUESTION = 80
MAX_OPEN = 3  # open requests of one asker, so that owners are not flooded

NOTICE = Phrase(
    "这一步要主人同意才能做，我去问一下，请稍等。（{numbers}）",
    "That needs my owner's yes: I have asked, one moment please. ({numbers})",
)
DONE = Phrase("A{number} {word}。", "A{number} is {word}.")
DECIDED = Phrase(
    "A{number} 已经处理过了：{by} {word}。", "A{number} is settled already: {word} by {by}."
)
EXPIRED = Phrase(
    "A{number} 过期了：没有人及时同意，所以没有做。",
    "A{number} has expired: nobody allowed it in time, it was not done.",
)
WITHDRAWN = Phrase(
    "A{number} 不用管了：提问已经撤回或结束，没有做。",
    "A{number} needs no word any more: its question was recalled or is over. It was not done.",
)
UNDONE = Phrase(
    "A{number} 同意过，但没有做：我在那里被禁言，一直等到过期。要做的话，请解除禁言后再问一次。",
    "A{number} was allowed, but not done: I was muted there until its time was over. "
    "Lift the mute and ask again.",
)
UNKNOWN = Phrase(
    "没有编号为 A{number} 的请求，可能已经过期或处理过了。",
    "There is no request A{number}; it may have expired or be settled.",
)
AGAIN = Phrase(
    "这条回复比 A{number} 的请求早，或是断线时发的，没有算数；A{number} 还在等，要回复请再发一次。",
    "That answer is older than the request A{number}, or came while I was away, and is void;"
    " A{number} still waits: please answer once more.",
)
FILE = Phrase(
    "完整内容在随后的文件 A{number}.txt 里。",
    "All of it is in the file A{number}.txt that follows.",
)
BUSY = Phrase(
    "现在处理不过来，A{number} 还在等，请过一会儿再回复一次。",
    "I cannot take that now, A{number} still waits: answer again in a while.",
)
HOW = Phrase(
    "回复「同意 A{number}」或「拒绝 A{number} 理由」，也可以引用这条回复；{minutes} 分钟内有效。",
    'Answer "approve A{number}" or "deny A{number} reason", or quote this, '
    "within {minutes} minutes.",
)
IN_GROUP, IN_PRIVATE = Phrase("群 {group}", "group {group}"), Phrase("私聊", "in private")
ASKED = Phrase("{name}({account})，{place}：「{words}」", "{name}({account}), {place}: 「{words}」")
BEFORE = Phrase("此前读到：{led}", "Read before: {led}")
OTHERS, TOOLS = (
    Phrase("别人的话", "words of others"),
    Phrase("工具带来的内容", "what tools brought"),
)
NAMED = Phrase("{what}（{names}）", "{what} ({names})")
TERMINAL = Phrase("同意 A{number} / 拒绝 A{number}", "approve A{number} / deny A{number}")
YOU = Phrase("你", "you")
COMMA, AND = Phrase("、", ", "), Phrase("；", "; ")
CATALOGUE.register(__name__, globals())

TOO_MANY = (
    f"{MAX_OPEN} requests of this asker wait for the owner's word already, this one was not made. "
    "Do not try again; say that those must be decided first"
)
TOO_LONG = "its arguments are too long to be shown to the owner"
UNREACHABLE = "no owner of the bot could be reached"
NOT_PROMISED = (
    "what was allowed cannot be written down at the moment, so it was not done; "
    "it may be asked for later"
)

REQUEST = re.compile(r"#A([0-9]{1,9}) ")


def number_in(text: str) -> int:
    """The number of the request that the text begins with; 0 if there is none."""
    match = REQUEST.match(text)
    return int(match[1]) if match else 0


def call_line(pending: PendingCall) -> str:
    """The first line of a request: `#A3 tool arguments`; long arguments lose their middle."""
    return f"#A{pending.number} {in_one_line(_told(pending), MAX_ARGUMENTS)}"


def full_request(pending: PendingCall) -> str:
    """The whole action if the first line shortens it; else empty. Only its first line starts at the
    margin, so that it cannot imitate another request. Invisible characters are escaped.
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
    """`full_request` for a page: the action, and the arguments by name. If they are no JSON object
    there are none, and only the text is complete. Invisible characters are escaped.
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


def asker_line(
    asker: Asker, where: Conversation, question: str, *, language: Language = Language.CHINESE
) -> str:
    """The second line: who asked, where, and in which words."""
    name = in_one_line(asker.name, 24).translate(INNER_QUOTES) or "?"
    place = (IN_GROUP if where.is_group else IN_PRIVATE).format(language, group=where.session_id)
    words = in_one_line(question, MAX_QUESTION).translate(INNER_QUOTES)
    return ASKED.format(language, name=name, account=asker.user_id, place=place, words=words)


def led_in_words(led: Led | str, *, language: Language = Language.CHINESE) -> str:
    """Whose words influenced the call, for an approver; empty if none did. Older versions stored
    text.
    """
    if isinstance(led, str):
        return led
    parts = [(OTHERS, led.names)] if led.people else []
    if led.read:
        parts.append((TOOLS, led.read))
    return AND.format(language).join(
        NAMED.format(language, what=what, names=COMMA.format(language).join(names))
        if names
        else what.format(language)
        for what, names in parts
    )


def influence_line(pending: PendingCall, *, language: Language = Language.CHINESE) -> str:
    """The third line, if words of others influenced the call; else empty."""
    led = led_in_words(pending.led, language=language)
    return "\n" + BEFORE.format(language, led=led) if led else ""


def reply_line(number: int, seconds: float, *, language: Language = Language.CHINESE) -> str:
    """The last line: how to answer."""
    return HOW.format(language, number=number, minutes=max(1, round(seconds / 60)))


def waiting_line(numbers: Iterable[int], *, language: Language = Language.CHINESE) -> str:
    """The notice to the asker: the numbers that wait for the owner."""
    return NOTICE.format(
        language, numbers=COMMA.format(language).join(f"A{number}" for number in numbers)
    )
