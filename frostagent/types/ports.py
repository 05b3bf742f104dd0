"""What the engine needs from outside, as protocols: implementations fit, they do not inherit.

Each method says what it raises; anything else that escapes an implementation is a bug in it.
"""

from __future__ import annotations

from typing import Protocol

from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.results import ToolResult
from frostagent.types.runs import RunEvent
from frostagent.types.speech import Attachment, MediaKind, Receipt, SendSegment
from frostagent.types.suspension import Allow, ApprovalRequest, Deny, Pending
from frostagent.types.tools import ToolContext


class Clock(Protocol):
    """Time. `now` is seconds since 1970, `monotonic` never goes back; every wait of ours goes
    through `sleep`.
    """

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """Randomness: short ids people can type, and jitter (a number in [0, 1))."""

    def trace(self) -> str: ...

    def jitter(self) -> float: ...


class ChatModel(Protocol):
    """A model that answers one request. `name` is for logs."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer, whole and finished. Raises ModelError."""
        ...


class Speaker(Protocol):
    """Says something in the middle of a run, on behalf of its asker."""

    async def say(
        self, segments: tuple[SendSegment, ...], *, session: str = "", allowed: bool = False
    ) -> tuple[Receipt, ...]:
        """Put the segments on the wire now, in order; one receipt for each message it took.

        `session` is another conversation, empty for that of the run. `allowed` says that somebody
        has allowed this very call (`ToolContext.allowed`). A medium that must stand alone becomes a
        message of its own. Raises ToolDenied (a session the asker may
        not write to), InvalidArguments (a session that is none), Suspend (another session, or
        everybody mentioned, which somebody must allow first).
        """
        ...


class Media(Protocol):
    """Turns a path or url a tool names into something that may be sent; the one place where both
    are checked.
    """

    async def attach(
        self, kind: MediaKind, *, path: str = "", url: str = "", name: str = ""
    ) -> Attachment:
        """The path wins when both are given. Raises MediaError (says what to do instead)."""
        ...


class Subagents(Protocol):
    """Named helpers a run may ask."""

    @property
    def names(self) -> tuple[str, ...]: ...

    async def ask(self, context: ToolContext, name: str, content: str) -> ToolResult:
        """The helper's answer in words, on behalf of the call with this context, with no more
        authority than what it read has; a note is behind one cut short.

        Raises ToolFailed (told for the model), InvalidArguments (no such name).
        """
        ...


class Approver(Protocol):
    """Asks somebody whether a call may be run."""

    async def approve(self, request: ApprovalRequest) -> Allow | Deny | Pending:
        """The answer, or that it comes later. May take as long as the run may; whatever it raises
        is a no.
        """
        ...


class Observer(Protocol):
    """Receives run events in order; must not raise and must not block."""

    def notice(self, event: RunEvent) -> None: ...


class ShadowMode(Protocol):
    """Knows where the bot is a shadow, and what it would have done there."""

    def holds_back(self, conversation: str) -> bool:
        """Whether nothing is said or done there but what an owner publishes."""
        ...

    def note(self, turn_id: str, call: str) -> None:
        """A call of a turn was not run: the owners are told."""
        ...
