"""The secrets of settings and environment that a log must never show, as plain text to mask."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, SecretStr

from config.sources import ALIASES

PASSWORD = re.compile(r"://[^:/@]*:(?P<up_to_the_first>[^@]*)@(?:(?P<rest>.*)@)?")
OWNED = re.compile(r"([1-9][0-9]{0,17}):(.+)")
NEIGHBOURS = frozenset(
    {
        "NAPCAT_WEBUI_TOKEN",
        "LLBOT_WEBUI_TOKEN",
        "LLBOT_AUTH_TOKEN",
        "GRAFANA_PASSWORD",
        "CLUSTER_PASSWORD",
    }
)
"""Secrets of neighbouring containers in the same .env."""

SECRET_WORDS = ("pass", "secret", "token", "key")


def all_secrets(settings: BaseModel, environ: Mapping[str, str]) -> frozenset[str]:
    """The secrets of the settings, and of proxies in the environment."""
    return secrets_of(settings) | proxy_secrets(environ)


def proxy_secrets(environ: Mapping[str, str]) -> frozenset[str]:
    """The names and passwords in each `*_proxy` of the environment, because libraries quote the
    whole URL in errors.

    As in the URL, decoded, and as sent; also for an unusable URL.
    """
    urls = (url for name, url in environ.items() if name.lower().endswith("_proxy"))
    return frozenset(filter(None, (secret for url in urls for secret in _let_in_by(url))))


def _let_in_by(url: str) -> Iterator[str]:
    before, scheme, rest = url.strip().partition("://")
    pair = (rest if scheme else before).rpartition("@")[0]
    user, _, password = pair.partition(":")
    yield from (pair, unquote(pair), password or user, unquote(password or user))
    yield b64encode(unquote(pair).encode()).decode()


def secrets_of(settings: BaseModel) -> frozenset[str]:
    """All secret texts, including those in lists and objects, and passwords in secret URLs."""
    return frozenset(
        secret
        for name in type(settings).model_fields
        for secret in _inside(getattr(settings, name))
    )


def secret_names(settings: BaseModel) -> frozenset[str]:
    """The variables that hold secrets, under every name they may have, subagents' keys too."""
    ours = {
        name
        for name in type(settings).model_fields
        if any(True for _ in _inside(getattr(settings, name)))
    }
    values = [value for value in vars(settings).values() if isinstance(value, Mapping)]
    keys = {
        name for value in values for name, secret in value.items() if isinstance(secret, SecretStr)
    }
    names = {name.upper() for name in ours} | keys
    return frozenset(
        names | {alias for alias, name in ALIASES.items() if name in names} | NEIGHBOURS
    )


def _inside(value: object) -> Iterator[str]:
    match value:
        case SecretStr():
            yield from filter(None, _spelt_out(value.get_secret_value()))
        case BaseModel():
            yield from secrets_of(value)
        case Mapping():
            for item in value.values():
                yield from _inside(item)
        case str() | bytes() | type():
            pass
        case _ if is_dataclass(value):
            for part in fields(value):
                yield from _inside(getattr(value, part.name))
        case Iterable():
            for item in value:
                yield from _inside(item)
        case _:
            pass


def _spelt_out(text: str) -> Iterator[str]:
    """The whole secret, and the parts of a URL that libraries quote."""
    yield text
    if "://" not in text:
        for part in text.split(",") if "," in text else [text]:  # several keys
            yield part
            if owned := OWNED.fullmatch(part):  # account:token
                yield owned[2]
    if found := PASSWORD.search(text):
        # If an @ in a password was not written as %40, the password ends at the last @, or at the
        # first.
        first, rest = found["up_to_the_first"], found["rest"]
        for password in (first, first if rest is None else f"{first}@{rest}"):
            yield from (password, unquote(password))
    for name, secret in parse_qsl(text.partition("?")[2]):
        if "://" in text and any(word in name.lower() for word in SECRET_WORDS):
            yield secret
