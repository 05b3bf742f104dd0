"""The one exception tree, split by who must act.

BotError
 +-- ConfigError              the operator, at start: every problem at once, each with its mend
 +-- ModelError               nobody: the model failed; `Failover` acts by the kind
 |    +-- ModelAuth           the key is wrong or not allowed: no retry, tell the owner
 |    +-- ModelBilling        no money or quota left: no retry, next endpoint
 |    +-- ModelRateLimited    too many requests: wait `retry_after`, then again
 |    +-- ModelOverloaded     the vendor is busy or broken: back off, then again
 |    +-- ContextOverflow     the prompt is too long (`limit` in tokens when the vendor says it)
 |    +-- ContentFiltered     the vendor refused the content: no retry
 |    +-- ToolsUnsupported    this model cannot take tools
 |    +-- ToolUseFailed       the vendor could not read the model's call: the model may try again
 |    +-- ImagesUnsupported   this model cannot take (this) picture
 |    +-- BadHistory          the vendor refused the order or fields of the transcript
 |    +-- ModelNotFound       no such model at this endpoint: no retry, tell the owner
 |    +-- DaySpent            nobody was asked: others have taken what was left of the day
 |    +-- ModelRejected       any other refusal of the request: again in plainer forms
 |    +-- ModelTransport      connection or answer broken or unreadable: back off, then again
 |         +-- ModelStalled   no answer began in time: not again, next endpoint
 +-- RunFailed, MustWait, UnfitAnswer   whoever uses the library (`frostagent/reply.py`)
 +-- MediaError               a path or url that may not, or cannot, be sent (it says what to do)
 +-- ToolError                the model: it reads the text (what was wrong, what to do)
      +-- ToolNotFound
      +-- InvalidArguments    `fields`: one line per wrong field
      +-- ToolDenied          not allowed: by operator, owner, a hook, or for this asker
      +-- ToolUnavailable     it cannot run (here, now)
      +-- ToolTimeout
      +-- ToolCancelled       broken off, or never begun, since its run was ended: nobody's failure
      +-- ToolRateLimited     called too often; `seconds` until it may be called again
      +-- ToolFailed          the tool's own failure, in its words; `transient` may be tried again
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final

from msgspec import Struct

from frostagent.types.messages import Usage


class BotError(Exception):
    """Anything this project raises on purpose."""


# --- the operator ---------------------------------------------------------------------------------


class Problem(Struct, frozen=True):
    """One thing wrong with the configuration: the name a person typed, what is wrong, how to mend
    it.
    """

    name: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}. {self.mend}"


class ConfigError(BotError):
    """The configuration cannot be used; carries every problem found, never only the first."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


# --- the model port -------------------------------------------------------------------------------


EMPTY_ANSWER: Final = "empty"  # the code of an answer that came whole, with nothing in it


class ModelError(BotError):
    """A model request failed; `kind` is a stable word for logs and metrics, `status` the HTTP
    status or None. `took` is what it took all the same, nothing of it known where the vendor did
    not say; None where nothing was read, and nobody charges for it. Where it was `asked_twice`,
    `took` is of the second time alone.

    The message is at most 500 characters of the vendor's own words with keys masked: for logs and
    the owner, never for a group.
    """

    kind: ClassVar[str] = "model"
    took: Usage | None = None
    asked_twice: bool = False

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class ModelAuth(ModelError):
    kind = "auth"


class ModelBilling(ModelError):
    kind = "billing"


class _ModelBusy(ModelError):
    """Comes right by waiting; `retry_after` is what the vendor asked for, in seconds, or None."""

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
    kind = "rate_limit"


class ModelOverloaded(_ModelBusy):
    kind = "overloaded"


class ContextOverflow(ModelError):
    """The prompt does not fit; `limit` is the window in tokens if the vendor named it."""

    kind = "context_overflow"

    def __init__(
        self, message: str, *, status: int | None = None, code: str = "", limit: int | None = None
    ) -> None:
        self.limit = limit
        super().__init__(message, status=status, code=code)


class ContentFiltered(ModelError):
    kind = "content_filter"


class ToolsUnsupported(ModelError):
    kind = "tools_unsupported"


class ToolUseFailed(ModelError):
    kind = "tool_use_failed"


class ImagesUnsupported(ModelError):
    kind = "images_unsupported"


class BadHistory(ModelError):
    kind = "bad_history"


class ModelNotFound(ModelError):
    kind = "model_not_found"


class DaySpent(ModelError):
    """A limit of a day that others share was reached before the request was made; what it is for
    has its last words.
    """

    kind = "day_spent"


class ModelRejected(ModelError):
    kind = "rejected"


class ModelTransport(ModelError):
    kind = "transport"


class ModelStalled(ModelTransport):
    """No answer began for longer than somebody in a chat can be let wait."""

    kind = "stalled"
    took = Usage()


# --- media ----------------------------------------------------------------------------------------


class Lack(StrEnum):
    """Why something that people sent cannot be had."""

    EXPIRED = "expired"
    TOO_LARGE = "too_large"
    NO_TEXT = "no_text"
    UNREADABLE = "unreadable"
    OUT_OF_REACH = "out_of_reach"


class MediaError(BotError):
    """A file or url that may not or cannot be sent, or a medium of others that cannot be had; the
    text says why and what to do instead. `took` is as that of a ModelError, where a model was to
    hear it.
    """

    def __init__(
        self, text: str, lack: Lack = Lack.UNREADABLE, *, took: Usage | None = None
    ) -> None:
        super().__init__(text)
        self.lack = lack
        self.took = took


# --- the model must act ---------------------------------------------------------------------------


ERROR: Final = "error: "
"""How begins what a model is told of a call that failed; journals are full of it."""


class ToolError(BotError):
    """A tool call that did not work; the text goes to the model and says what to change.

    `code` is the stable word that ends the error result (seeds/004: argument validation codes),
    `family` the wider one it belongs to; `details` are for people and logs.
    """

    code: ClassVar[str] = "TOOL_EXECUTION_FAILED"
    family: ClassVar[str] = ""

    @property
    def told(self) -> str:
        """What the model is told of it."""
        return f"{ERROR}{self} [{self.code}]"

    @property
    def details(self) -> Mapping[str, Any]:
        """Facts about the failure besides its text."""
        return {}


class ToolNotFound(ToolError):
    code = "TOOL_NOT_FOUND"


class InvalidArguments(ToolError):
    """The arguments do not fit the tool; `fields` has one `path: problem` line for each wrong
    field.
    """

    code = "TOOL_INVALID_ARGUMENTS"
    family = "TOOL_EXECUTION_FAILED"

    def __init__(self, message: str, *, fields: tuple[str, ...] = ()) -> None:
        self.fields = fields
        super().__init__(message)

    @property
    def details(self) -> Mapping[str, Any]:
        return {"family": self.family, "fields": list(self.fields)}


class ToolDenied(ToolError):
    code = "TOOL_DENIED"


class ToolUnavailable(ToolError):
    code = "TOOL_UNAVAILABLE"


class ToolTimeout(ToolError):
    code = "TOOL_TIMEOUT"


class ToolCancelled(ToolError):
    """The call was broken off, or never begun: its run was cancelled, or a hook stopped it."""

    code = "TOOL_CANCELLED"


class ToolRateLimited(ToolError):
    """The tool was called too often; `seconds` is how long it takes until it may be called
    again.
    """

    code = "TOOL_RATE_LIMITED"

    def __init__(self, message: str, *, seconds: float = 0.0) -> None:
        self.seconds = seconds
        super().__init__(message)

    @property
    def details(self) -> Mapping[str, Any]:
        return {"seconds": self.seconds}


class ToolFailed(ToolError):
    """Raised by a tool that could not do its work; the text says what the model should do now.

    `transient` says that the same may well work in a moment: a tool that is idempotent is then
    tried once more.
    """

    def __init__(self, message: str, *, transient: bool = False) -> None:
        self.transient = transient
        super().__init__(message)
