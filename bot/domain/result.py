"""What a tool gives back: text for the model, pictures for one that sees, details for people who look on."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

NO_OUTPUT = "(no output)"


@dataclass(frozen=True, slots=True)
class Image:
    """A picture as a data url. `png`, `jpeg`, `gif` and `webp` are what models can read (`providers/quirks.md` 6.16).

    Raises ValueError for a url that is none: nobody else could open a link of ours, or a file.
    """

    url: str

    def __post_init__(self) -> None:
        if not self.url.startswith("data:image/"):
            raise ValueError("a picture is given as a data url, data:image/png;base64,...")

    @classmethod
    def of(cls, data: bytes, *, kind: str = "png") -> Image:
        """The picture in these bytes; `kind` is what follows `image/` in its media type."""
        return cls(f"data:image/{kind};base64,{base64.b64encode(data).decode()}")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one call came to; a tool may return one of these, or anything that `render_result` can say.

    `details` is for logs and for people, never for the model. `terminate` ends the run after this step, if every
    result of the step says so. `is_error` is a failure told by the tool itself, in its own words.
    """

    content: str = ""
    images: tuple[Image, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    terminate: bool = False
    is_error: bool = False

    @classmethod
    def of(cls, value: object) -> ToolResult:
        """What a tool returned, as a result."""
        if not isinstance(value, ToolResult):
            return cls(render_result(value))
        if not all(isinstance(image, Image) for image in value.images):
            raise TypeError("the images of a result are each an Image")
        if not isinstance(value.details, Mapping):
            raise TypeError("the details of a result are a mapping")
        content: object = value.content
        return value if isinstance(content, str) else replace(value, content=render_result(content))


def render_result(value: object) -> str:
    """What a tool returned, as the text the model reads: text as is, data as JSON, nothing as "(no output)"."""
    match value:
        case str():
            return value if value.strip() else NO_OUTPUT
        case None:
            return NO_OUTPUT
        case BaseModel():
            return value.model_dump_json()
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=_plain)
        case _ if hasattr(value, "__dataclass_fields__"):
            return json.dumps(_plain(value), ensure_ascii=False)
        case _:
            return str(value)


def _plain(value: object) -> Any:
    return to_jsonable_python(value, fallback=str)


def shorten(text: str, limit: int) -> str:
    """At most about `limit` characters: the head and the tail are kept, and what was cut is said."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    head = limit - tail
    return f"{text[:head]}\n[... {len(text) - limit} characters cut ...]\n{text[len(text) - tail :]}"
