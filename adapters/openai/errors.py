"""Refusals sorted: what a vendor said, in whatever shape, to the one class that says what to do
about it (section 7).

The knowledge is in `SIGNS` (`signs.py`) and `STATUSES`, rows of data tried in order. Words go
before statuses, because vendors send billing as 429, 400 or 403, and the caller's own mistakes as
500.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from adapters.openai.signs import SIGNS
from bot.domain.errors import (
    ContextOverflow,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)

MAX_MESSAGE = 500  # characters, what ModelError promises
MAX_CODE = 64  # characters
MAX_SEARCHED = 4000  # characters of a body that are looked at


STATUSES: Mapping[int, type[ModelError]] = {
    401: ModelAuth,
    402: ModelBilling,
    403: ModelAuth,
    404: ModelNotFound,
    408: ModelOverloaded,
    409: ModelOverloaded,
    413: ContextOverflow,
    429: ModelRateLimited,
}

LIMITS = re.compile(
    r"(?:context length (?:is|of)|prompt length is|max_seq_len \(|max length:|"
    r"length should be \[\d+,|limit of|token limit:|available context size \(|> )\s*(\d[\d,]{2,})",
    re.IGNORECASE,
)
SPAN = (
    r"(?:(\d{1,9})\s*h(?:ours?)?\s*)?(?:(\d{1,9})\s*m(?!s)(?:in\w*)?\s*)?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|秒))?"
)
WAIT = re.compile(
    rf"(?:again|retry)\s+(?:after|in)\s+{SPAN}|()()(\d{{1,9}})\s*(秒)钟?[之以]?后", re.IGNORECASE
)
DURATION = re.compile(SPAN, re.IGNORECASE)  # 6m0s, as OpenAI and those like it write
# More than that is no wait but a time, in seconds or milliseconds since 1970.
EPOCH, EPOCH_MS = 1e9, 1e12
RESETS = ("requests", "tokens")
SECRETS = re.compile(
    r"\b((?:sk|ak|pk|rk|gsk|xai|org|proj|user)[-_])[\w-]{4,}|"
    r"(Bearer\s+)[^\s\"',]+|\b(AIza)[\w-]{20,}|\b(eyJ)[\w.-]{20,}"
)
USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Complaint:
    """A vendor's complaint, out of whatever shape it came in."""

    words: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    status: int | None = None
    limit: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return ("".join(f"<{code}>" for code in self.codes) + " " + " ".join(self.words))[
            :MAX_SEARCHED
        ]


def classify(
    status: int | None, body: object, headers: Mapping[str, str] | None = None, *, now: float = 0.0
) -> ModelError:
    """The error this refusal is. `status` is None for an error inside a 200; `now` is in seconds
    since 1970.
    """
    complaint = read_complaint(body)
    head = {name.lower(): value for name, value in (headers or {}).items()}
    if status is None:
        status = complaint.status
    if status is not None and 300 <= status < 400:
        complaint.words.append(
            f"redirected to {head.get('location', 'nowhere')}: use that as base URL"
        )
    text = complaint.text if status is None else f"<{status}>{complaint.text}"
    sign = next((sign for sign in SIGNS if sign.fits(text)), None)
    kind = sign.error if sign else _by_status(status)
    message = clean(" ".join(complaint.words)) or f"HTTP {status} without a word"
    code = clean(complaint.codes[0])[:MAX_CODE] if complaint.codes else ""
    if sign and not code.startswith(sign.code):
        code = sign.code
    if issubclass(kind, ModelRateLimited | ModelOverloaded):
        wait = read_wait({**complaint.headers, **head}, message, now=now)
        return kind(message, status=status, code=code, retry_after=wait)
    if issubclass(kind, ContextOverflow):
        return kind(
            message, status=status, code=code, limit=complaint.limit or _read_limit(complaint.text)
        )
    return kind(message, status=status, code=code)


def _by_status(status: int | None) -> type[ModelError]:
    if status is None or status < 300 or status >= 500:
        return ModelOverloaded
    return STATUSES.get(status, ModelRejected)


def has_complaint(body: object) -> bool:
    """Whether a body without choices says what is wrong."""
    return bool(read_complaint(body).words)


def read_complaint(body: object) -> Complaint:
    """Walk the body: a list's first, `error` | `detail` | `message`, codes, what a gateway quotes.
    Never raises.
    """
    complaint = Complaint()
    for node in _nodes(_open(body) if isinstance(body, bytes) else body):
        _collect(node, complaint)
    return complaint


def _nodes(body: object) -> Iterator[dict[str, Any]]:
    """The objects that may hold words, outermost first; a bare string counts as an object with a
    message.
    """
    match body:
        case str(text):
            yield {"message": text}
        case [first, *_]:
            yield from _nodes(first)
        case dict():
            yield body
            for key in ("error", "errors", "detail", "innererror", "metadata", "raw", "base_resp"):
                if (inner := body.get(key)) and isinstance(inner, str | list | dict):
                    yield from _nodes(_unwrap(inner))
        case _:
            pass


def _unwrap(inner: object) -> object:
    """Unwrap JSON that a gateway quotes in a string (OpenRouter's metadata.raw)."""
    if isinstance(inner, str) and inner.lstrip().startswith("{"):
        try:
            return orjson.loads(inner)
        except orjson.JSONDecodeError:
            return inner
    return inner


def _collect(node: Mapping[str, Any], complaint: Complaint) -> None:
    for key in ("message", "msg", "status_msg"):
        if (words := node.get(key)) and isinstance(words, str) and words not in complaint.words:
            where = node.get("loc")  # FastAPI's list of wrong fields
            place = ".".join(map(str, where)) + ": " if isinstance(where, list) else ""
            complaint.words.append(place + words)
    for key in ("code", "type", "status", "status_code"):
        value = node.get(key)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            continue
        if key != "status_code":
            complaint.codes.append(str(value))
        if complaint.status is None and str(value).isdecimal() and 400 <= int(value) < 600:
            complaint.status = int(value)
    if isinstance(window := node.get("n_ctx"), int):
        complaint.limit = window
    if isinstance(quoted := node.get("headers"), dict):
        complaint.headers.update({str(name).lower(): str(value) for name, value in quoted.items()})


def _open(body: bytes) -> object:
    """JSON, or the text, or the title of a page."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body.decode("utf-8", "replace")
    if not text.lstrip().startswith("<"):
        return text
    text = text[
        :MAX_SEARCHED
    ]  # also for time: both patterns take quadratic time where tags do not end
    title = TITLE.search(text)
    return "web page: " + (title[1] if title else re.sub(r"<[^>]*>", " ", text))


def _read_limit(text: str) -> int | None:
    found = LIMITS.search(text)
    return int(found[1].replace(",", "")) if found else None


def read_wait(headers: Mapping[str, str], message: str, *, now: float) -> float | None:
    """Seconds the vendor asks us to wait, more than 0, or None: headers first (names in lower
    case), then its words.

    No wait and a time that is over say nothing of when to come back: each is passed over for what
    stands elsewhere.
    """
    return next(
        (wait for wait in _waits(headers, message, now) if wait is not None and wait > 0), None
    )


def _waits(headers: Mapping[str, str], message: str, now: float) -> Iterator[float | None]:
    if milliseconds := _number(headers.get("retry-after-ms")):
        yield milliseconds / 1000
    yield _wait_in(headers.get("retry-after", ""), now)
    reset = headers.get("x-ratelimit-reset", "")
    if (
        number := _number(reset)
    ) is None or number > EPOCH:  # a small number is a wait to some, something else to others
        yield _wait_in(reset, now)
    if found := WAIT.search(message):
        yield _seconds(
            found[1] or found[5], found[2] or found[6], found[3] or found[7], found[4] or found[8]
        )
    for what in RESETS:  # when it is full again, so only where it is empty
        if headers.get(f"x-ratelimit-remaining-{what}") == "0":
            yield _wait_in(headers.get(f"x-ratelimit-reset-{what}", ""), now)


def _wait_in(text: str, now: float) -> float | None:
    """The seconds that a header's value means: a number of them, a time since 1970, a duration, or
    a date.
    """
    if (number := _number(text)) is not None:
        moment = number / 1000 if number > EPOCH_MS else number
        return moment - now if number > EPOCH else number
    if (found := DURATION.fullmatch(text.strip())) and any(found.groups()):
        return _seconds(*found.groups())
    return _seconds_until(text, now)


def _seconds(
    hours: str | None, minutes: str | None, seconds: str | None, unit: str | None
) -> float:
    part = float(seconds or 0) / (1000 if (unit or "").lower() == "ms" else 1)
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + part


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds_until(text: str, now: float) -> float | None:
    """Until a date as HTTP writes it, or ISO 8601; one without a zone is in UTC, as all of HTTP's
    are.
    """
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, OverflowError):
            continue
    return None


def clean(text: str) -> str:
    """The text on one line, keys and the users of urls masked, cut to what ModelError promises."""
    text = USERINFO.sub("***@", " ".join(text.split()))
    text = SECRETS.sub(lambda found: "".join(part or "" for part in found.groups()) + "***", text)
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
