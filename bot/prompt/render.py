"""Messages of people -> lines the model reads: `name#number: text`, further lines indented by two
spaces.

Invariant: only we write at the beginning of a line. Names lose everything that could look like the
frame around them, and every line break in a text is followed by two spaces, so a text cannot
contain a line in another person's name.

A note on what became of the bot's words stands behind the round, as a user's message, never in the
words of the assistant: models repeat what stands there, and then it is sent. A round without an
answer is its question and the note; for vendors that want people and the model to take turns,
neighbours are made one message (`frostagent/models/openai/history.py`).
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

# Unicode's opening and closing punctuation (Ps, Pe) but for braces, angles and low quotes, which
# the frame does not have and titles often do; then pieces and corners that are drawn as brackets.
BRACKETS = (
    "()[]༺༻༼༽᚛᚜⁅⁆⁽⁾₍₎⌈⌉⌊⌋〈〉❨❩❪❫❬❭❮❯❰❱❲❳❴❵⟅⟆⟦⟧⟨⟩⟬⟭⟮⟯⦃⦄⦅⦆⦇⦈⦉⦊⦋⦌⦍⦎⦏⦐"
    "⦑⦒⦓⦔⦕⦖⦗⦘⧘⧙⧚⧛⧼⧽⸢⸣⸤⸥⸦⸧⸨⸩⹕⹖⹗⹘⹙⹚⹛⹜「」【】〔〕〖〗〘〙〚〛﴾﴿︗︘︵︶︷︸︹︺︻︼﹁﹂﹇﹈﹙﹚"
    "﹛﹜﹝﹞（）［］｟｠｢｣⎛⎜⎝⎞⎟⎠⎡⎢⎣⎤⎥⎦⎴⎵⎶⏜⏝⏠⏡⌜⌝⌞⌟˹˺˻˼꜀꜁꜂꜃꜄꜅꜆꜇"
)
ENCLOSED = (  # letters and numbers in brackets of their own, first and last
    (0x2474, 0x2487),
    (0x249C, 0x24B5),
    (0x3200, 0x321E),
    (0x3220, 0x3243),
    (0x1F110, 0x1F129),
)

# U+003A, what Unicode's confusables.txt takes for it, and all that Unicode calls a colon.
COLONS = (
    ":\u02d0\u02d1\u02f8\u0589\u05c3\u0703\u0704\u0705\u0706\u0707\u0708\u0709\u0903\u0a83\u0f14"
    "\u1361\u1365\u1366\u16ec\u1803\u1804\u1809\u205a\u205d\u205e\u2236\u2237\u2254\u2255\u2982"
    "\u2a74\u2af6\u2e2c\ua4fd\ua6f4\ua789\ufe13\ufe30\ufe55\uff1a\U00010781\U00010782"
)

HASHES = "#＃﹟♯⋕⌗⧣⧤⧥⨳⩨⩩ⵌ𝄪"
"""The number sign, what Unicode's confusables.txt takes for it, and what is drawn like one."""
SIGNS = f"{HASHES}\u20e3↩⤶⏎↵"  # number signs, the key of one, arrows back
NUMBER = re.compile(rf"[{HASHES}]\ufe0f?\s*\d+")

BLANKS = "\r\n\t\u3164\u115f\u1160\uffa0\u2800"  # letters among them that are drawn as nothing

FRAME = str.maketrans(
    dict.fromkeys([*BRACKETS, *COLONS, *SIGNS, *BLANKS], " ")
    | {chr(code): " " for first, last in ENCLOSED for code in range(first, last + 1)}
)
BUT_HASHES = {char: by for char, by in FRAME.items() if chr(char) not in HASHES}

UNSAFE = re.compile(r"[^!#-&*-;=?-Z_a-z~]")
"""In a url: all but ASCII that is visible and no bracket or quote."""
URL = re.compile(r"https?://", re.IGNORECASE)

FENCES = ("```", "~~~")


def label(text: str, limit: int) -> str:
    """A name that somebody gave, in one line of at most so many characters, without anything that
    looks like our frame, or begins code.
    """
    seen = "".join(filter(str.isprintable, text[: 16 * limit].translate(FRAME)))
    name = " ".join(visible_text(seen).split())[:limit]
    return name[0] + name.lstrip(name[0]) if name.startswith(FENCES) else name


def person_name(text: str, limit: int) -> str:
    """The label of a person, without a number that could be taken for ours."""
    seen = visible_text("".join(filter(str.isprintable, text[: 16 * limit].translate(BUT_HASHES))))
    return label(NUMBER.sub(" ", seen), limit)


def address(url: str, limit: int) -> str:
    """A url, with what could look like our frame escaped as urls can have it; what is none, as a
    label.
    """
    if not URL.match(url):
        return label(url, limit)
    return UNSAFE.sub(lambda found: quote(found[0], safe="", errors="replace"), url[:limit])[:limit]


MINUTE = 60.0  # seconds
LAST = (datetime.max.replace(tzinfo=UTC) - timedelta(days=1)).timestamp()  # in every zone


class View(Struct, frozen=True):
    """`number` gives a person's number from the account; without it people have names alone.

    Times are those of the `zone`, of this machine where there is none.
    """

    words: Wording = ZH
    number: Callable[[int], int] | None = None
    zone: tzinfo | None = None

    def clock(self, time: float) -> str:
        """The time of day, `14:02`; empty for a moment that cannot be."""
        return self._written(time)[1]

    def day(self, time: float) -> str:
        """The date, `2026-11-22`; empty for a moment that cannot be."""
        return self._written(time)[0]

    def date(self, time: float) -> str:
        """The date with its weekday; empty for a moment that cannot be."""
        day, _, weekday = self._written(time)
        return f"{day} {self.words.weekdays[weekday]}" if day else ""

    def _written(self, time: float) -> tuple[str, str, int]:
        return _written(_minute(time), self.zone, clock.timezone)


def _minute(time: float) -> int:
    """Its number since 1970; -1 for a moment that cannot be: servers have sent 0 and
    milliseconds.
    """
    return int(time / MINUTE) if 0 < time < LAST else -1


@lru_cache(maxsize=256)  # a prompt asks five times for the same one
def _written(minute: int, zone: tzinfo | None, _west: int) -> tuple[str, str, int]:
    """The date, the time of day, and the number of the weekday; empty for the minute -1.

    So many seconds west of Greenwich is this machine's zone, while that is not set anew.
    """
    if minute < 0:
        return "", "", 0
    moment = datetime.fromtimestamp(minute * MINUTE, zone)
    return str(moment.date()), f"{moment.hour:02}:{moment.minute:02}", moment.weekday()


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


ALL_SAID = "(已用 send_message 回答)"


def history_note(words: Wording, what: str) -> UserMessage:
    """The note, as it stands at the end of a round."""
    return UserMessage(f"{words.heading(words.notes)}\n  {what}")


def delivery_note(words: Wording, what: str, *, arrived: int = 0) -> str:
    """The note on the delivery of an answer, of which so many messages had arrived before."""
    about = words.about
    return f"{about.answer}{about.part.format(number=arrived) if arrived else ''}{what}"
