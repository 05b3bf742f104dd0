"""The journal: the entries a store takes, in the order they happened, and what it gives back.

An entry is a fact, never changed by a later one of the same kind; a state (of a send, a run) is the
last entry about it. Ids are ours: a turn's is its run's trace id, a send's is made for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from bot.domain.actions import SendMessage
from bot.domain.chat import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from bot.domain.events import Conversation, MessageReceived
from bot.domain.run import Stop


@dataclass(frozen=True, slots=True)
class MessageObserved:
    """A message was taken. `overheard` is one that did not wake the bot: the next turn there will
    read it.

    It also opens the message's place in the de-duplication window.
    """

    message: MessageReceived
    overheard: bool
    type: Literal["message_observed"] = "message_observed"


@dataclass(frozen=True, slots=True)
class MessageOverheard:
    """A message taken as a possible wake turned out to be for somebody else: the next turn will
    read it.
    """

    message: MessageReceived
    type: Literal["message_overheard"] = "message_overheard"


@dataclass(frozen=True, slots=True)
class MessageErased:
    """A message was recalled: its words are to be gone."""

    conversation: Conversation
    message_id: str
    type: Literal["message_erased"] = "message_erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOpened:
    """A turn begins: the question and all that was overheard are now its own, rendered as `user`.

    `retry_of` is the turn that was interrupted before anybody heard anything; such a turn has that
    one's words, reads nothing that was said since, and is never retried again.
    """

    turn_id: str
    question: MessageReceived
    user: UserMessage
    at: float
    retry_of: str = ""
    type: Literal["turn_opened"] = "turn_opened"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken:
    """The model answered a step: its words or calls, what they cost. `seconds` the request took.

    `model` is who answered, as model@host, or the vendor's name of the model where that is not
    known.
    """

    turn_id: str
    step: int
    message: AssistantMessage
    finish: str
    model: str
    seconds: float
    at: float
    usage: Usage | None = None
    type: Literal["step_taken"] = "step_taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool call begins; whatever happens now, it is never executed again by itself."""

    turn_id: str
    step: int
    call_id: str
    name: str
    type: Literal["call_started"] = "call_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    """The one result of a call. `code` is ok or a TOOL_... word."""

    turn_id: str
    step: int
    result: ToolMessage
    code: str
    seconds: float
    type: Literal["call_finished"] = "call_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnClosed:
    """A turn ended: `round` is the user message and all that followed, as the next prompt will
    repeat it.

    An empty round is one that the history does not keep.
    """

    turn_id: str
    stop: Stop
    round: tuple[Message, ...]
    usage: Usage
    steps: int
    at: float
    error: str = ""
    type: Literal["turn_closed"] = "turn_closed"


@dataclass(frozen=True, slots=True)
class WindowMoved:
    """The prompt of a conversation now begins with this turn's round; older ones stay stored, but
    are not read.

    Of the rounds up to `light_to`'s, in the order in which they ended, long tool results are told
    shortened (of none where it is empty). `summary` stands for what was said before the first turn.
    """

    conversation: Conversation
    first_turn: str
    light_to: str = ""
    summary: str = ""
    type: Literal["window_moved"] = "window_moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAdded:
    """A model was asked beside the steps of a turn, on its behalf and after its end: to summarise
    what came before.
    """

    turn_id: str
    model: str
    usage: Usage
    at: float
    type: Literal["usage_added"] = "usage_added"


class SendState(StrEnum):
    """The state of a send. QUEUED has never been on the wire; SENDING may have been."""

    QUEUED = "queued"
    SENDING = "sending"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendQueued:
    """Something is to be said. `final` is an answer to the question rather than a word in between.

    `state` is SENDING where it goes on the wire at once.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState = SendState.QUEUED
    type: Literal["send_queued"] = "send_queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendChanged:
    """A send has another state now."""

    send_id: str
    state: SendState
    at: float
    message_id: str = ""
    reason: str = ""
    type: Literal["send_changed"] = "send_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSuspended:
    """A run waits for somebody's word: `state` is all it needs to go on, as JSON; after `expires`
    it is denied.
    """

    turn_id: str
    state: str
    expires: float
    type: Literal["run_suspended"] = "run_suspended"


@dataclass(frozen=True, slots=True)
class RunResumed:
    """A suspended run goes on (or was denied, or has expired): it is not waiting any more."""

    turn_id: str
    type: Literal["run_resumed"] = "run_resumed"


Entry: TypeAlias = (
    MessageObserved
    | MessageOverheard
    | MessageErased
    | TurnOpened
    | StepTaken
    | CallStarted
    | CallFinished
    | TurnClosed
    | WindowMoved
    | UsageAdded
    | SendQueued
    | SendChanged
    | RunSuspended
    | RunResumed
)


# --- what comes back ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """A stored round and the turn it belongs to."""

    turn_id: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory of a conversation: its rounds from the window's first on, and what was overheard
    since the last.

    The first `light` of the rounds are told with shortened tool results; `summary` is of what came
    before them.
    """

    rounds: tuple[Round, ...] = ()
    overheard: tuple[MessageReceived, ...] = ()
    light: int = 0
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSend:
    """A send as it was left. `whole` is False where its media were too large to keep: it cannot be
    sent any more.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """A turn that was never closed.

    `messages` are its steps, each followed by the results there are (calls that were under way have
    none). `started` names the tools whose calls began, `sends` is what was said: in this turn or in
    another one of the same question, which may have been taken up more than once. `handled`: such
    another turn has come to its end. `recalled`: the question was taken back.
    """

    turn_id: str
    question: MessageReceived
    user: UserMessage
    at: float
    retry_of: str
    messages: tuple[Message, ...]
    started: tuple[str, ...]
    sends: tuple[StoredSend, ...]
    handled: bool = False
    recalled: bool = False


@dataclass(frozen=True, slots=True)
class Spoken:
    """The words of a turn so far, and for whom: its question, its sends as they stand.

    `is_over`: it has come to its end.
    """

    question: MessageReceived
    sends: tuple[StoredSend, ...]
    is_over: bool


@dataclass(frozen=True, slots=True)
class Suspended:
    """A run that waits, as it was put down, with the question and the rendered user message of its
    turn.

    `said` are the words of what the turn sent to its own conversation and that may have been read,
    in order (empty for a message of media alone).
    """

    turn_id: str
    state: str
    expires: float
    question: MessageReceived
    user: UserMessage
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recovery:
    """All that a store knows of the time before the start.

    `seen` are the identities of the de-duplication window with their times, `waking` the questions
    of the last minutes that were taken but whose turn had not begun (oldest first), `turns` those
    left open (suspended ones not among them), `sends` the unfinished ones whatever their turn
    (QUEUED, SENDING, and UNKNOWN for a day), `active` the conversations heard in the last day with
    the time of the last message (latest first). `whole` is False where an earlier journal was
    damaged and set aside within the window: what was taken, and done, is not known then.
    """

    seen: tuple[tuple[tuple[int, str, int, str], float], ...] = ()
    waking: tuple[MessageReceived, ...] = ()
    turns: tuple[OpenTurn, ...] = ()
    sends: tuple[StoredSend, ...] = ()
    suspended: tuple[Suspended, ...] = ()
    active: tuple[tuple[Conversation, float], ...] = ()
    whole: bool = True
