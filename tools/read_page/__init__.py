"""Reading a page: `pages.py` fetches and parses it, `tool.py` is the tool."""

from tools.read_page.tool import read_page

__all__ = ["read_page"]
