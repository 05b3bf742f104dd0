"""The tools, one module or package each. All `Tool` objects of a module in this folder are found.

`bot/runtime/tool_discovery.py` also searches the operator's folder, and reports broken modules.
`discover` returns only the built-in tools, and raises.
"""

from __future__ import annotations

import importlib
import pkgutil

from frostagent.types.tools import Tool


def discover() -> tuple[Tool, ...]:
    """Every tool of this folder, sorted by name, except in modules that begin with `_`."""
    found: dict[int, Tool] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Tool):
                found[id(value)] = value
    return tuple(sorted(found.values(), key=lambda tool: tool.name))
