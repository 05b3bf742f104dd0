"""Renders people's messages as lines for the model: `name#number: text`, with further lines
indented by two spaces.

Invariant: only the bot writes at the start of a line. Names lose everything that resembles the
frame, and every line break in a text is followed by two spaces, so a text cannot contain a line in
another person's name.

A note on the delivery of an answer follows the round as a user message and is never part of the
assistant's text: models repeat what stands there, and it would be sent. A round without an answer
is its question and the note. For vendors that require alternating roles, neighbouring messages are
merged (`frostagent/models/openai/history.py`).
"""

from __future__ import annotations

import re
import time as clock
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import assert_never
from urllib.parse import quote

from msgspec import Struct

from bot.core.events import MessageReceived, Sender
from bot.core.segments import (
    Card,
    Contact,
    Dice,
    File,
    Forward,
    Keyboard,
    Link,
    Location,
    Markdown,
    Mention,
    Picture,
    Poke,
    Record,
    Rps,
    Segment,
    Sticker,
    Transfer,
    Unsupported,
    Video,
)
from bot.prompt.wording import Wording
from bot.prompt.wording_zh import ZH
from frostagent.text.visible_text import visible_text
from frostagent.types.messages import UserMessage
from frostagent.types.speech import Face, MentionAll, Quote, Text
from frostagent.types.traits import Audience

# Unicode's opening and closing punctuation (Ps, Pe) except braces, angle brackets and low quotes,
# which the frame does not use and titles often do; then symbols that look like brackets.
BRACKETS = (
    "()[]༺༻༼༽᚛᚜⁅⁆⁽⁾₍₎⌈⌉⌊⌋〈〉❨❩❪❫❬❭❮❯❰❱❲❳❴❵⟅⟆⟦⟧⟨⟩⟬⟭⟮⟯⦃⦄⦅⦆⦇⦈⦉⦊⦋⦌⦍⦎⦏⦐"
    "⦑⦒⦓⦔⦕⦖⦗⦘⧘⧙⧚⧛⧼⧽⸢⸣⸤⸥⸦⸧⸨⸩⹕⹖⹗⹘⹙⹚⹛⹜「」【】〔〕〖〗〘〙〚〛﴾﴿︗︘︵︶︷︸︹︺︻︼﹁﹂﹇﹈﹙﹚"
    "﹛﹜﹝﹞（）［］｟｠｢｣⎛⎜⎝⎞⎟⎠⎡⎢⎣⎤⎥⎦⎴⎵⎶⏜⏝⏠⏡⌜⌝⌞⌟˹˺˻˼꜀꜁꜂꜃꜄꜅꜆꜇"
)
ENCLOSED = (  # ranges of enclosed letters and numbers, inclusive
    (0x2474, 0x2487),
    (0x249C, 0x24B5),
    (0x3200, 0x321E),
    (0x3220, 0x3243),
    (0x1F110, 0x1F129),
)

# U+003A, its entries in Unicode's confusables.txt, and every character that Unicode names a colon.
COLONS = (
    ":\u02d0\u02d1\u02f8\u0589\u05c3\u0703\u0704\u0705\u0706\u0707\u0708\u0709\u0903\u0a83\u0f14"
    "\u1361\u1365\u1366\u16ec\u1803\u1804\u1809\u205a\u205d\u205e\u2236\u2237\u2254\u2255\u2982"
    "\u2a74\u2af6\u2e2c\ua4fd\ua6f4\ua789\ufe13\ufe30\ufe55\uff1a\U00010781\U00010782"
)

HASHES = "#＃﹟♯⋕⌗⧣⧤⧥⨳⩨⩩ⵌ𝄪"
"""The number sign, its entries in Unicode's confusables.txt, and lookalikes."""
SIGNS = f"{HASHES}\u20e3↩⤶⏎↵"  # number signs, the keycap, return arrows
NUMBER = re.compile(rf"[{HASHES}]\ufe0f?\s*\d+")

BLANKS = "\r\n\t\u3164\u115f\u1160\uffa0\u2800"  # with letters that are drawn as blanks

FRAME = str.maketrans(
    dict.fromkeys([*BRACKETS, *COLONS, *SIGNS, *BLANKS], " ")
    | {chr(code): " " for first, last in ENCLOSED for code in range(first, last + 1)}
)
BUT_HASHES = {char: by for char, by in FRAME.items() if chr(char) not in HASHES}

UNSAFE = re.compile(r"[^!#-&*-;=?-Z_a-z~]")
"""In a URL: all but visible ASCII that is no bracket or quote."""
URL = re.compile(r"https?://", re.IGNORECASE)

FENCES = ("```", "~~~")


def label(text: str, limit: int) -> str:
    """Return a user-chosen name in one line of at most `limit` characters, without anything that
    resembles the frame or begins a code block.
    """
    seen = "".join(filter(str.isprintable, text[: 16 * limit].translate(FRAME)))
    name = " ".join(visible_text(seen).split())[:limit]
    return name[0] + name.lstrip(name[0]) if name.startswith(FENCES) else name


def person_name(text: str, limit: int) -> str:
    """Return a person's name without a number that could be taken for ours."""
    seen = visible_text("".join(filter(str.isprintable, text[: 16 * limit].translate(BUT_HASHES))))
    return label(NUMBER.sub(" ", seen), limit)


def address(url: str, limit: int) -> str:
    """Return a URL, percent-encoding what resembles the frame; any other text as a label."""
    if not URL.match(url):
        return label(url, limit)
    return UNSAFE.sub(lambda found: quote(found[0], safe="", errors="replace"), url[:limit])[:limit]


MINUTE = 60.0  # seconds
LAST = (datetime.max.replace(tzinfo=UTC) - timedelta(days=1)).timestamp()  # in any time zone


class View(Struct, frozen=True):
    """`number` maps an account to the person's number; without it people have names only.

    Times are in `zone`, or in this machine's time zone if it is None.
    """

    words: Wording = ZH
    number: Callable[[int], int] | None = None
    zone: tzinfo | None = None

    def clock(self, time: float) -> str:
        """The time of day, `14:02`; empty for an invalid time."""
        return self._written(time)[1]

    def day(self, time: float) -> str:
        """The date, `2026-11-22`; empty for an invalid time."""
        return self._written(time)[0]

    def date(self, time: float) -> str:
        """The date with its weekday; empty for an invalid time."""
        day, _, weekday = self._written(time)
        return f"{day} {self.words.weekdays[weekday]}" if day else ""

    def _written(self, time: float) -> tuple[str, str, int]:
        return _written(_minute(time), self.zone, clock.timezone)


def _minute(time: float) -> int:
    """The minute since 1970; -1 if invalid, as servers have sent 0 and milliseconds."""
    return int(time / MINUTE) if 0 < time < LAST else -1


@lru_cache(maxsize=256)  # a prompt asks five times for the same minute
def _written(minute: int, zone: tzinfo | None, _west: int) -> tuple[str, str, int]:
    """Date, time of day and weekday number; empty for minute -1. `_west` is this machine's time
    zone, in seconds west of Greenwich, so that the cache follows a change of it.
    """
    if minute < 0:
        return "", "", 0
    moment = datetime.fromtimestamp(minute * MINUTE, zone)
    return str(moment.date()), f"{moment.hour:02}:{moment.minute:02}", moment.weekday()


MAX_NAME = 24
MAX_DETAIL = 100
MAX_URL = 200
MAX_TEXT = 6000  # characters of one message
MAX_REPLY = 20  # characters of a quoted message in a line
SPEAKER = "{name}#{number}"
NAMELESS = "?"
LINE = "{who}: {text}"
REPLY = " ↩{who}"
WORDS = "「{words}」"
OUR_QUOTE = re.compile(r"\[(?=\s*(?:引\s*用|quoting|what\s+it\s+quotes))", re.IGNORECASE)
INNER_QUOTES = str.maketrans("「」", "『』")


def speaker(sender: Sender, view: View) -> str:
    """`name#number`: the number identifies the person, the name is chosen by them."""
    name = _name(sender.card or sender.nickname)
    if view.number is None:
        return name
    return SPEAKER.format(
        name=NAMELESS if name == str(sender.user_id) else name, number=view.number(sender.user_id)
    )


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    return person_name(name, MAX_NAME) or NAMELESS


def account(sender: Sender) -> str:
    """`name(12345)`, for people only: models never see account numbers."""
    return f"{_name(sender.name)}({sender.user_id})"


def author(message: MessageReceived, view: View) -> str:
    """The sender; only the bot has no number, so no person can look like it."""
    if message.is_own:
        is_relayed = message.cap not in {"", Audience.OWNER}
        return view.words.relayed if is_relayed else view.words.own
    return speaker(message.sender, view)


def line(
    message: MessageReceived,
    view: View,
    *,
    quoted: MessageReceived | None = None,
    about: str = "",
    reply: str = "",
    limit: int = MAX_TEXT,
) -> str:
    """Render one message as a line, with the beginning of the message it quotes, or `about`, a note
    on an unreadable quote. `reply` follows the speaker's name instead (`replying`).

    A quoted text cannot end its own quotation, and no person's text can look like our quotation.
    """
    text = plain(message.segments, view, self_id=message.self_id)
    if "[" in text:
        text = OUR_QUOTE.sub("［", text)
    if quoted:
        words = excerpt(quoted, view).translate(INNER_QUOTES)
        about = view.words.quoted.format(who=author(quoted, view), words=words)
    if about == view.words.unreadable and not text:
        told = about.rstrip()  # the note is all there is to answer
    else:
        told = f"{about}{indent(text, view, limit)}"
    return LINE.format(who=f"{author(message, view)}{reply}", text=told)


def replying(quoted: MessageReceived, view: View, *, told: bool = True) -> str:
    """The text after the name of a person who replies: the quoted person, and the beginning of the
    quoted message unless it is `told` in the line before.
    """
    who = REPLY.format(who=author(quoted, view))
    words = "" if told else excerpt(quoted, view, MAX_REPLY).translate(INNER_QUOTES)
    return who + (WORDS.format(words=words) if words else "")


def excerpt(message: MessageReceived, view: View, limit: int = 200) -> str:
    """A message in one line of at most `limit` characters."""
    text = " ".join(plain(message.segments, view, self_id=message.self_id).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def indent(text: str, view: View, limit: int = MAX_TEXT) -> str:
    """Indent every line but the first, by Unicode's line breaks; cut at `limit` characters."""
    return indented(text, limit) or view.words.nothing


def indented(text: str, limit: int = MAX_TEXT) -> str:
    """Like `indent`, but empty for empty text."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "\n  ".join(cut.splitlines())


def plain(segments: tuple[Segment, ...], view: View, *, self_id: int) -> str:
    """The segments as text: what a person would see, and the rest as short words in brackets."""
    told = [
        visible_text(segment.text) if isinstance(segment, Text) else _plain(segment, view, self_id)
        for segment in segments
    ]
    return "".join(told).strip()


def _plain(segment: Segment, view: View, self_id: int) -> str:
    words = view.words.segments
    match segment:
        case Mention(user_id=user_id, name=name):
            return "" if user_id == self_id else f"@{speaker(Sender(user_id, name), view)} "
        case Text(text=text) | Markdown(content=text):
            return visible_text(text)
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
            return f"{_bracket(words.voice, length, handle=handle)}{visible_text(text)}"
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
        case Contact(kind=kind):  # its number is an account
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
    """`[word handle detail more]`; `more` must already be safe."""
    told = label(detail, MAX_DETAIL)
    parts = (word, handle, "" if told == word else told, *more)
    return f"[{' '.join(filter(None, parts))}]"


def _short(url: str) -> str:
    """A URL, without its query if it is long, because that mostly identifies the sharer; empty if
    it is still too long.
    """
    whole = address(url, MAX_URL + 1)
    if len(whole) > MAX_URL:
        whole = address(url.partition("?")[0], MAX_URL + 1)
    return whole if len(whole) <= MAX_URL else ""


def file_size(size: int) -> str:
    """A size in bytes for people; empty for 0, which means unknown."""
    if size < 1024:
        return f"{size} B" if size else ""
    return f"{size / 1024:.1f} KB" if size < 1024**2 else f"{size / 1024**2:.1f} MB"


ALL_SAID = "(已用 send_message 回答)"


def history_note(words: Wording, what: str) -> UserMessage:
    return UserMessage(f"{words.heading(words.notes)}\n  {what}")


def delivery_note(words: Wording, what: str, *, arrived: int = 0) -> str:
    """The note on an answer's delivery; `arrived` messages of it had arrived before."""
    about = words.about
    return f"{about.answer}{about.part.format(number=arrived) if arrived else ''}{what}"
