"""RSS, Atom and JSON feeds: parsing them, finding the new entries, and wording the messages."""

from __future__ import annotations

import asyncio
import hashlib
import html
import io
import json
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from bot.core import codec
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.ports import Web
from frostagent.text.visible_text import visible_text
from frostagent.types.errors import ToolFailed

logger = logging.getLogger(__name__)

MAX_SEEN: Final = 400  # entry ids that are remembered of a feed
MAX_ENTRIES: Final = 100  # of a feed that are read, the latest
MAX_PENDING: Final = 30  # new entries that wait to be said
MAX_TITLE: Final = 100  # characters
MAX_URL: Final = 300  # characters
MAX_TEXT: Final = 500  # characters of an entry that a summary reads
MAX_SUMMED: Final = 5  # entries of a message that have a summary
SHOWN: Final = 3  # entries of a message that have their link
PARSED_WITHIN: Final = 10.0  # seconds
DEAD: Final = 5  # failures in a row after which the maker is informed
LONGEST_REST: Final = 86_400.0  # seconds between two reads of a failing feed, at most

TAG = re.compile(r"<[^<>]{0,500}>")
NOT_A_FEED = "url: there is no feed (RSS, Atom, JSON Feed) at that address"
UNREADABLE = "url: the feed cannot be read now ({why})"
NEWS = Phrase("📰 {title}\n{lines}", "📰 {title}\n{lines}")
ENTRY = Phrase("· {title}\n{line}\n{url}", "· {title}\n{line}\n{url}")
MORE = Phrase("· 还有 {count} 条：{titles}", "· and {count} more: {titles}")
CATALOGUE.register(__name__, globals())


class Entry(Struct, frozen=True):
    """`text` is what a summary still has to read of it, and `line` the summary."""

    key: str
    title: str
    url: str
    text: str = ""
    line: str = ""


class FeedNotes(Struct, frozen=True):
    """The stored state of a feed: its server's cache validators, the keys of known entries, the
    entries still to be said, and the number of failures in a row. `summary`: new entries are said
    with a summary.
    """

    url: str
    etag: str = ""
    modified: str = ""
    seen: tuple[str, ...] = ()
    pending: tuple[Entry, ...] = ()
    failures: int = 0
    summary: bool = False


class Feed(Struct, frozen=True):
    """A parsed feed; its entries are in order, the oldest first."""

    title: str
    entries: tuple[Entry, ...]


def read_notes(text: str) -> FeedNotes:
    notes: FeedNotes = codec.read(FeedNotes, text)
    return notes


async def read_news(web: Web, notes: FeedNotes, *, is_first: bool = False) -> tuple[str, FeedNotes]:
    """The title of the feed (empty if it has not changed), and the notes with its new entries
    pending. With `is_first`, no entry counts as new. Raises ToolFailed.
    """
    headers = {"If-None-Match": notes.etag, "If-Modified-Since": notes.modified}
    answer = await web.get(
        notes.url, headers={name: mark for name, mark in headers.items() if mark}
    )
    if answer.status == 304:
        return "", replace(notes, failures=0)
    if answer.status != 200:
        raise ToolFailed(UNREADABLE.format(why=f"status {answer.status}"))
    try:
        async with asyncio.timeout(PARSED_WITHIN):
            feed = await asyncio.to_thread(parse_feed, answer.body)
    except TimeoutError:
        raise ToolFailed(NOT_A_FEED) from None
    marks = {name: answer.headers.get(name, "")[:200] for name in ("etag", "last-modified")}
    known = {*notes.seen, *(one.key for one in notes.pending)}
    new = [] if is_first else [one for one in feed.entries if one.key not in known]
    if not notes.summary:
        new = [replace(one, text="") for one in new]
    seen = [one.key for one in feed.entries]
    kept = [key for key in notes.seen if key not in set(seen)]
    return feed.title, replace(
        notes,
        etag=marks["etag"],
        modified=marks["last-modified"],
        seen=tuple([*kept, *seen][-MAX_SEEN:]),
        pending=() if is_first else (*notes.pending, *new)[-MAX_PENDING:],
        failures=0,
    )


def parse_feed(body: bytes) -> Feed:
    """Parse a feed. Raises ToolFailed for anything else."""
    start = body.lstrip()[:1]
    if start == b"{":
        return _json_feed(body)
    import feedparser  # noqa: PLC0415  # 50 ms, for those who subscribe to something

    # A stream: the library would take bytes for the name of a file or a URL to fetch.
    stream = io.BytesIO(body)
    try:
        parsed = feedparser.parse(stream, sanitize_html=False, resolve_relative_uris=False)
    except Exception:  # a library's, on foreign input
        logger.info("a feed broke its parser", exc_info=True)
        raise ToolFailed(NOT_A_FEED) from None
    if not parsed.get("version"):
        raise ToolFailed(NOT_A_FEED)
    title = _plain(parsed.feed.get("title", ""))
    entries = (
        (
            one.get("id") or one.get("link") or one.get("title"),
            one.get("title"),
            one.get("link"),
            one.get("summary") or next((part.get("value") for part in one.get("content", ())), ""),
        )
        for one in parsed.entries[:MAX_ENTRIES]
    )
    return Feed(title, tuple(reversed([*_entries(entries)])))


def _json_feed(body: bytes) -> Feed:
    try:
        found = json.loads(body)
        if "jsonfeed.org" not in found["version"]:
            raise ToolFailed(NOT_A_FEED)
        items: list[Any] = found["items"]
        entries = [
            (
                one.get("id") or one.get("url"),
                one.get("title") or one.get("content_text"),
                one.get("url"),
                one.get("summary") or one.get("content_text") or one.get("content_html"),
            )
            for one in items[:MAX_ENTRIES]
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ToolFailed(NOT_A_FEED) from None
    return Feed(_plain(found.get("title")), tuple(reversed([*_entries(entries)])))


def _entries(found: Any) -> Iterator[Entry]:
    for key, title, url, text in found:
        if not key:
            continue
        digest = hashlib.sha256(str(key).encode("utf-8", "replace")).hexdigest()[:16]
        link = url if isinstance(url, str) and url.startswith(("http://", "https://")) else ""
        yield Entry(digest, _plain(title) or link, link[:MAX_URL], _plain(text, MAX_TEXT))


def _plain(text: object, limit: int = MAX_TITLE) -> str:
    """HTML or text as one line of plain text."""
    if not isinstance(text, str):
        return ""
    words = " ".join(visible_text(html.unescape(TAG.sub(" ", text[: 20 * limit]))).split())
    return words if len(words) <= limit else f"{words[:limit]}…"


def tell_news(title: str, entries: Sequence[Entry], language: Language) -> str:
    """The message about new entries: the latest with their summaries and links, the others in one
    line.
    """
    most = MAX_SUMMED if any(one.line for one in entries) else SHOWN
    shown, rest = entries[-most:], entries[:-most]
    told = (ENTRY.format(language, title=one.title, line=one.line, url=one.url) for one in shown)
    lines = ["\n".join(filter(None, one.splitlines())) for one in told]
    if rest:
        titles = "；".join(one.title for one in rest[-5:])
        lines.append(MORE.format(language, count=len(rest), titles=titles))
    return NEWS.format(language, title=title, lines="\n".join(lines))


def rest_of(interval: float, failures: int) -> float:
    """Seconds until a feed with this many failures in a row is read again."""
    return min(interval * 2.0 ** min(failures, 10), LONGEST_REST)
