"""Urls in what people and models write, and those that a run may read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

URL: Final = re.compile(r"(?:https?://|www\.)[!#-&(-;=?-Z_a-z~]+", re.IGNORECASE)
LONGER: Final = re.compile(r"[^\s<>\"'`「」『』《》【】（），。；：！？、|*\\^{}\[\]]+")
AFTER: Final = ".,;:!?'*_~"


def urls_in(text: str) -> Iterator[str]:
    """Each url of a text: in ASCII alone, and as far as it may reach."""
    for found in URL.finditer(text):
        yield trim_url(found[0])
        if longer := LONGER.match(text, found.start()):
            yield trim_url(longer[0])


def trim_url(url: str) -> str:
    """A url without what a sentence has behind it; a bracket belongs to it if it was opened in
    it.
    """
    depth = 0
    for place, char in enumerate(url):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            url = url[:place]
            break
    return url.rstrip(AFTER)


def url_key(url: str) -> str:
    """What two spellings of a url have in common."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(unquote(text))
    except ValueError:
        return url
    host = (parts.netloc or "").lower().removeprefix("www.")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{parts.path.rstrip('/')}{query}"


class KnownUrls:
    """The urls that a run may read once words from outside are in it: those that people named, and
    those that a search found. Any other url may carry what was said here to the author of those
    words.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._keys = {url_key(url) for text in texts for url in urls_in(text)}

    def add(self, urls: Iterable[str]) -> None:
        """Know these, too."""
        self._keys.update(map(url_key, urls))

    def __contains__(self, url: str) -> bool:
        return url_key(url) in self._keys
