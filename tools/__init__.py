"""The tools: one module (or package) each, found by being here. A module's `Tool` objects are its
tools.

`bot/runtime/tool_discovery.py` looks here and into the operator's own folder, and reports what is
broken; `discover` is for those who want what the bot itself comes with, and raises.
"""

from __future__ import annotations

import importlib
import pkgutil

from frostagent.types.tools import Tool


def discover() -> tuple[Tool, ...]:
    """Every tool of every module in this folder, sorted by name; not of what begins with `_`."""
    found: dict[int, Tool] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Tool):
                found[id(value)] = value
    return tuple(sorted(found.values(), key=lambda tool: tool.name))
