"""A whole body, in plain JSON (numbers of vendors.md)."""

from __future__ import annotations

import re
from typing import Any

from adapters.openai.answer import Gathered
from adapters.openai.errors import MAX_SEARCHED, TITLE, classify, clean, has_complaint
from adapters.openai.texts import read_json
from bot.domain.errors import ModelError, ModelRejected, ModelTransport

NAME = re.compile(r"[A-Za-z_]{1,32}")
MAX_NAMES = 8  # fields of an object without an answer that are named in the error


def read_whole(data: bytes, gathered: Gathered) -> None:
    """Read the one answer of a body. Raises the ModelError it holds, ModelTransport where it was
    cut or is none, ModelRejected for a web page.
    """
    body = _unwrap(_read_body(data))
    match body:
        case dict() if not body.get("error"):
            choices = body.get("choices")
        case dict() | [dict(), *_]:
            raise classify(None, body)
        case _:
            raise _no_choices(body, len(data))
    listed = choices if isinstance(choices, list) else ()
    ours = [choice for choice in listed if isinstance(choice, dict)]
    if not ours:
        raise classify(None, body) if has_complaint(body) else _no_choices(body, len(data))
    choice = next((choice for choice in ours if not choice.get("index")), ours[0])
    if isinstance(message := choice.get("message") or choice.get("delta"), dict):
        gathered.draft.add(message, whole=True)
    if choice.get("error"):
        raise classify(None, choice)
    gathered.read_end(choice)
    gathered.read_frame(body)


def _read_body(data: bytes) -> Any:
    if not data:
        raise ModelTransport("the answer was empty")
    try:
        return read_json(data)
    except ValueError as error:
        if data.startswith(b"<"):
            raise _web_page(data) from error
        raise ModelTransport(f"the answer was cut or is no JSON: {len(data)} bytes") from error


def _unwrap(body: Any) -> Any:
    """The body in the `data` of some gateways (1.9), or as it is."""
    match body:
        case {"data": {"choices": _} as inner} if "choices" not in body:
            return inner
        case _:
            return body


def _no_choices(body: object, size: int) -> ModelTransport:
    """The error that names the fields of an object without an answer, and nothing in them."""
    fields = body if isinstance(body, dict) else ()
    names = [name for name in fields if NAME.fullmatch(name)][:MAX_NAMES]
    told = f" with {', '.join(names)}" if names else ""
    return ModelTransport(f"the answer holds no choices: {size} bytes{told}")


def _web_page(data: bytes) -> ModelError:
    """A page with status 200 is the vendor's site, not its API: asking again would not help."""
    title = TITLE.search(data[:MAX_SEARCHED].decode("utf-8", "replace"))
    page = clean(title[1]) if title else f"{len(data)} bytes"
    return ModelRejected(
        f"a web page came instead of an answer ({page}): check the base URL, /v1 may be missing"
    )
