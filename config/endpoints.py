"""Where models are, as settings say it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches

from pydantic import SecretStr

from config import values


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is: base url without a slash at its end, key (may be empty) and model name.

    `api_key` may be several, separated by commas. `dialect` is how it wants to be spoken to; empty
    where the base url and the model's name tell. `context` is its window in tokens, 0 where the
    table of models is to tell.
    """

    base_url: str
    api_key: SecretStr
    model: str
    dialect: str = ""
    context: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Each key; one empty text where there is none."""
        return tuple(self.api_key.get_secret_value().split(","))


def in_order(*endpoints: Endpoint) -> tuple[Endpoint, ...]:
    """Each of them once, where it stands first."""
    return tuple(dict.fromkeys(endpoints))


NAMES = tuple(field.name for field in fields(Endpoint))


def fallbacks(value: object) -> list[Endpoint]:
    """A JSON list of models to ask where the first does not answer, each with base_url, api_key and
    model. Raises `Wrong`.
    """
    mend = (
        'Write it as [{"base_url": "https://api.example.com/v1", "api_key": "sk-...", '
        '"model": "name"}]'
    )
    if isinstance(value, str):
        marks = values.wide_marks(value)
        try:
            value = json.loads(value)
        except ValueError:  # its words may quote half a key
            raise values.Wrong(f"is not good JSON{marks}", mend) from None
    if not isinstance(value, list | tuple):
        raise values.Wrong("is not a JSON list", mend)
    return [_fallback(entry, f"entry {number}", mend) for number, entry in enumerate(value, 1)]


def _fallback(entry: object, place: str, mend: str) -> Endpoint:
    if not isinstance(entry, Mapping):
        raise values.Wrong(f"{place} is not a JSON object", mend)
    for name in entry:
        if name not in NAMES:
            near = get_close_matches(str(name), NAMES, n=1)
            raise values.Wrong(
                f"{place} has {values.shown(name)}, which is no such name",
                f"Did you mean {near[0]}?" if near else mend,
            )
    texts = {name: entry.get(name, "") for name in ("base_url", "api_key", "model", "dialect")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise values.Wrong(f"{place}: {name} is not a text", mend)
        if not text and name in {"base_url", "model"}:
            raise values.Wrong(f"{place} has no {name}", mend)
    try:
        url, key = values.base_url(texts["base_url"]), values.keys(SecretStr(texts["api_key"]))
        context = values.whole(0, values.MAX_CONTEXT)(entry.get("context", 0))
    except values.Wrong as error:
        raise values.Wrong(f"{place} {error.what}", error.mend) from None
    return Endpoint(url, key, texts["model"], texts["dialect"].lower(), context)
