"""Web search: `services.py` has a row per service, `search.py` asks them, `tool.py` is the tool."""

from tools.search_web.tool import search_web

__all__ = ["search_web"]
