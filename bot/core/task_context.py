"""The run that the current task works for, so that each log line can name it."""

from contextvars import ContextVar
from typing import Final

from bot.core.conversation import Conversation

current_run: Final[ContextVar[str]] = ContextVar("current_run", default="")
"""The run's trace id, empty outside any run. A turn sets it in the task of its lane, a send in that
of its worker.
"""

current_errand: Final[ContextVar[str]] = ContextVar("current_errand", default="")
"""The `RequestPurpose` of the current task if it asks a model for the run's turn, but not to answer
it; else empty.
"""

early_payer: Final[ContextVar[tuple[Conversation, int] | None]] = ContextVar(
    "early_payer", default=None
)
"""The conversation and the asker (0: none) who pay for requests of a turn that is not open yet."""

is_trial: Final[ContextVar[bool]] = ContextVar("is_tried", default=False)
"""Whether the current task belongs to a trial, beside the bot."""
