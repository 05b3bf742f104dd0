"""Tool results: text and pictures for the model, details for people."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import fields, is_dataclass
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from frostagent.types.traits import Audience
from frostagent.words import words_in_force

NO_OUTPUT = "(no output)"
LARGEST_PICTURE = 10 * 2**20  # bytes; vendors accept less

PICTURES = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))
"""The first bytes of each picture format; WebP is recognised separately."""

DATA_URL = re.compile(
    r"data:image/([a-z0-9.+-]+)(?:;[a-z0-9=-]+)*;base64,((?:[a-z0-9+/]{60,}\r?\n)*[a-z0-9+/_-]+=*)",
    re.IGNORECASE,
)
"""A picture as a data URL, whose lines may be wrapped as in mail."""

SHOWN_KINDS = frozenset({"png", "jpeg", "jpg", "gif", "webp"})


class Image(Struct, frozen=True):
    """A picture as a data URL. Models read `png`, `jpeg`, `gif` and `webp`
    (`docs/protocol/vendors.md` 6.16).

        Image.of(Path("chart.png").read_bytes())

    Raises ValueError for any other URL: vendors can open neither our links nor our files.
    """

    url: str

    def __post_init__(self) -> None:
        if not self.url.startswith("data:image/"):
            raise ValueError("a picture is given as a data url, data:image/png;base64,...")

    @classmethod
    def of(cls, data: bytes, *, kind: str = "png") -> Image:
        """The picture in these bytes. `kind` is the part of its media type after `image/`."""
        return cls(f"data:image/{kind};base64,{base64.b64encode(data).decode()}")


class ToolResult(Struct, frozen=True):
    """The result of one call. A tool may return this, or any value that `render` accepts.

    `details` is any JSON, for logs and people, never for the model. `terminate` ends the run after
    this step if every result of the step sets it. `is_error` marks a failure that the tool
    describes itself. `sources` are the ids of this conversation's messages whose text it contains:
    a recall removes that text from the store. `authority` is the lowest of all people quoted, and
    caps the run from then on. `tainted` marks text from outside, even from a tool with a trusted
    result. `kept` is stored in place of `content`. `code`, `call_id` and `name` are set by the
    engine: values from a tool are ignored.

        ToolResult("12 °C, rain", details={"source": "met.no"})
    """

    content: str = ""
    images: tuple[Image, ...] = ()
    details: Any = field(default_factory=dict)
    terminate: bool = False
    is_error: bool = False
    code: str = ""
    sources: tuple[str, ...] = ()
    authority: Audience = Audience.OWNER
    tainted: bool = False
    kept: str = ""
    call_id: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """The same as `content`: `text` is the common name in all messages."""
        return self.content

    @classmethod
    def of(cls, value: object) -> ToolResult:
        """The result for any value a tool returned. Pictures in it become images, never text."""
        if not isinstance(value, ToolResult):
            text, images = render(value)
            return cls(text, images)
        if not all(isinstance(image, Image) for image in value.images):
            raise TypeError("the images of a result are each an Image")
        content: object = value.content
        if isinstance(content, str) and "data:" not in content:
            return replace(value, code="") if value.code else value
        text, found = render(content, after=len(value.images))
        return replace(value, content=text, images=(*value.images, *found), code="")


def render(value: object, *, after: int = 0) -> tuple[str, tuple[Image, ...]]:
    """A tool's value as text for the model, and the pictures in it, each named in the text.

    A list of pictures and other values is rendered item by item. Pictures are numbered from `after`
    + 1; `Words.picture` is the name.
    """
    found: list[Image] = []
    parts = value if isinstance(value, list | tuple) and any(map(_picture, value)) else [value]
    texts = [_take_out(_picture(part) or render_result(part), found, after) for part in parts]
    return "\n".join(texts), tuple(found)


def name_of_picture(number: int) -> str:
    return words_in_force().picture.format(number=number)


def _take_out(text: str, found: list[Image], after: int) -> str:
    """The text with each data URL replaced by the picture's name."""

    def name(url: re.Match[str]) -> str:
        kind, data = url[1].lower(), "".join(url[2].split())
        size = len(data.rstrip("=")) * 3 // 4
        if kind not in SHOWN_KINDS or size > LARGEST_PICTURE:
            return f"(a picture, {kind}, {size} bytes: it cannot be shown)"
        found.append(Image(f"data:image/{kind};base64,{data}"))
        return name_of_picture(after + len(found))

    return DATA_URL.sub(name, text) if "data:" in text.lower() else text


def _picture(value: object) -> str:
    """The data URL of a picture or of a picture's bytes; else empty."""
    if isinstance(value, Image):
        return value.url
    if isinstance(value, bytes | bytearray | memoryview) and (kind := _kind_of(bytes(value[:16]))):
        return Image.of(bytes(value), kind=kind).url
    return ""


def _kind_of(head: bytes) -> str:
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in PICTURES if head.startswith(start)), "")


def render_result(value: object) -> str:
    """A tool's value as text: text as is, data as JSON, pictures as data URLs."""
    match value:
        case str():
            return value if value.strip() else NO_OUTPUT
        case None:
            return NO_OUTPUT
        case bytes() | bytearray() | memoryview():
            return _text_of(bytes(value))
        case BaseModel():
            try:
                return value.model_dump_json()
            except ValueError:  # bytes that are not text
                return json.dumps(value.model_dump(), ensure_ascii=False, default=_plain)
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=_plain)
        case _ if isinstance(value, Struct) or is_dataclass(value):
            return json.dumps(_plain(value), ensure_ascii=False, default=_plain)
        case _:
            return str(value)


def _plain(value: object) -> Any:
    """A JSON value in place of one that JSON cannot hold."""
    match value:
        case Image(url=url):
            return url
        case bytes() | bytearray() | memoryview():
            return _text_of(bytes(value))
        case _:
            pass
    try:
        return to_jsonable_python(value, fallback=_parts)
    except ValueError:  # bytes that are not text
        if isinstance(value, BaseModel):
            return value.model_dump()
        if is_dataclass(value):
            return {each.name: getattr(value, each.name) for each in fields(value)}
        return str(value)


def _parts(value: object) -> Any:
    return to_builtins(value, enc_hook=str) if isinstance(value, Struct) else str(value)


def _text_of(data: bytes) -> str:
    if url := _picture(data):
        return url
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes of binary data)"
    return text if text.strip() else NO_OUTPUT


def shorten(text: str, limit: int) -> str:
    """About `limit` characters of the text: its head and tail, with a note on how much was cut."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    head = limit - tail
    return (
        f"{text[:head]}\n[... {len(text) - limit} characters cut ...]\n{text[len(text) - tail :]}"
    )
