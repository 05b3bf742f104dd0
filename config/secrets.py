"""What a log must never show: every secret among the settings, as the bare texts to be masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, SecretStr

PASSWORD = re.compile(r"://[^:/@]*:(?P<up_to_the_first>[^@]*)@(?:(?P<rest>.*)@)?")
SECRET_WORDS = ("pass", "secret", "token", "key")


def secrets_of(settings: BaseModel) -> frozenset[str]:
    """The texts of all secrets, also of those in lists and objects; of a secret url, the password in it as well."""
    return frozenset(secret for name in type(settings).model_fields for secret in _inside(getattr(settings, name)))


def _inside(value: object) -> Iterator[str]:
    match value:
        case SecretStr():
            yield from filter(None, _spelt_out(value.get_secret_value()))
        case BaseModel():
            yield from secrets_of(value)
        case Mapping():
            for item in value.values():
                yield from _inside(item)
        case str() | bytes():
            pass
        case Iterable():
            for item in value:
                yield from _inside(item)
        case _:
            pass


def _spelt_out(text: str) -> Iterator[str]:
    """The secret as a whole, and the parts of a url that libraries quote alone in what they say."""
    yield text
    if found := PASSWORD.search(text):
        # Whoever forgot to write an @ as %40 has a password that ends at the last one, or at the first.
        first, rest = found["up_to_the_first"], found["rest"]
        for password in (first, first if rest is None else f"{first}@{rest}"):
            yield from (password, unquote(password))
    for name, secret in parse_qsl(text.partition("?")[2]):
        if "://" in text and any(word in name.lower() for word in SECRET_WORDS):
            yield secret
