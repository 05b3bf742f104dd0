"""Secrets, which nobody may read: masked wherever they stand in a text and however they are spelt
there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus

MASK: Final = "***"
LONG: Final = 8
"""Characters; shorter ones are masked as whole words only: "local" is a part of "localhost"."""

SHORTEST: Final = 4
"""Characters; what is shorter cannot be told from ordinary text, and anybody can guess it."""

KEYS: Final = re.compile(
    r"""(?P<before> ://(?=[^/@\s]+@) | \bBearer[ ]
        | (?:key|token|secret|passwd|password|pwd|signature)= )[^\s&"',;@]+
    | \b(?:sk|ak|pk|rk|gsk|xai)[-_](?=[\w-]*\d)[\w-]{8,} | \bAIza[\w-]{20,} | \beyJ[\w.-]{20,}""",
    re.IGNORECASE | re.VERBOSE,
)
"""The look of a secret, whoever's it is: in a url, behind a name that says so, known kinds of
keys.
"""


def one_line(text: str, longest: int) -> str:
    """Somebody else's words, on one line, without what looks like a secret, cut to so many
    characters.
    """
    text = KEYS.sub(lambda found: f"{found['before'] or ''}{MASK}", " ".join(text.split()))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


PLAIN: Final = re.compile(
    r"(?:\.{0,2}|~|[A-Za-z]:)[/\\].* | [A-Za-z][\w+.-]*://[^@?]* | \d{1,5} | utf-?8"
    r" | true | false | yes | no | on | off | none | debug | info | warning | error | production"
    r" | development | test | stdio | https? | (?:application|text)/[\w.+-]+(?:;.*)? | \*/\*",
    re.IGNORECASE | re.VERBOSE,
)
"""Values of an environment or a header that are no secrets: paths, addresses, switches, kinds."""

SAYS_SECRET: Final = re.compile(
    r"pass|secret|token|key|auth|credential|cookie|session", re.IGNORECASE
)


def server_secrets(
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    texts: Iterable[str] = (),
) -> tuple[str, ...]:
    """The secrets among what a server is started or asked with: every value that is not obviously
    plain or is called a secret, what stands behind `Bearer`, and in `texts` what looks like one.
    """
    found = dict[str, None]()
    for name, value in {**(env or {}), **(headers or {})}.items():
        if PLAIN.fullmatch(value) and not SAYS_SECRET.search(name):
            continue
        scheme, _, rest = value.partition(" ")
        found |= dict.fromkeys((value, rest if scheme.isalpha() and rest else value))
    for text in (*texts, *(env or {}).values()):
        for match in KEYS.finditer(text):
            found[match[0][len(match["before"] or "") :]] = None
    return tuple(filter(None, found))


class Quoting(str):
    """A text with a vendor's words in brackets, who may repeat what people said: for the owner, not
    for the log.
    """

    __slots__ = ()


def text_for_log(text: str) -> str:
    """The text; of one that quotes what stands before the brackets."""
    return text.partition(" (")[0] if isinstance(text, Quoting) else text


class Mask:
    """Puts `***` in the place of every secret: `mask(text)`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._spellings: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Hide these, too, from now on."""
        spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
        spellings.update(self._spellings)
        # The longest first: one secret may be the beginning of another.
        patterns = [
            _pattern(spelling)
            for spelling in sorted(spellings, key=lambda text: (-len(text), text))
        ]
        self._spellings = tuple(spellings)
        self._secrets = re.compile("|".join(patterns))

    def __call__(self, text: str) -> str:
        """The text without any of the secrets."""
        # Nearly no text has one, and looking for each is many times faster than the expression.
        for spelling in self._spellings:
            if spelling in text:
                return self._secrets.sub(MASK, text)
        return text


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, inside JSON, a Python literal, a url, CSV, and a page of Jinja2's."""
    if len(secret) < SHORTEST:
        return
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield secret.replace('"', '""')
    yield escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")


def _pattern(secret: str) -> str:
    pattern = re.escape(secret)
    return pattern if len(secret) >= LONG else rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"
