"""Reading a page: `pages.py` fetches it and has it read, `passages.py` finds what a question is
about; `tool.py` is the tool.
"""

from tools.read_page.tool import read_page

__all__ = ["read_page"]
