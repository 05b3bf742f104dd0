"""Messages of people -> lines the model reads: `name#number: text`, further lines indented by two
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
    Keyboard,
    Link,
    Location,
    Markdown,
    Mention,
    MentionAll,
    Picture,
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
from bot.prompt.frame import address, label, person_name
from bot.prompt.view import View

MAX_NAME = 24
MAX_DETAIL = 100
MAX_URL = 200
MAX_TEXT = 6000  # characters of one message
MAX_REPLY = 20  # characters of what is quoted among others
SPEAKER = "{name}#{number}"
NAMELESS = "?"
LINE = "{who}: {text}"
REPLY = " ↩{who}"
WORDS = "「{words}」"
OUR_QUOTE = re.compile(r"\[(?=\s*(?:引\s*用|quoting|what\s+it\s+quotes))", re.IGNORECASE)
INNER_QUOTES = str.maketrans("「」", "『』")


def speaker(sender: Sender, view: View) -> str:
    """`name#number`: the number is what counts, the name is only what they call themselves."""
    name = _name(sender.card or sender.nickname)
    if view.number is None:
        return name
    return SPEAKER.format(
        name=NAMELESS if name == str(sender.user_id) else name, number=view.number(sender.user_id)
    )


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    """The same few people speak again and again."""
    return person_name(name, MAX_NAME) or NAMELESS


def account(sender: Sender) -> str:
    """`name(12345)`, for people of ours: no model is told anybody's account."""
    return f"{_name(sender.name)}({sender.user_id})"


def author(message: MessageReceived, view: View) -> str:
    """Who said it: the bot alone has no number; nobody else can look like it."""
    return view.words.own if message.is_own else speaker(message.sender, view)


def line(
    message: MessageReceived,
    view: View,
    *,
    quoted: MessageReceived | None = None,
    about: str = "",
    reply: str = "",
    limit: int = MAX_TEXT,
) -> str:
    """One message as its line, with the beginning of what it quotes, or what is said `about` a
    quote that is not told; a `reply` names what it quotes behind the speaker instead (`replying`).

    What is quoted cannot end its own quotation, and nobody can write a quotation that looks like
    ours.
    """
    text = plain(message.segments, view, self_id=message.self_id)
    if "[" in text:
        text = OUR_QUOTE.sub("［", text)
    if quoted:
        words = excerpt(quoted, view).translate(INNER_QUOTES)
        about = view.words.quoted.format(who=author(quoted, view), words=words)
    if about == view.words.unreadable and not text:
        told = about.rstrip()  # it is all there is to be answered
    else:
        told = f"{about}{indent(text, view, limit)}"
    return LINE.format(who=f"{author(message, view)}{reply}", text=told)


def replying(quoted: MessageReceived, view: View, *, told: bool = True) -> str:
    """The words behind the name of somebody who quotes this: whose it is, and its beginning,
    unless it is `told` in the line before.
    """
    who = REPLY.format(who=author(quoted, view))
    words = "" if told else excerpt(quoted, view, MAX_REPLY).translate(INNER_QUOTES)
    return who + (WORDS.format(words=words) if words else "")


def excerpt(message: MessageReceived, view: View, limit: int = 200) -> str:
    """A message in one short line."""
    text = " ".join(plain(message.segments, view, self_id=message.self_id).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def indent(text: str, view: View, limit: int = MAX_TEXT) -> str:
    """The text with every line but the first indented, whatever Unicode calls a line; cut at
    `limit` characters.
    """
    return indented(text, limit) or view.words.nothing


def indented(text: str, limit: int = MAX_TEXT) -> str:
    """The same, and empty where there is none."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "\n  ".join(cut.splitlines())


def plain(segments: tuple[Segment, ...], view: View, *, self_id: int) -> str:
    """The segments as text: what a person would see, the rest as short words in brackets."""
    told = [
        visible(segment.text) if isinstance(segment, Text) else _plain(segment, view, self_id)
        for segment in segments
    ]
    return "".join(told).strip()


def _plain(segment: Segment, view: View, self_id: int) -> str:
    words = view.words.segments
    match segment:
        case Mention(user_id=user_id, name=name):
            return "" if user_id == self_id else f"@{speaker(Sender(user_id, name), view)} "
        case Text(text=text) | Markdown(content=text):
            return visible(text)
        case MentionAll():
            return view.words.everybody
        case Quote():
            return ""
        case Face(name=name, id=id_):
            return _bracket(words.face, name or id_)
        case Picture(summary=summary, sticker=sticker, handle=handle):
            return _bracket(words.animated if sticker else words.picture, summary, handle=handle)
        case Sticker(summary=summary):
            return _bracket(words.sticker, summary)
        case Record(handle=handle, seconds=seconds, text=text):
            length = f"{seconds}s" if seconds else ""
            return f"{_bracket(words.voice, length, handle=handle)}{visible(text)}"
        case Video():
            return _bracket(words.video, "")
        case File(name=name, size=size, handle=handle):
            return _bracket(words.file, name, file_size(size), handle=handle)
        case Transfer(name=name):
            return _bracket(words.file, name)
        case Forward(handle=handle):
            return _bracket(words.forward, "", handle=handle)
        case Card(prompt=prompt, title=title, description=description, url=url):
            told = description if description != (title or prompt) else ""
            return _bracket(words.card, title or prompt, label(told, MAX_DETAIL), _short(url))
        case Keyboard(labels=labels):
            return _bracket(words.keys, " ".join(labels))
        case Dice(result=result):
            return _bracket(words.dice, result)
        case Rps(result=result):
            return _bracket(words.rps, result)
        case Poke():
            return _bracket(words.poke, "")
        case Contact(kind=kind):  # its number is somebody's account
            return _bracket(words.group if kind == "group" else words.person, "")
        case Location(title=title, content=content):
            return _bracket(words.place, f"{title} {content}")
        case Link(kind=kind, title=title, url=url):
            return _bracket(words.music if kind == "music" else words.share, title, _short(url))
        case Unsupported(kind=kind):
            return f"[{label(kind, MAX_NAME) or NAMELESS}]"
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
