"""Whose work is going on: the run that the current task works for, so that each line logged inside
it can say so.
"""

from contextvars import ContextVar
from typing import Final

from bot.core.conversation import Conversation

current_run: Final[ContextVar[str]] = ContextVar("current_run", default="")
"""The run's trace id, empty outside any run. A turn sets it in the task of its lane, a send in that
of its worker.
"""

current_errand: Final[ContextVar[str]] = ContextVar("current_errand", default="")
"""The `RequestPurpose` of the current task, where it asks a model for the run's turn but not to
answer it; empty for the answer.
"""

early_payer: Final[ContextVar[tuple[Conversation, int] | None]] = ContextVar(
    "early_payer", default=None
)
"""Where a turn is that is not open yet, and who asks (0: nobody): what is asked for it by then is
theirs.
"""

is_trial: Final[ContextVar[bool]] = ContextVar("is_tried", default=False)
"""Whether what goes on is only tried out, beside the bot."""
