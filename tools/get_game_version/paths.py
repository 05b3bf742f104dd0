"""Paths into JSON, as the table writes them: `latest.release`, `[0]`,
`versions[id=26.2].releaseTime`. Pure.
"""

from __future__ import annotations

import re
from typing import Any

STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[max ([^\[\]]+)\]|\[([^=\[\]]+)=([^\[\]]*)\]")


class BadPath(ValueError):
    """A path of the table that cannot be read."""


def pick(data: Any, path: str) -> Any:
    """The value at the path, None where there is nothing. Raises BadPath.

    A step is a key; an index (into an object: into its values, as they are written); [key=value],
    the first item of a list whose key has that value; or [max key], the item whose key is the
    greatest number.
    """
    at = 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            raise BadPath(f"{path!r} cannot be read from {path[at:]!r} on")
        at = step.end()
        key, index, greatest, wanted_key, wanted = step.groups()
        if key is not None:
            data = data.get(key) if isinstance(data, dict) else None
        elif index is not None:
            data = _at(data, int(index))
        elif greatest is not None:
            rows = [item for item in _rows(data) if _is_number(item.get(greatest))]
            data = max(rows, key=lambda item: item[greatest], default=None)
        else:
            rows = [item for item in _rows(data) if wanted_key in item]
            data = next((item for item in rows if _say(item[wanted_key]) == wanted), None)
    return data


def _at(data: Any, index: int) -> Any:
    items = list(data.values()) if isinstance(data, dict) else data
    return items[index] if isinstance(items, list) and -len(items) <= index < len(items) else None


def _rows(data: Any) -> list[dict[str, Any]]:
    return [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _say(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
