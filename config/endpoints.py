"""The endpoints of models in the settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches

from pydantic import SecretStr

from bot.core.language import Bilingual, Language, text_in
from config import values


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model's base URL without a trailing slash, key (may be empty) and name.

    `api_key` may hold several, separated by commas. `dialect` is the variant of the protocol;
    empty: determined by base URL and name. `context` is its window in tokens, 0: as in the table of
    models.
    """

    base_url: str
    api_key: SecretStr
    model: str
    dialect: str = ""
    context: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys; one empty string if there is none."""
        return tuple(self.api_key.get_secret_value().split(","))


def in_order(*endpoints: Endpoint) -> tuple[Endpoint, ...]:
    """Remove duplicates, keeping the first."""
    return tuple(dict.fromkeys(endpoints))


NAMES = tuple(field.name for field in fields(Endpoint))


def fallbacks(value: object) -> list[Endpoint]:
    """Read a JSON list of fallback models with base_url, api_key and model. Raises `Wrong`."""
    entry = '[{"base_url": "https://api.example.com/v1", "api_key": "sk-...", "model": "name"}]'
    fix = Bilingual(f"Write it as {entry}", f"写成 {entry}")
    if isinstance(value, str):
        marks = values.wide_marks(value)
        try:
            value = json.loads(value)
        except ValueError:  # its text may quote part of a key
            raise values.Wrong(
                Bilingual(f"is not good JSON{marks}", f"不是正确的 JSON{marks.zh}"), fix
            ) from None
    if not isinstance(value, list | tuple):
        raise values.Wrong(Bilingual("is not a JSON list", "不是 JSON 列表"), fix)
    return [_fallback(entry, number, fix) for number, entry in enumerate(value, 1)]


def _fallback(entry: object, number: int, fix: Bilingual) -> Endpoint:
    place = Bilingual(f"entry {number}", f"第 {number} 项")
    if not isinstance(entry, Mapping):
        raise values.Wrong(
            Bilingual(f"{place} is not a JSON object", f"{place.zh}不是 JSON 对象"), fix
        )
    for name in entry:
        if name not in NAMES:
            near = get_close_matches(str(name), NAMES, n=1)
            raise values.Wrong(
                Bilingual(
                    f"{place} has {values.shown(name)}, which is not a known name",
                    f"{place.zh}里有 {values.shown(name)}，没有这个名字",
                ),
                Bilingual(f"Did you mean {near[0]}?", f"是不是想写 {near[0]}？") if near else fix,
            )
    texts = {name: entry.get(name, "") for name in ("base_url", "api_key", "model", "dialect")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise values.Wrong(
                Bilingual(f"{place}: {name} is not a text", f"{place.zh}的 {name} 不是文字"), fix
            )
        if not text and name in {"base_url", "model"}:
            raise values.Wrong(Bilingual(f"{place} has no {name}", f"{place.zh}没有写 {name}"), fix)
    try:
        url, key = values.base_url(texts["base_url"]), values.keys(SecretStr(texts["api_key"]))
        context = values.Whole(0, values.MAX_CONTEXT)(entry.get("context", 0))
    except values.Wrong as error:
        raise values.Wrong(
            Bilingual(
                f"{place} {error.what}", f"{place.zh}{text_in(Language.CHINESE, error.what)}"
            ),
            error.fix,
        ) from None
    return Endpoint(url, key, texts["model"], texts["dialect"].lower(), context)
