"""Masks secrets in text, however they are encoded there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus

MASK: Final = "***"
LONG: Final = 8
"""Characters. Shorter secrets are masked only as whole words: "local" is part of "localhost"."""

SHORTEST: Final = 4
"""Characters. Shorter secrets look like ordinary text and can be guessed."""

KEYS: Final = re.compile(
    r"""(?P<before> ://(?=[^/@\s]+@) | \bBearer[ ]
        | (?:key|token|secret|passwd|password|pwd|signature)= )[^\s&"',;@]+
    | \b(?:sk|ak|pk|rk|gsk|xai)[-_](?=[\w-]*\d)[\w-]{8,} | \bAIza[\w-]{20,} | \beyJ[\w.-]{20,}""",
    re.IGNORECASE | re.VERBOSE,
)
"""What any secret looks like: in a URL, after a telling name, or a known kind of key."""


def one_line(text: str, longest: int) -> str:
    """Text from outside on one line, without likely secrets, cut to `longest` characters."""
    text = KEYS.sub(lambda found: f"{found['before'] or ''}{MASK}", " ".join(text.split()))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


PLAIN: Final = re.compile(
    r"(?:\.{0,2}|~|[A-Za-z]:)[/\\].* | [A-Za-z][\w+.-]*://[^@?]* | \d{1,5} | utf-?8"
    r" | true | false | yes | no | on | off | none | debug | info | warning | error | production"
    r" | development | test | stdio | https? | (?:application|text)/[\w.+-]+(?:;.*)? | \*/\*",
    re.IGNORECASE | re.VERBOSE,
)
"""Values of variables or headers that are not secrets: paths, addresses, switches, types."""

SAYS_SECRET: Final = re.compile(
    r"pass|secret|token|key|auth|credential|cookie|session", re.IGNORECASE
)


def server_secrets(
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    texts: Iterable[str] = (),
) -> tuple[str, ...]:
    """The secrets in a server's environment, headers and `texts`: every value that is not obviously
    plain or whose name suggests a secret, the token after `Bearer`, and what looks like a secret.
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
    """A text that quotes a vendor in brackets: for the owner, not for the log."""

    __slots__ = ()


def text_for_log(text: str) -> str:
    """The text; for a `Quoting`, only the part before the brackets."""
    return text.partition(" (")[0] if isinstance(text, Quoting) else text


class Mask:
    """Replaces every secret with `***`: `mask(text)`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._spellings: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these secrets as well, from now on."""
        spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
        spellings.update(self._spellings)
        # The longest first: one secret may be a prefix of another.
        patterns = [
            _pattern(spelling)
            for spelling in sorted(spellings, key=lambda text: (-len(text), text))
        ]
        self._spellings = tuple(spellings)
        self._secrets = re.compile("|".join(patterns))

    def __call__(self, text: str) -> str:
        # Few texts contain secrets, and testing for each is many times faster than the expression.
        for spelling in self._spellings:
            if spelling in text:
                return self._secrets.sub(MASK, text)
        return text


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, and as in JSON, a Python literal, a URL, CSV, and HTML from Jinja2."""
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
