"""The journal: the entries a store takes, in order, and the data it returns. Steps and calls are
events of the run (`frostagent/types/runs.py`), as far as they are stored.

An entry is a fact, never changed by a later one of its kind; the state of a send or a run is its
last entry. Ids are ours: a turn's is the trace id of its run, a send's is made for it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, get_args

from msgspec import Struct

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.jobs import JobChanged, JobMade, JobsEnded
from bot.core.memories import MemoriesForgotten, MemoriesUsed, MemoryKept
from bot.core.redaction import OwnWords
from bot.core.segments import File, Forward, Picture, Record, Segment
from frostagent.types.messages import AssistantMessage, Message, Usage, UserMessage
from frostagent.types.runs import StepFinished, Stop, ToolFinished, ToolStarted


class Audited(Struct, frozen=True, kw_only=True, tag="audited"):
    """An action on a page, done or tried: by which `login` (the beginning of its hash; empty if
    there was none), from which address, on which object, and its outcome. For an action by command
    the address is the QQ number of who gave it. `at` is in seconds since 1970.
    """

    at: float
    login: str
    address: str
    action: str
    object: str = ""
    outcome: str = "ok"
    type: ClassVar[Literal["audited"]] = "audited"


class AttachmentNamed(Struct, frozen=True, kw_only=True, tag="thing_named"):
    """A prompt named an attachment by this number, under which `look` may open it. `sender` is its
    sender, 0 inside a forward, where they are unknown. `segment` is None once it was recalled.
    """

    conversation: Conversation
    number: int
    message_id: str
    sender: Sender
    segment: Picture | Record | File | Forward | None
    type: ClassVar[Literal["thing_named"]] = "thing_named"


class PictureDescribed(Struct, frozen=True, tag="picture_described"):
    """A model's description of the picture with this SHA-256, for models that cannot see."""

    digest: str
    words: str
    type: ClassVar[Literal["picture_described"]] = "picture_described"


class UsageReserved(Struct, frozen=True, kw_only=True, tag="usage_reserved"):
    """The usage expected of a request that is about to be made for a turn. A `usage` of the turn
    that was reserved under this `number` replaces it. `step` and `payer` as in UsageAdded.
    """

    turn_id: str
    number: int
    model: str
    usage: Usage
    at: float
    step: int = 1  # lines written ahead by older versions have none
    payer: tuple[Conversation, int] | None = None
    type: ClassVar[Literal["usage_reserved"]] = "usage_reserved"


class UsageReleased(Struct, frozen=True, kw_only=True, tag="usage_released"):
    """The request of this reservation used nothing."""

    turn_id: str
    number: int
    type: ClassVar[Literal["usage_released"]] = "usage_released"


class RequestPurpose(StrEnum):
    """The purpose of a request for a turn other than to answer it. LATER: made after the turn had
    closed, for a purpose that was not recorded.
    """

    FACTS = "facts"
    SUMMARY = "summary"
    LATER = "later"


ERRAND: Final = "errand-"
"""Begins the `turn_id` of usage that belongs to no turn (`bot/budget/errands.py`)."""


class RequestMade(Struct, frozen=True, kw_only=True, tag="request_made"):
    """A request for a turn that is not one of its steps has ended: it failed, or a subagent or an
    errand made it. `outcome` is that of its `Attempt`, with the HTTP status if any
    (`overloaded:500`). `run` and `step` are the subagent's, empty and 0 if unknown; or `run` is the
    `RequestPurpose`. `message` is a subagent's answer. `seconds` is the duration, `at` the end, in
    seconds since 1970.
    """

    turn_id: str
    model: str
    outcome: str
    seconds: float
    at: float
    run: str = ""
    step: int = 0
    message: AssistantMessage | None = None
    type: ClassVar[Literal["request_made"]] = "request_made"


class DayStanding(Struct, frozen=True):
    """The day's usage before the reservation made `at` that time for `who`: of all bots of a
    cluster, in total and for that person, in tokens and US dollars; 0 for a sum that is not
    counted.
    """

    turn_id: str
    number: int
    who: int
    at: float
    all: tuple[float, float]
    theirs: tuple[float, float]


Found: TypeAlias = tuple[DayStanding, ...]


class DayKeeper(Protocol):
    """Keeps the daily limits that the bots of a cluster share."""

    @property
    def counts(self) -> tuple[bool, bool]:
        """Whether there is a total limit, and whether people have limits. Called from a thread."""
        ...

    def find(self, found: Found, /) -> None:
        """Learn the sums before reservations that are being written."""
        ...


class Judged(Struct, frozen=True, kw_only=True, tag="judged"):
    """The verdict on a message for the bot, with its `reason`; the last one about a message counts.
    If it does not wake, `until` is when the reason ends, in seconds since 1970, 0 if unknown.
    `weak` is a wake that may not have been meant.
    """

    conversation: Conversation
    message_id: str
    sender: int
    wakes: bool
    reason: str
    weak: bool = False
    until: float = 0.0
    type: ClassVar[Literal["judged"]] = "judged"


class MessageObserved(Struct, frozen=True, tag="message_observed"):
    """A message was received, with its verdict if it was for the bot. An `overheard` one did not
    wake it: the next turn there will read it. Also opens the message's place in the deduplication
    window.
    """

    message: MessageReceived
    overheard: bool
    judged: Judged | None = None
    type: ClassVar[Literal["message_observed"]] = "message_observed"


class MessageOverheard(Struct, frozen=True, tag="message_overheard"):
    """A message taken as a possible wake was not for the bot: the next turn will read it."""

    message: MessageReceived
    type: ClassVar[Literal["message_overheard"]] = "message_overheard"


class MessageTakenUp(Struct, frozen=True, tag="message_taken_up"):
    """An overheard message belongs to a question whose turn has not begun, or is `gone` with it."""

    message: MessageReceived
    gone: bool = False
    type: ClassVar[Literal["message_taken_up"]] = "message_taken_up"


class MessageErased(Struct, frozen=True, tag="message_erased"):
    """A message was recalled: its words are to be erased."""

    conversation: Conversation
    message_id: str
    type: ClassVar[Literal["message_erased"]] = "message_erased"


class TurnOpened(Struct, frozen=True, kw_only=True, tag="turn_opened"):
    """A turn begins with the question and all overheard messages, rendered as `user`. `lines` are
    further messages of its asker that belong to the question, oldest first: they were not
    overheard, and no other turn reads them. `uncalled`: no one asked for the turn. `retry_of` is
    the turn that was interrupted before any of its words were read; the retry has its words, reads
    no later messages, and is never retried itself.
    """

    turn_id: str
    question: MessageReceived
    user: UserMessage
    at: float
    retry_of: str = ""
    lines: tuple[MessageReceived, ...] = ()
    uncalled: bool = False
    type: ClassVar[Literal["turn_opened"]] = "turn_opened"


class TurnSteered(Struct, frozen=True, kw_only=True, tag="turn_steered"):
    """A further message of its asker joins a running turn, as `user`: the model reads it next.
    `step` is the step it followed (0: it stands in the question), whose words are no longer sent.
    """

    turn_id: str
    message: MessageReceived
    user: UserMessage
    step: int
    type: ClassVar[Literal["turn_steered"]] = "turn_steered"


class Undelivered(StrEnum):
    """Why an answer is not known to have arrived; replaces `stop` in the outcome of a turn.
    NOT_DELIVERED: at least a part was refused or lost. UNCONFIRMED: QQ has not confirmed it yet, or
    never will; the rows of its sends have the later outcome.
    """

    NOT_DELIVERED = "not_delivered"
    UNCONFIRMED = "unconfirmed"


class Unfinished(StrEnum):
    """The state of a turn that has not ended. WAITING: its run waits for an owner's decision."""

    RUNNING = "running"
    WAITING = "waiting"


Ending: TypeAlias = Stop | Undelivered | Unfinished
"""The outcome of a turn in lists and counts; each turn has exactly one."""

ENDINGS: tuple[Ending, ...] = (*Stop, *Undelivered, *Unfinished)


class TurnClosed(Struct, frozen=True, kw_only=True, tag="turn_closed"):
    """A turn ended: `round` is the user message and all that followed, as later prompts repeat it.
    `stop` is how its run ended, `undelivered` why its answer is not known to have arrived. An empty
    round is not part of the history. If the turn is `unread`, the next one reads what it, or the
    one it retried, had overheard.
    """

    turn_id: str
    stop: Stop
    round: tuple[Message, ...]
    usage: Usage
    steps: int
    at: float
    error: str = ""
    unread: bool = False
    undelivered: Undelivered | None = None
    type: ClassVar[Literal["turn_closed"]] = "turn_closed"

    @property
    def outcome(self) -> str:
        """How it ended for its asker."""
        return str(self.undelivered or self.stop)


class WindowMoved(Struct, frozen=True, tag="window_moved"):
    """The prompt of a conversation now begins with this turn's round; older ones stay stored, but
    are not read. Rounds up to `light_to`'s, in the order in which they ended, have long tool
    results shortened (none if it is empty). `summary` covers what was said before the first turn.
    """

    conversation: Conversation
    first_turn: str
    light_to: str = ""
    summary: str = ""
    type: ClassVar[Literal["window_moved"]] = "window_moved"


class ConversationReset(Struct, frozen=True, tag="conversation_reset"):
    """A conversation starts afresh: earlier messages are not repeated in prompts."""

    conversation: Conversation
    type: ClassVar[Literal["conversation_reset"]] = "conversation_reset"


class PersonaChosen(Struct, frozen=True, tag="persona_chosen"):
    """The key of a conversation's persona; empty: as in the files."""

    conversation: Conversation
    persona: str
    type: ClassVar[Literal["persona_chosen"]] = "persona_chosen"


class PlaceSet(Struct, frozen=True, tag="place_set"):
    """A value set for a conversation under a name; empty: the default."""

    conversation: Conversation
    name: str
    value: str
    type: ClassVar[Literal["place_set"]] = "place_set"


class UsageAdded(Struct, frozen=True, kw_only=True, tag="usage_added"):
    """Usage of a turn outside its steps, or for a `step` that did not result from it. Before the
    turn is open, `payer` is the conversation and person (0: none).
    """

    turn_id: str
    model: str
    usage: Usage
    at: float
    step: int = 0
    payer: tuple[Conversation, int] | None = None
    type: ClassVar[Literal["usage_added"]] = "usage_added"


class MemberNumbered(Struct, frozen=True, kw_only=True, tag="member_numbered"):
    """A person's number in a conversation, which is permanent, and the name last seen."""

    conversation: Conversation
    number: int
    user_id: int
    name: str = ""
    type: ClassVar[Literal["member_numbered"]] = "member_numbered"


class SendState(StrEnum):
    """The state of a send. QUEUED and DRAFT were never on the wire; SENDING may have been. A draft
    was PUBLISHED, or first REWORDED, by the person in its reason.
    """

    QUEUED = "queued"
    SENDING = "sending"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"
    DROPPED = "dropped"
    DRAFT = "draft"
    PUBLISHED = "published"
    REWORDED = "reworded"


class SendQueued(Struct, frozen=True, kw_only=True, tag="send_queued"):
    """A message is to be sent. `final` marks the answer to the question, rather than an interim
    message. `state` is SENDING if it goes on the wire at once.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState = SendState.QUEUED
    type: ClassVar[Literal["send_queued"]] = "send_queued"


class SendChanged(Struct, frozen=True, kw_only=True, tag="send_changed"):
    send_id: str
    state: SendState
    at: float
    message_id: str = ""
    reason: str = ""
    type: ClassVar[Literal["send_changed"]] = "send_changed"


class RunSuspended(Struct, frozen=True, kw_only=True, tag="run_suspended"):
    """A run waits for a decision: `state` is all it needs to go on, as JSON; after `expires` it is
    denied.
    """

    turn_id: str
    state: str
    expires: float
    type: ClassVar[Literal["run_suspended"]] = "run_suspended"


class RunResumed(Struct, frozen=True, tag="run_resumed"):
    """A suspended run no longer waits: it goes on, was denied, or has expired."""

    turn_id: str
    type: ClassVar[Literal["run_resumed"]] = "run_resumed"


Entry: TypeAlias = (
    MessageObserved
    | MessageOverheard
    | MessageTakenUp
    | MessageErased
    | Judged
    | TurnOpened
    | TurnSteered
    | StepFinished
    | ToolStarted
    | ToolFinished
    | TurnClosed
    | WindowMoved
    | ConversationReset
    | PersonaChosen
    | PlaceSet
    | UsageAdded
    | UsageReserved
    | UsageReleased
    | RequestMade
    | Audited
    | MemberNumbered
    | AttachmentNamed
    | MemoryKept
    | MemoriesUsed
    | MemoriesForgotten
    | PictureDescribed
    | SendQueued
    | SendChanged
    | RunSuspended
    | RunResumed
    | JobMade
    | JobChanged
    | JobsEnded
)

ENTRIES: Final = frozenset(get_args(Entry))


# --- data that a store returns --------------------------------------------------------------------


class Round(Struct, frozen=True):
    turn_id: str
    messages: tuple[Message, ...]


class KnownLine(Struct, frozen=True):
    """A message received in a conversation or sent there. `time` is the server's, or ours for the
    bot's own words; `segments` are None once it was recalled or erased.
    """

    message_id: str
    sender: int
    time: float
    segments: tuple[Segment, ...] | None


class LogQuery(Struct, frozen=True, kw_only=True):
    """A query for the latest messages there from `since` to `until` (seconds since 1970), by this
    `sender` (0: any), with all of these words in its segments, at most `limit`.
    """

    conversation: Conversation
    since: float = 0.0
    until: float = 1e12
    sender: int = 0
    words: tuple[str, ...] = ()
    limit: int = 400


class Remembered(Struct, frozen=True):
    """The memory of a conversation: its rounds from the first of the window on, and the messages
    overheard since the last. The first `light` rounds have shortened tool results; `summary` covers
    what came before. `missed` is the number of earlier overheard messages that are left out.
    `members` are all numbers ever given there; an erased person has user id 0. `things` are the
    latest named attachments, oldest first.
    """

    rounds: tuple[Round, ...] = ()
    overheard: tuple[MessageReceived, ...] = ()
    missed: int = 0
    light: int = 0
    summary: str = ""
    members: tuple[MemberNumbered, ...] = ()
    things: tuple[AttachmentNamed, ...] = ()


class StoredSend(Struct, frozen=True, kw_only=True):
    """A send as it was left; it must not be sent if its media were too large to store it `whole`.
    `reason` is why it was refused.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState
    whole: bool = True
    reason: str = ""


class OpenTurn(Struct, frozen=True, kw_only=True):
    """A turn that was never closed. `messages` are its steps, each followed by the results there
    are (calls under way have none) and by messages that steered it then; `user` contains earlier
    ones. `started` names the tools whose calls began. `sends` are those of this turn or of another
    one of the same question, which may have been taken up more than once. `handled`: such another
    turn has ended. `recalled`: the question was recalled. `lines` are further messages of its
    asker. `uncounted`: its first request may have been made without a row of usage.
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
    lines: tuple[MessageReceived, ...] = ()
    uncounted: bool = False


class Spoken(Struct, frozen=True):
    """The words of a turn so far: its question, and its sends in their present state. Once it is
    over, `ended` is its outcome for its asker then, `outcome` the one that its sends give it now.
    `uncalled`: no one asked for it.
    """

    question: MessageReceived
    sends: tuple[StoredSend, ...]
    is_over: bool
    ended: str = ""
    outcome: str = ""
    uncalled: bool = False


class Suspended(Struct, frozen=True):
    """A suspended run as it was stored, with the question and the user message of its turn. `said`
    are the texts that the turn sent to its own conversation and that may have been read, in order
    (empty for media alone). `own` are its messages anywhere that QQ has confirmed, with their ids,
    except recalled ones.
    """

    turn_id: str
    state: str
    expires: float
    question: MessageReceived
    user: UserMessage
    said: tuple[str, ...] = ()
    own: tuple[tuple[Conversation, str, OwnWords], ...] = ()


class Recovery(Struct, frozen=True):
    """All that a store knows from before the start.

    `seen` are the identities of the deduplication window with their times; `waking` the questions
    of the last minutes whose turns had not begun (oldest first); `turns` the open ones (except
    suspended); `sends` the unfinished ones of any turn (QUEUED, SENDING, and UNKNOWN for a day),
    and those REFUSED in the last two minutes, of turns that had ended before QQ confirmed their
    answers; `active` the conversations of the last day with the time of their last message (latest
    first). `whole` is False if within the window a damaged journal was set aside or a backup
    restored: what was received and done is unknown then. `asked` are the questions of the last hour
    (oldest first): the conversation, the asker, and the time; 0 if it called no bot. `restored` is
    when a backup was last restored (seconds since 1970; 0 if never): the outcome of anything older
    is unknown.
    """

    seen: tuple[tuple[tuple[int, str, int, str], float], ...] = ()
    waking: tuple[MessageReceived, ...] = ()
    turns: tuple[OpenTurn, ...] = ()
    sends: tuple[StoredSend, ...] = ()
    suspended: tuple[Suspended, ...] = ()
    active: tuple[tuple[Conversation, float], ...] = ()
    whole: bool = True
    asked: tuple[tuple[Conversation, int, float], ...] = ()
    restored: float = 0.0
