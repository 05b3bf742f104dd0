"""Messages on the wire <-> segments. Reading accepts every form that servers use; writing always
produces a list of segments.

A list, never a string: text in a list is not parsed, so no text can make the bot send
`[CQ:at,qq=all]` (onebot.md 4.2).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, assert_never

from adapters.onebot.fields import Fields, clean, dump, load, mapping, number, sequence, text
from bot.core.actions import MergedForward, SentSegment
from bot.core.events import account_of
from bot.core.filenames import clean_name
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
from frostagent.types.speech import Attachment, Face, MentionAll, Quote, Text

# A bracket inside a code is always escaped, so another bracket before its end means that this is
# text. This also keeps matching linear: each character is examined for one beginning only, even in
# a megabyte of them.
_CODE = re.compile(r"\[CQ:([\w.-]+)(?:,([^\[\]]*))?\]")


def split_cq(message: str) -> Iterator[Fields]:
    """Yield the wire segments `{"type": ..., "data": {...}}` of a CQ string, in order, in linear
    time.

    Everything else stays text, including an unterminated code.
    """
    end = 0
    for code in _CODE.finditer(message):
        if code.start() > end:
            yield _text(message[end : code.start()])
        yield {"type": code[1], "data": _parameters(code[2] or "")}
        end = code.end()
    if end < len(message):
        yield _text(message[end:])


def unescape(text: str) -> str:
    """Undo the escapes, `&amp;` last: else `&amp;#91;` (a typed `&#91;`) would become a bracket."""
    if "&" not in text:
        return text
    return (
        text.replace("&#44;", ",").replace("&#91;", "[").replace("&#93;", "]").replace("&amp;", "&")
    )


def _text(escaped: str) -> Fields:
    return {"type": "text", "data": {"text": unescape(escaped)}}


def _parameters(text: str) -> Fields:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key: unescape(value) for key, _, value in pairs}


ONEBOTS: Final = "onebots"  # the server's name for itself
MAX_BRIEF = 1000  # characters; html.unescape raises ValueError for numbers of thousands of digits
STICKER_PICTURE = 1  # an image's sub_type (onebot.md 4.3)
URL = re.compile(r"\s*(https?|ftp):", re.IGNORECASE)
_NOTHING = re.compile(r"[+-]?0*|\s*")  # not a message id
_XML = {
    "prompt": re.compile(r'\bbrief="([^"]*)"'),
    "title": re.compile(r"<title\b[^>]*>([^<]*)<"),
    "description": re.compile(r"<summary\b[^>]*>([^<]*)<"),
    "url": re.compile(r'\burl="([^"]*)"'),
}
_CARD_URLS = ("qqdocurl", "jumpUrl", "jump_url", "url")  # the page, before the app's own URL


# --- reading --------------------------------------------------------------------------------------


def read_message(value: object) -> tuple[Segment, ...]:
    """Read a message: a list, one object, a CQ string, or JSON inside a string. Never raises.

    Segments without content (`{}`, empty text) are left out; unknown types become `Unsupported`.
    """
    segments: list[Segment] = []
    for part in _parts(value):
        segment = _read_part(part)
        if segment is not None:
            segments.append(segment)
    return tuple(segments)


def _parts(value: object) -> Iterable[object]:
    match value:
        case list():
            return value
        case dict():
            return (value,)
        case str():
            return _list_in_string(value) or split_cq(value)
        case _:
            return ()


def _list_in_string(message: str) -> list[Fields]:
    # Only a list: a typed bracket would be escaped, a typed brace would not.
    if not message.startswith("[") or message.startswith("[CQ:"):
        return []
    try:
        parts = sequence(load(message))
    except ValueError:
        return []
    return parts if all(isinstance(part, dict) and "type" in part for part in parts) else []


def _read_part(part: object) -> Segment | None:
    if isinstance(part, str):
        return Text(part) if part else None
    fields = mapping(part)
    kind = text(fields.get("type"))
    if not kind:
        return None
    data = _data(fields)
    reader = _READERS.get(kind)
    if reader is None:
        return Unsupported(kind, dump(data))
    return reader(data)


def _data(fields: Fields) -> Fields:
    """The data of a segment. icqq's elements are flat: `data` is missing, or is a text of that name
    (onebots, onebot.md 4.1).
    """
    data = fields.get("data")
    if "data" not in fields or isinstance(data, str):
        return {name: value for name, value in fields.items() if name != "type"}
    return mapping(data)


def _read_text(data: Fields) -> Segment | None:
    said = text(data.get("text"))
    return Text(said) if said else None


def _read_at(data: Fields) -> Segment:
    who = data.get("qq")
    if who == "all":
        return MentionAll()
    user_id = number(who)
    if user_id <= 0:
        return Unsupported("at", dump(data))
    return Mention(user_id, _first(data, "name", "text").removeprefix("@"))


def _read_reply(data: Fields) -> Segment:
    message_id = text(data.get("id"))
    return Quote(message_id) if message_id else Unsupported("reply", dump(data))


def _read_face(data: Fields) -> Segment:
    name = text(mapping(data.get("raw")).get("faceText")) or text(data.get("name"))
    return Face(text(data.get("id")), name)


def _read_image(data: Fields) -> Segment:
    if data.get("emoji_id"):  # NapCat's market stickers come as images
        return _read_sticker(data)
    return Picture(
        file=_first(data, "filename", "name", "file"),  # Lagrange's `file` is the url
        url=_url(data),
        summary=text(data.get("summary")),
        size=_size(data),
        sticker=number(data.get("sub_type", data.get("subType"))) == STICKER_PICTURE,
    )


def _read_sticker(data: Fields) -> Segment:
    return Sticker(
        id=text(data.get("emoji_id")),
        package_id=text(data.get("emoji_package_id")),
        key=text(data.get("key")),
        summary=text(data.get("summary")),
        url=text(data.get("url")),
    )


def _read_record(data: Fields) -> Segment:
    return Record(
        file=_first(data, "file", "name"),
        url=_url(data),
        path=text(data.get("path")),
        size=_size(data),
        seconds=max(0, number(_first(data, "duration", "seconds"))),
    )


def _read_video(data: Fields) -> Segment:
    return Video(
        file=_first(data, "file", "name"),
        url=_url(data),
        path=text(data.get("path")),
        size=_size(data),
    )


def _read_file(data: Fields) -> Segment:
    return File(
        name=_first(data, "name", "file_name", "file"),
        id=_first(data, "file_id", "id", "fid", "file_hash"),
        url=_url(data),
        size=_size(data),
        hash=text(data.get("file_hash")),
    )


def _read_forward(data: Fields) -> Segment:
    content = data.get("content")
    return Forward(text(data.get("id")), dump(content) if isinstance(content, list) else "")


def _read_json(data: Fields) -> Segment:
    return _card("json", data.get("data"))


def _card(kind: Literal["json", "miniapp"], card: object) -> Card:
    """A JSON card: `prompt` is the line that QQ shows, else the first title or description; the
    other fields come from the first view with a title or description.
    """
    written = text(card)
    if isinstance(card, str):
        try:
            card = load(card)
        except ValueError:
            return Card(kind, data=written)
    fields = mapping(card)
    views = [mapping(view) for view in mapping(fields.get("meta")).values()]
    titles = (_first(view, "title", "desc") for view in views)
    shown = text(fields.get("prompt")) or next(filter(None, titles), "") or text(fields.get("desc"))
    view = next((view for view in views if _first(view, "title", "desc")), {})
    url = _first(view, *_CARD_URLS)
    return Card(
        kind,
        data=written,
        prompt=shown,
        title=text(view.get("title")),
        description=text(view.get("desc")),
        url=url if "://" in url or not url else f"https://{url}",
    )


def _read_xml(data: Fields) -> Segment:
    card = text(data.get("data"))
    told = {
        name: html.unescape(found[1][:MAX_BRIEF]).strip() if (found := pattern.search(card)) else ""
        for name, pattern in _XML.items()
    }
    return Card("xml", data=card, **told)


def _read_keyboard(data: Fields) -> Segment:
    rows = data.get("rows") or mapping(data.get("content")).get("rows")
    buttons = (
        mapping(button)
        for row in sequence(rows)
        for button in sequence(mapping(row).get("buttons"))
    )
    labels = (text(mapping(button.get("render_data")).get("label")) for button in buttons)
    return Keyboard(tuple(label for label in labels if label))


def _read_location(data: Fields) -> Segment:
    return Location(
        title=text(data.get("title")),
        content=text(data.get("content")),
        latitude=text(data.get("lat")),
        longitude=text(data.get("lon")),
    )


def _read_share(data: Fields) -> Segment:
    return Link("share", text(data.get("title")), text(data.get("url")), text(data.get("content")))


def _read_music(data: Fields) -> Segment:
    # A song has a link, or a platform (`type`: qq, 163, ...) and an id there.
    by_number = f"{text(data.get('type'))} {text(data.get('id'))}".strip()
    return Link(
        "music",
        text(data.get("title")),
        _first(data, "url", "audio"),
        text(data.get("content")) or by_number,
    )


def _transfer(kind: str) -> Callable[[Fields], Segment]:
    def read(data: Fields) -> Segment:
        name = _first(data, "fileName", "file_name", "name", "title", "file")
        return Transfer(
            kind,
            name,
            _first(data, "fileSetId", "file_set_id", "file_id", "elementId", "msgId", "id"),
        )

    return read


def _first(data: Fields, *names: str) -> str:
    return next((found for name in names if (found := text(data.get(name)))), "")


def _url(data: Fields) -> str:
    """The URL, which some servers put into `file`."""
    file = data.get("file")
    at_file = file if isinstance(file, str) and file.startswith(("http://", "https://")) else ""
    return text(data.get("url")) or at_file


def _size(data: Fields) -> int:
    return max(0, number(data.get("file_size", data.get("size"))))


_READERS: Final[dict[str, Callable[[Fields], Segment | None]]] = {
    "text": _read_text,
    "at": _read_at,
    "reply": _read_reply,
    "face": _read_face,
    "image": _read_image,
    "mface": _read_sticker,
    "record": _read_record,
    "video": _read_video,
    "file": _read_file,
    "forward": _read_forward,
    "json": _read_json,
    "xml": _read_xml,
    "miniapp": lambda data: _card("miniapp", data.get("data")),
    "markdown": lambda data: Markdown(_first(data, "content", "data")),
    "keyboard": _read_keyboard,
    "dice": lambda data: Dice(text(data.get("result"))),
    "rps": lambda data: Rps(text(data.get("result"))),
    "poke": lambda data: Poke(text(data.get("type")), text(data.get("id"))),
    "shake": lambda data: Poke("shake", text(data.get("id"))),
    "contact": lambda data: Contact(text(data.get("type")), text(data.get("id"))),
    "location": _read_location,
    "share": _read_share,
    "music": _read_music,
    "onlinefile": _transfer("onlinefile"),
    "flashtransfer": _transfer("flashtransfer"),
    "flash_file": _transfer("flash_file"),
}


# --- writing --------------------------------------------------------------------------------------


def write_segments(segments: Iterable[SentSegment]) -> list[Fields]:
    """The wire form, with the quote first, because servers look for it only there.

    Empty text is left out, and so are mentions and quotes without a number: some servers take 0 for
    everyone.
    """
    quote_first = sorted(segments, key=lambda segment: not isinstance(segment, Quote))
    named = [segment for segment in quote_first if _is_named(segment)]
    return [part for part in map(_write, named) if part["data"].get("text") != ""]


def _is_named(segment: SentSegment) -> bool:
    match segment:
        case Mention(user_id=user_id):
            return user_id > 0 and account_of(user_id) == user_id  # a mask cannot be mentioned
        case Quote(message_id=message_id):
            return _NOTHING.fullmatch(message_id) is None
        case _:
            return True


def holds_url(segments: Iterable[SentSegment]) -> bool:
    """Whether a server would have to fetch a URL to send this."""
    media = (segment for segment in segments if isinstance(segment, Attachment))
    return any(URL.match(clean(medium.source)) for medium in media)


def _write(segment: SentSegment) -> Fields:
    match segment:
        case Text():
            return _part("text", text=clean(segment.text))
        case Mention():
            return _part("at", qq=str(segment.user_id))
        case MentionAll():
            return _part("at", qq="all")
        case Quote():
            return _part("reply", id=clean(segment.message_id))
        case Face():
            return _part("face", id=clean(segment.id))
        case MergedForward():
            return _part("text", text=clean("\n\n".join(segment.nodes)))
        case Attachment(kind="file"):
            return _part("file", file=clean(segment.source), name=clean_name(segment.name))
        case Attachment():
            return _part(segment.kind, file=clean(segment.source))
        case _:
            assert_never(segment)


def _part(kind: str, **data: Any) -> Fields:
    return {"type": kind, "data": data}


def write_nodes(merged: MergedForward, *, account: int, server: str = "") -> list[Fields]:
    """The wire form of a merged forward for this server; the account is the sender of every node.
    onebots reads a node's fields at its top, and flat elements in it.
    """
    who = {"user_id": str(account), "nickname": clean(merged.name)}
    nodes = [_part("node", **who, content=write_segments([Text(node)])) for node in merged.nodes]
    if not server.startswith(ONEBOTS):
        return nodes
    top: Fields = {"uin": account, "name": who["nickname"]}
    return [{**node, **top, "content": _flat(node["data"]["content"])} for node in nodes]


def _flat(parts: Iterable[Fields]) -> list[Fields]:
    return [{**part, **part["data"]} for part in parts]
