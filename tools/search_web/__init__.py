"""Web search: one row per service in `services.py`, asked by `search.py`; `tool.py` is the tool."""

from tools.search_web.tool import search_web

__all__ = ["search_web"]
