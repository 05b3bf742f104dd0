"""Whose work is going on: the run that the current task works for, so that each line logged inside
it can say so.
"""

from contextvars import ContextVar
from typing import Final

current_run: Final[ContextVar[str]] = ContextVar("current_run", default="")
"""The run's trace id, empty outside any run. A turn sets it in the task of its lane, a send in that
of its worker.
"""

is_tried: Final[ContextVar[bool]] = ContextVar("is_tried", default=False)
"""Whether what goes on is only tried out, beside the bot."""
