"""Paths into JSON, as the table writes them: `latest.release`, `[0]`, `versions[id=26.2].releaseTime`. Pure."""

from __future__ import annotations

import re
from typing import Any

STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[([^=\[\]]+)=([^\[\]]*)\]")


class BadPath(ValueError):
    """A path of the table that cannot be read."""


def pick(data: Any, path: str) -> Any:
    """What lies at the path, None where there is nothing. Raises BadPath.

    A step is a key, an index, or [key=value]: the first item of a list whose key has that value.
    """
    at = 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            raise BadPath(f"{path!r} cannot be read from {path[at:]!r} on")
        at = step.end()
        key, index, wanted_key, wanted = step.groups()
        if key is not None:
            data = data.get(key) if isinstance(data, dict) else None
        elif not isinstance(data, list):
            data = None
        elif index is not None:
            data = data[int(index)] if -len(data) <= int(index) < len(data) else None
        else:
            rows = (item for item in data if isinstance(item, dict) and wanted_key in item)
            data = next((item for item in rows if str(item[wanted_key]) == wanted), None)
    return data
