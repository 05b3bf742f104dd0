"""What the engine needs from outside, as protocols. Implementations need not inherit from them.

Each method names the errors it raises; any other error is a bug of the implementation.
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
    """The source of time, and of every wait. All values are in seconds.

    `now` is Unix time; `monotonic` never goes back.
    """

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """Random values: short ids that people can type, and jitter in [0, 1)."""

    def trace(self) -> str: ...

    def jitter(self) -> float: ...


class ChatModel(Protocol):
    """A model that answers one request. Any class with these members fits:

        class Echo:
            name = "echo"

            async def complete(self, request):
                return Completion(AssistantMessage(request.messages[-1].text), FinishReason.STOP)

    `name` is for logs.
    """

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> Completion:
        """The whole answer. Raises ModelError."""
        ...


class Speaker(Protocol):
    """Sends messages during a run, on behalf of its asker."""

    async def say(
        self, segments: tuple[SendSegment, ...], *, session: str = "", allowed: bool = False
    ) -> tuple[Receipt, ...]:
        """Send the segments now, in order; returns one receipt for each message sent.

        `session` is another conversation, or empty for the run's own. `allowed` means that this
        very call was approved (`ToolContext.allowed`). A medium that cannot share a message gets
        its own. Raises ToolDenied (the asker may not write there), InvalidArguments (no such
        session), Suspend (another session, or a mention of everyone, needs an approval).
        """
        ...


class Media(Protocol):
    """Turns a path or URL from a tool into an attachment. The only place where both are checked."""

    async def attach(
        self, kind: MediaKind, *, path: str = "", url: str = "", name: str = ""
    ) -> Attachment:
        """If both are given, the path is used. Raises MediaError, which says what to do instead."""
        ...


class Subagents(Protocol):
    """Named subagents that a run may ask."""

    @property
    def names(self) -> tuple[str, ...]: ...

    async def ask(self, context: ToolContext, name: str, content: str) -> ToolResult:
        """The subagent's answer to the call of this context, with no more authority than what it
        read.

        An answer that was cut short ends with a note. Raises InvalidArguments for an unknown name,
        and ToolFailed with a text for the model.
        """
        ...


class Approver(Protocol):
    """Decides whether a call may be run."""

    async def approve(self, request: ApprovalRequest) -> Allow | Deny | Pending:
        """The decision, or `Pending`. May take as long as the run; an exception denies."""
        ...


class Observer(Protocol):
    """Receives run events in order. `notice` must not raise and must not block."""

    def notice(self, event: RunEvent) -> None: ...


class ShadowMode(Protocol):
    """Knows which conversations run in shadow mode, and records what would have been done there."""

    def holds_back(self, conversation: str) -> bool:
        """Whether the bot must not act there unless an owner publishes a draft."""
        ...

    def note(self, turn_id: str, call: str) -> None:
        """Report to the owners a call that was not run."""
        ...
