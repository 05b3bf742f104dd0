"""Reading a page: `pages.py` fetches it through `client.py`, by a row of `sites.py` if its site has
one; `passages.py` selects what a question is about, `tool.py` is the tool.
"""

from tools.read_page.tool import read_page

__all__ = ["read_page"]
