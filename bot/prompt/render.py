"""Messages of people -> lines the model reads: `name(number): text`, further lines indented by two spaces.

Invariant: only we write at the beginning of a line. Names lose everything that could look like the frame around
them, and every line break in a text is followed by two spaces, so nobody can write a line in another's name.
"""

from __future__ import annotations

from typing import assert_never

from bot.domain.events import MessageReceived, Sender
from bot.domain.segments import (
    Card,
    Contact,
    Dice,
    Face,
    File,
    Forward,
    Image,
    Keyboard,
    Link,
    Location,
    Markdown,
    Mention,
    MentionAll,
    Poke,
    Quote,
    Record,
    Rps,
    Segment,
    Sticker,
    Text,
    Transfer,
    Unsupported,
    Video,
)

MAX_NAME = 24
MAX_TEXT = 6000  # characters of one message
FRAME = str.maketrans(dict.fromkeys("()（）:：[]【】\r\n\t", " "))
INNER_QUOTES = str.maketrans("「」", "『』")


def speaker(sender: Sender) -> str:
    """`name(number)`: the number is what counts, the name is only what they call themselves."""
    name = " ".join("".join(filter(str.isprintable, sender.name.translate(FRAME))).split())
    return f"{name[:MAX_NAME] or '?'}({sender.user_id})"


def line(message: MessageReceived, *, quoted: MessageReceived | None = None, limit: int = MAX_TEXT) -> str:
    """One message as its line, with the beginning of what it quotes.

    What is quoted cannot end its own quotation, and nobody can write a quotation that looks like ours.
    """
    text = plain(message.segments, self_id=message.self_id).replace("[引用", "［引用")
    about = f"[引用 {speaker(quoted.sender)} 的「{excerpt(quoted).translate(INNER_QUOTES)}」] " if quoted else ""
    return f"{speaker(message.sender)}: {about}{indent(text, limit)}"


def excerpt(message: MessageReceived, limit: int = 200) -> str:
    """A message in one short line."""
    text = " ".join(plain(message.segments, self_id=message.self_id).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def indent(text: str, limit: int = MAX_TEXT) -> str:
    """The text with every line but the first indented, whatever Unicode calls a line; cut at `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "\n  ".join(cut.splitlines()) or "(没有文字)"


def plain(segments: tuple[Segment, ...], *, self_id: int) -> str:
    """The segments as text: what a person would see, the rest as short words in brackets."""
    return "".join([_plain(segment, self_id) for segment in segments]).strip()


def _plain(segment: Segment, self_id: int) -> str:
    match segment:
        case Text(text=text) | Markdown(content=text):
            return text
        case Mention(user_id=user_id, name=name):
            return "" if user_id == self_id else f"@{speaker(Sender(user_id, name))} "
        case MentionAll():
            return "@全体成员 "
        case Quote():
            return ""
        case Face(name=name, id=id_):
            return f"[表情 {name or id_}]"
        case Image(summary=summary, sticker=sticker):
            return _bracket("动画表情" if sticker else "图片", summary.strip("[]"))
        case Sticker(summary=summary):
            return _bracket("表情", summary.strip("[]"))
        case Record():
            return "[语音]"
        case Video():
            return "[视频]"
        case File(name=name) | Transfer(name=name):
            return _bracket("文件", name)
        case Forward():
            return "[合并转发]"
        case Card(prompt=prompt):
            return _bracket("卡片", prompt.strip("[]"))
        case Keyboard(labels=labels):
            return _bracket("按钮", " ".join(labels))
        case Dice(result=result):
            return _bracket("骰子", result)
        case Rps(result=result):
            return _bracket("猜拳", result)
        case Poke():
            return "[戳一戳]"
        case Contact(kind=kind, id=id_):
            return _bracket("推荐群" if kind == "group" else "推荐好友", id_)
        case Location(title=title, content=content):
            return _bracket("位置", f"{title} {content}".strip())
        case Link(kind=kind, title=title, url=url):
            return _bracket("音乐" if kind == "music" else "分享", f"{title} {url}".strip())
        case Unsupported(kind=kind):
            return f"[{kind}]"
        case _:
            assert_never(segment)


def _bracket(word: str, detail: str) -> str:
    return f"[{word} {detail[:100]}]" if detail and detail != word else f"[{word}]"
