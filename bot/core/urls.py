"""URLs in messages and texts, their hosts, and which of them a run may read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from string import punctuation
from typing import Final
from urllib.parse import quote, urlsplit

from bot.core.segments import Card, Link, Markdown, Segment
from frostagent.types.speech import Text

BEGINS: Final = r"(?:https?://|www\.)"
INSIDE: Final = (
    r"[^\s<>\"'`「」『』《》【】（），。；：！？、|*\\^{}\[\]"  # a url, as far as it may reach
)
DOTS: Final = ".．｡"  # what browsers take for the dot of a host; `。` ends a sentence here
# Bounds keep it linear in a text of `www.中` a thousand times; a host has 253 characters at most.
LONGEST_HOST: Final = 300
MOST_LONGER: Final = 600
URL: Final = re.compile(
    rf"{BEGINS}(?:[!#-&(-;=?-Z_a-z~]+|(?={INSIDE}/?#]{{0,{LONGEST_HOST}}}[{DOTS}]))", re.IGNORECASE
)
LONGER: Final = re.compile(rf"{INSIDE}]{{1,{MOST_LONGER}}}")
AUTHORITY: Final = re.compile(rf"{BEGINS}(?P<host>{INSIDE}/?#]{{0,{LONGEST_HOST}}})", re.IGNORECASE)
BRACKET: Final = re.compile(r"[()]")
GOES_ON: Final = re.compile(rf"[^\x00-\x7f].*[{DOTS}@]|[{DOTS[1:]}]")
AFTER: Final = ".,;:!?'*_~"
ESCAPE: Final = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)


def urls_in(text: str) -> Iterator[str]:
    """Each URL in a text, as far as it may reach."""
    for reach in _reaches(text):
        yield from reach


def links_in(segments: Iterable[Segment]) -> Iterator[str]:
    """Each URL that a message posts, in its text or as a card. Chinese characters right behind it
    belong to it only behind a slash or an equals sign.
    """
    for segment in segments:
        match segment:
            case Text(text=text) | Markdown(content=text) | Card(url=text) | Link(url=text):
                for near, *whole in _reaches(text):
                    yield whole[0] if whole and near.endswith(("/", "=")) else near
            case _:
                pass


def _reaches(text: str) -> Iterator[tuple[str, ...]]:
    """The spellings of each URL in a text; one inside a host is none of its own."""
    done = 0
    for found in URL.finditer(text):
        if found.start() < done:
            continue
        reach = spellings(text, found)
        if len(reach) == 1:
            done = found.start() + len(reach[0])
        yield reach


def spellings(text: str, found: re.Match[str]) -> tuple[str, ...]:
    """How far the url that was `found` may reach, the nearest first: Chinese words often follow
    without a blank. If its host goes on behind ASCII, only the whole is one: another host
    altogether.
    """
    near = trim_url(found[0])
    longer = LONGER.match(text, found.end())
    whole = trim_url(found[0] + longer[0]) if longer else near
    authority = AUTHORITY.match(text, found.start())
    if authority and GOES_ON.search(authority["host"]):
        return (whole,)
    return (near,) if whole == near else (near, whole)


def trim_url(url: str) -> str:
    """The URL without punctuation that belongs to the sentence around it. A closing bracket stays
    only if the URL contains the opening one.
    """
    depth = 0
    for bracket in BRACKET.finditer(url):
        depth += 1 if bracket[0] == "(" else -1
        if depth < 0:
            url = url[: bracket.start()]
            break
    return url.rstrip(AFTER)


def url_key(url: str) -> str:
    """The same key for all usual spellings of a URL. Escapes are decoded only after the URL is
    split: `https://known.example%23@evil.example/` is a URL of evil.example.
    """
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return url
    host = parts.netloc.lower().removeprefix("www.")
    query = f"?{_escaped(parts.query)}" if parts.query else ""
    return f"{host}{_escaped(parts.path).rstrip('/')}{query}"


def host_of(url: str) -> str:
    """The host of an HTTP URL, in lower case; empty if it is not plain ASCII, or if the URL names
    an account (`https://known.example@evil.example/`), because people would take it for another.
    """
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host = parts.hostname or ""
    except ValueError:
        return ""
    is_plain = host.isascii() and "%" not in host and "@" not in parts.netloc
    return host.removesuffix(".") if is_plain and parts.scheme in {"http", "https"} else ""


def is_on_sites(host: str, sites: Iterable[str]) -> bool:
    """Whether the host is one of these sites or a subdomain of one."""
    return any(host == site or host.endswith(f".{site}") for site in sites)


def _escaped(text: str) -> str:
    return ESCAPE.sub(lambda found: found[0].upper(), quote(text, safe=punctuation))


class KnownUrls:
    """The URLs that a run may read once it has read outside text: those that people named and those
    that a search found. Any other URL might carry words of this chat to the author of that text.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._named: dict[str, str] = {}
        for text in texts:
            self.add(urls_in(text))

    def add(self, urls: Iterable[str]) -> None:
        for url in urls:
            self._named.setdefault(url_key(url), url)

    def named(self, url: str) -> str | None:
        """This url as it was named, None if it was not. Fetch that one: the spelling of another,
        its slashes and escapes, may carry words, too.
        """
        return self._named.get(url_key(url))
