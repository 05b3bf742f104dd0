"""Values into the text of a `.env`, comments and everything else left as they are. Pure.

What is written means the same to everybody who reads the file: our own reader, a shell-like `.env`
reader, and docker compose, which replaces `$NAME` unless the value stands in single quotes.

python-dotenv reads the lines. Its `set_key` does not write them: it puts one name at a time into a
file, drops the blank lines before it and the remark behind it, and switches nothing on that is
commented out.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping

from dotenv.parser import parse_stream

from bot.domain.errors import ConfigError, Problem

PLAIN = re.compile(r"[^\s#'\"`$\\]*")
REMARK = re.compile(r"[^\S\r\n]+#[^\r\n'\"]*$")


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with these values: where a name is set, there; else where it is commented out; else
    at the end.

    An empty value stays out unless the name is set already. Raises ConfigError for a value no
    `.env` can hold.
    """
    left = dict(values)
    text = _fill_set(text, left)
    text = _fill_commented(text, left)
    added = [_line(name, value) for name, value in left.items() if value]
    if added and text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{line}\n" for line in added)


def _fill_set(text: str, left: dict[str, str]) -> str:
    parts = []
    done = set()
    for binding in parse_stream(io.StringIO(text)):
        original = binding.original.string
        if binding.key in left:
            done.add(binding.key)
            before = original[: len(original) - len(original.lstrip())]
            remark = REMARK.search(original.rstrip())
            original = (
                f"{before}{_line(binding.key, left[binding.key])}{remark[0] if remark else ''}\n"
            )
        parts.append(original)
    for name in done:
        del left[name]
    return "".join(parts)


def _fill_commented(text: str, left: dict[str, str]) -> str:
    for name in [name for name, value in left.items() if value]:
        text, changed = re.subn(
            rf"^#[ \t]*{name}=.*$", _line(name, left[name]), text, count=1, flags=re.MULTILINE
        )
        if changed:
            del left[name]
    return text


def holds(value: str) -> bool:
    """Whether a `.env` holds this value the same way for everybody."""
    return bool(PLAIN.fullmatch(value)) or not set(value) & set("'\\\r\n\0")


def _line(name: str, value: str) -> str:
    if PLAIN.fullmatch(value):
        return f"{name}={value}"
    if not holds(value):
        what = (
            "has a quote, a backslash or a line break, which no .env holds the same way for "
            "everybody"
        )
        raise ConfigError(Problem(name, what, "Choose another value"))
    return f"{name}='{value}'"
