"""Answers on the control socket: one line of JSON. The bot does not know the language of the asking
terminal, so the Chinese version of each bilingual text is sent, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bot.core.language import Bilingual

CHINESE: Final = "chinese"
"""The key of a map from English texts to their Chinese versions; not part of the answer itself."""


def encode(answer: Mapping[str, Any]) -> bytes:
    """The answer as one line, with its newline."""
    both = {str(text): text.zh for text in _texts(answer) if isinstance(text, Bilingual)}
    data = {**answer, CHINESE: both} if both else answer
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def decode(line: bytes) -> object:
    """The answer in a line, with its bilingual texts restored. Raises ValueError."""
    data = json.loads(line)
    both = data.pop(CHINESE, None) if isinstance(data, dict) else None
    if not isinstance(both, dict):
        return data
    return _changed(data, lambda text: Bilingual(text, both[text]) if text in both else text)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for one in value.values():
                yield from _texts(one)
        case list() | tuple():
            for one in value:
                yield from _texts(one)
        case _:
            pass


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {name: _changed(one, change) for name, one in value.items()}
        case list():
            return [_changed(one, change) for one in value]
        case _:
            return value
