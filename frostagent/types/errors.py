"""The exception tree, grouped by who must act.

BotError
+-- ConfigError              the operator, at start: lists every problem, each with its fix
+-- ModelError               `Failover`, which acts by the kind of failure
|    +-- ModelAuth           the key is wrong or not allowed: no retry, alert the owner
|    +-- ModelBilling        no money or quota left: no retry, next endpoint
|    +-- ModelRateLimited    too many requests: retry after `retry_after`
|    +-- ModelOverloaded     the vendor is busy or broken: back off, then retry
|    +-- ContextOverflow     the prompt is too long (`limit` in tokens if the vendor names it)
|    +-- ContentFiltered     the vendor refused the content: no retry
|    +-- ToolsUnsupported    the model does not support tools
|    +-- ToolUseFailed       the vendor could not parse the model's call: the model may try again
|    +-- ImagesUnsupported   the model cannot read this picture, or any
|    +-- BadHistory          the vendor refused the order or fields of the transcript
|    +-- ModelNotFound       no such model at this endpoint: no retry, alert the owner
|    +-- DaySpent            not sent: others have used up the daily limit
|    +-- ModelRejected       any other refusal of the request: retry in simpler forms
|    +-- ModelTransport      connection or answer broken or unreadable: back off, then retry
|         +-- ModelStalled   no answer began in time: no retry, next endpoint
+-- RunFailed, MustWait, UnfitAnswer   the user of the library (`frostagent/reply.py`)
+-- MediaError               a file or URL that cannot be sent or read (the text says what to do)
+-- ToolError                the model, which reads the text (what was wrong, what to do)
     +-- ToolNotFound
     +-- InvalidArguments    `fields`: one line per wrong field
     +-- ToolDenied          not allowed: by the operator, the owner, a hook, or for this asker
     +-- ToolUnavailable     it cannot run (here, now)
     +-- ToolTimeout
     +-- ToolCancelled       interrupted or never started, because its run ended
     +-- ToolRateLimited     called too often; `seconds` until it may be called again
     +-- ToolFailed          the tool's own failure, in its words; retried if `transient`
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final

from msgspec import Struct

from frostagent.types.messages import Usage


class BotError(Exception):
    """The base of all errors that this project raises on purpose."""


# --- the operator ---------------------------------------------------------------------------------


class Problem(Struct, frozen=True):
    """One configuration problem: the name the user typed, what is wrong, and how to fix it."""

    name: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}. {self.fix}"


class ConfigError(BotError):
    """The configuration cannot be used. `problems` has every problem found, not only the first."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


# --- the model port -------------------------------------------------------------------------------


EMPTY_ANSWER: Final = "empty"  # the code of an answer that arrived complete but empty


class ModelError(BotError):
    """A model request failed. `kind` is a stable word for logs and metrics, `status` the HTTP
    status.

    `took` is the usage of the failed request: an empty `Usage` if the vendor reported none, None if
    nothing was processed and so nothing is charged. If the request was sent twice (`asked_twice`),
    `took` covers only the second. The message quotes at most 500 characters of the vendor's text,
    with keys masked: show it in logs or to the owner, never in a group.
    """

    kind: ClassVar[str] = "model"
    took: Usage | None = None
    asked_twice: bool = False

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class ModelAuth(ModelError):
    """The key is wrong or not allowed. Not retried."""

    kind = "auth"


class ModelBilling(ModelError):
    """No money or quota is left. Not retried; the next endpoint is asked."""

    kind = "billing"


class _ModelBusy(ModelError):
    """A temporary failure. `retry_after` is the vendor's requested wait in seconds, or None."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        retry_after: float | None = None,
    ) -> None:
        self.retry_after = retry_after
        super().__init__(message, status=status, code=code)


class ModelRateLimited(_ModelBusy):
    """Too many requests. Retried after `retry_after` seconds."""

    kind = "rate_limit"


class ModelOverloaded(_ModelBusy):
    """The vendor is busy or broken. Retried with growing waits."""

    kind = "overloaded"


class ContextOverflow(ModelError):
    """The prompt is too long. `limit` is the context window in tokens, if the vendor named it."""

    kind = "context_overflow"

    def __init__(
        self, message: str, *, status: int | None = None, code: str = "", limit: int | None = None
    ) -> None:
        self.limit = limit
        super().__init__(message, status=status, code=code)


class ContentFiltered(ModelError):
    """The vendor refused the content. Retried only without pictures or earlier rounds."""

    kind = "content_filter"


class ToolsUnsupported(ModelError):
    """The model does not support tools."""

    kind = "tools_unsupported"


class ToolUseFailed(ModelError):
    """The vendor could not parse the model's tool call. The model may try again."""

    kind = "tool_use_failed"


class ImagesUnsupported(ModelError):
    """The model cannot read this picture, or any."""

    kind = "images_unsupported"


class BadHistory(ModelError):
    """The vendor refused the order or fields of the transcript. Retried in simpler forms."""

    kind = "bad_history"


class ModelNotFound(ModelError):
    """The endpoint has no such model. Not retried."""

    kind = "model_not_found"


class DaySpent(ModelError):
    """The request was not sent: a daily limit shared with others is used up.

    The engine still asks for a final answer, which this limit does not refuse.
    """

    kind = "day_spent"


class ModelRejected(ModelError):
    """Any other refusal of the request. Retried in simpler forms."""

    kind = "rejected"


class ModelTransport(ModelError):
    """The connection or the answer broke, or was unreadable. Retried with growing waits."""

    kind = "transport"


class ModelStalled(ModelTransport):
    """No answer began in the time that a chat user can be expected to wait."""

    kind = "stalled"
    took = Usage()


# --- media ----------------------------------------------------------------------------------------


class Lack(StrEnum):
    """Why a received attachment cannot be read."""

    EXPIRED = "expired"
    TOO_LARGE = "too_large"
    NO_TEXT = "no_text"
    EMPTY = "empty"
    ENCRYPTED = "encrypted"
    DAMAGED = "damaged"
    SCANNED = "scanned"
    OLD_OFFICE = "old_office"
    NOT_INSTALLED = "not_installed"
    UNREADABLE = "unreadable"
    OUT_OF_REACH = "out_of_reach"


class MediaError(BotError):
    """A file or URL that cannot be sent, or a received attachment that cannot be read.

    The text gives the reason and what to do instead. `took` is as in `ModelError`, if a model was
    asked to transcribe it.
    """

    def __init__(
        self, text: str, lack: Lack = Lack.UNREADABLE, *, took: Usage | None = None
    ) -> None:
        super().__init__(text)
        self.lack = lack
        self.took = took


# --- the model must act ---------------------------------------------------------------------------


ERROR: Final = "error: "
"""Prefix of a failed call's result, as the model reads it. Stored journals contain it."""


class ToolError(BotError):
    """A tool call failed. The model reads the text, which should say what to change.

    `code` is the stable word at the end of the error result, `family` a wider category; `details`
    are for people and logs.
    """

    code: ClassVar[str] = "TOOL_EXECUTION_FAILED"
    family: ClassVar[str] = ""

    @property
    def told(self) -> str:
        """The error result as the model reads it."""
        return f"{ERROR}{self} [{self.code}]"

    @property
    def details(self) -> Mapping[str, Any]:
        return {}


class ToolNotFound(ToolError):
    """The model called a tool that does not exist."""

    code = "TOOL_NOT_FOUND"


class InvalidArguments(ToolError):
    """The arguments do not fit the tool. `fields` has a `path: problem` line for each."""

    code = "TOOL_INVALID_ARGUMENTS"
    family = "TOOL_EXECUTION_FAILED"

    def __init__(self, message: str, *, fields: tuple[str, ...] = ()) -> None:
        self.fields = fields
        super().__init__(message)

    @property
    def details(self) -> Mapping[str, Any]:
        return {"family": self.family, "fields": list(self.fields)}


class ToolDenied(ToolError):
    """The call is not allowed: by the operator, an approver or a hook, or for this asker."""

    code = "TOOL_DENIED"


class ToolUnavailable(ToolError):
    """The tool cannot run here or now."""

    code = "TOOL_UNAVAILABLE"


class ToolTimeout(ToolError):
    """The body took longer than the tool's `timeout`."""

    code = "TOOL_TIMEOUT"


class ToolCancelled(ToolError):
    """The call was interrupted or never started: its run was cancelled, or a hook stopped it."""

    code = "TOOL_CANCELLED"


class ToolRateLimited(ToolError):
    """The tool was called too often. `seconds` is the time until it may be called again."""

    code = "TOOL_RATE_LIMITED"

    def __init__(self, message: str, *, seconds: float = 0.0) -> None:
        self.seconds = seconds
        super().__init__(message)

    @property
    def details(self) -> Mapping[str, Any]:
        return {"seconds": self.seconds}


class ToolFailed(ToolError):
    """Raised by a tool that could not do its work. The text says what the model should do now.

    `transient` means that the same call may succeed in a moment: an idempotent tool is tried once
    more.

        raise ToolFailed("the weather service is down. Say so.", transient=True)
    """

    def __init__(self, message: str, *, transient: bool = False) -> None:
        self.transient = transient
        super().__init__(message)
