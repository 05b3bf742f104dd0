"""URLs in text of people and models, and which of them a run may read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

URL: Final = re.compile(r"(?:https?://|www\.)[!#-&(-;=?-Z_a-z~]+", re.IGNORECASE)
LONGER: Final = re.compile(r"[^\s<>\"'`「」『』《》【】（），。；：！？、|*\\^{}\[\]]+")
AFTER: Final = ".,;:!?'*_~"


def urls_in(text: str) -> Iterator[str]:
    """Each URL in a text, in two readings: only its ASCII part, and up to the next delimiter."""
    for found in URL.finditer(text):
        yield trim_url(found[0])
        if longer := LONGER.match(text, found.start()):
            yield trim_url(longer[0])


def trim_url(url: str) -> str:
    """The URL without punctuation that belongs to the sentence around it. A closing bracket stays
    only if the URL contains the opening one.
    """
    depth = 0
    for place, char in enumerate(url):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            url = url[:place]
            break
    return url.rstrip(AFTER)


def url_key(url: str) -> str:
    """The same key for all usual spellings of a URL."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(unquote(text))
    except ValueError:
        return url
    host = (parts.netloc or "").lower().removeprefix("www.")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{parts.path.rstrip('/')}{query}"


class KnownUrls:
    """The URLs that a run may read once it has read outside text: those that people named and those
    that a search found. Any other URL might carry words of this chat to the author of that text.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._keys = {url_key(url) for text in texts for url in urls_in(text)}

    def add(self, urls: Iterable[str]) -> None:
        self._keys.update(map(url_key, urls))

    def __contains__(self, url: str) -> bool:
        return url_key(url) in self._keys
