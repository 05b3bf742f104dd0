"""Reading a page: `pages.py` keeps what was read, `client.py` fetches, `sites.py` has a row per
particular site, `tool.py` is the tool.
"""

from tools.read_page.tool import read_page

__all__ = ["read_page"]
