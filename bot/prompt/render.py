"""Messages of people -> lines the model reads: `name(number): text`, further lines indented by two
spaces.

Invariant: only we write at the beginning of a line. Names lose everything that could look like the
frame around them (`bot/prompt/frame.py`), and every line break in a text is followed by two spaces,
so nobody can write a line in another's name.
"""

from __future__ import annotations

import re
from functools import lru_cache
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
from bot.domain.visible import visible
from bot.prompt.frame import address, label

MAX_NAME = 24
MAX_DETAIL = 100
MAX_URL = 200
MAX_TEXT = 6000  # characters of one message
SPEAKER = "{name}({number})"
LINE = "{who}: {text}"
QUOTED = "[引用 {who} 的「{words}」] "
QUOTED_ELSEWHERE = "[引用的消息不在这里] "
OUR_QUOTE = re.compile(r"\[(?=\s*引\s*用)")
INNER_QUOTES = str.maketrans("「」", "『』")


def speaker(sender: Sender) -> str:
    """`name(number)`: the number is what counts, the name is only what they call themselves."""
    return _speaker(sender.name[: 16 * MAX_NAME], sender.user_id)


@lru_cache(maxsize=4096)
def _speaker(name: str, number: int) -> str:
    """The same few people speak again and again."""
    return SPEAKER.format(name=label(name, MAX_NAME) or "?", number=number)


def _author(message: MessageReceived, name: str) -> str:
    """Who said what is quoted: the bot, which goes by `name`, alone has no number; nobody else can
    look like it.
    """
    return (message.is_own and label(name, MAX_NAME)) or speaker(message.sender)


def line(
    message: MessageReceived,
    *,
    quoted: MessageReceived | None = None,
    elsewhere: bool = False,
    limit: int = MAX_TEXT,
    name: str = "",
) -> str:
    """One message as its line, with the beginning of what it quotes, unless that was said
    `elsewhere`.

    `name` is the bot's own. What is quoted cannot end its own quotation, and nobody can write a
    quotation that looks like ours.
    """
    text = OUR_QUOTE.sub("［", plain(message.segments, self_id=message.self_id))
    about = QUOTED_ELSEWHERE if elsewhere else ""
    if quoted:
        words = excerpt(quoted).translate(INNER_QUOTES)
        about = QUOTED.format(who=_author(quoted, name), words=words)
    return LINE.format(who=speaker(message.sender), text=f"{about}{indent(text, limit)}")


def excerpt(message: MessageReceived, limit: int = 200) -> str:
    """A message in one short line."""
    text = " ".join(plain(message.segments, self_id=message.self_id).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def indent(text: str, limit: int = MAX_TEXT) -> str:
    """The text with every line but the first indented, whatever Unicode calls a line; cut at
    `limit` characters.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "\n  ".join(cut.splitlines()) or "(没有文字)"


def plain(segments: tuple[Segment, ...], *, self_id: int) -> str:
    """The segments as text: what a person would see, the rest as short words in brackets."""
    return "".join([_plain(segment, self_id) for segment in segments]).strip()


def _plain(segment: Segment, self_id: int) -> str:
    match segment:
        case Text(text=text) | Markdown(content=text):
            return visible(text)
        case Mention(user_id=user_id, name=name):
            return "" if user_id == self_id else f"@{speaker(Sender(user_id, name))} "
        case MentionAll():
            return "@全体成员 "
        case Quote():
            return ""
        case Face(name=name, id=id_):
            return _bracket("表情", name or id_)
        case Image(summary=summary, sticker=sticker, handle=handle):
            return _bracket("动画表情" if sticker else "图片", summary, handle=handle)
        case Sticker(summary=summary):
            return _bracket("表情", summary)
        case Record(handle=handle, seconds=seconds, text=text):
            length = f"{seconds}s" if seconds else ""
            return f"{_bracket('语音', length, handle=handle)}{visible(text)}"
        case Video():
            return "[视频]"
        case File(name=name, size=size, handle=handle):
            return _bracket("文件", name, file_size(size), handle=handle)
        case Transfer(name=name):
            return _bracket("文件", name)
        case Forward(handle=handle):
            return _bracket("转发", "", handle=handle)
        case Card(prompt=prompt, title=title, description=description, url=url):
            told = description if description != (title or prompt) else ""
            return _bracket("卡片", title or prompt, label(told, MAX_DETAIL), _short(url))
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
            return _bracket("位置", f"{title} {content}")
        case Link(kind=kind, title=title, url=url):
            return _bracket("音乐" if kind == "music" else "分享", title, _short(url))
        case Unsupported(kind=kind):
            return f"[{label(kind, MAX_NAME) or '?'}]"
        case _:
            assert_never(segment)


def _bracket(word: str, detail: str, *more: str, handle: str = "") -> str:
    """`[word handle detail more]`: what is `more` is safe to stand there, as it is."""
    told = label(detail, MAX_DETAIL)
    parts = (word, handle, "" if told == word else told, *more)
    return f"[{' '.join(filter(None, parts))}]"


def _short(url: str) -> str:
    """A url without its query where it is long: most of that tells who shared it; none where it is
    still too long to be of use.
    """
    whole = address(url, MAX_URL + 1)
    if len(whole) > MAX_URL:
        whole = address(url.partition("?")[0], MAX_URL + 1)
    return whole if len(whole) <= MAX_URL else ""


def file_size(size: int) -> str:
    """A size in bytes for people; empty where nobody knows it."""
    if size < 1024:
        return f"{size} B" if size else ""
    return f"{size / 1024:.1f} KB" if size < 1024**2 else f"{size / 1024**2:.1f} MB"
