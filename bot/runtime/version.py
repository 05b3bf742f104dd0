from __future__ import annotations

import importlib.metadata
from functools import cache


@cache
def version() -> str:
    """The installed version, or "dev" in a bare checkout."""
    try:
        return importlib.metadata.version("frostagent")
    except importlib.metadata.PackageNotFoundError:
        return "dev"


def user_agent(contact: str = "") -> str:
    """The User-Agent of web requests; `contact` is how to reach the operator."""
    return f"FrostAgent/{version()}" + (f" (+{contact})" if contact else "")
