"""The journal: the entries a store takes, in the order they happened, and what it gives back.

Steps and calls are events of the run (`frostagent/types/runs.py`), as far as they are kept.
An entry is a fact, never changed by a later one of the same kind; a state (of a send, a run) is the
last entry about it. Ids are ours: a turn's is its run's trace id, a send's is made for it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, get_args

from msgspec import Struct

from bot.core.actions import SendMessage
from bot.core.events import MessageReceived, Sender
from bot.core.jobs import JobChanged, JobMade, JobsEnded
from bot.core.memories import MemoriesForgotten, MemoriesUsed, MemoryKept
from bot.core.redaction import OwnWords
from bot.core.segments import File, Forward, Picture, Record, Segment
from frostagent.types.conversation import Conversation
from frostagent.types.messages import AssistantMessage, Message, Usage, UserMessage
from frostagent.types.runs import StepFinished, Stop, ToolFinished, ToolStarted


class Audited(Struct, frozen=True, kw_only=True, tag="audited"):
    """Something was done or tried there: by which `login` (the beginning of its hash, empty where
    there was none), from which address, to what, and how it ended. `at` is in seconds since 1970.
    """

    at: float
    login: str
    address: str
    action: str
    object: str = ""
    outcome: str = "ok"
    type: ClassVar[Literal["audited"]] = "audited"


class AttachmentNamed(Struct, frozen=True, kw_only=True, tag="thing_named"):
    """A prompt showed something that it only names, by this number: `look` may open it.

    `sender` is whose it is; of what is inside a forward nobody knows that, and it is 0. Without a
    segment it was taken back since.
    """

    conversation: Conversation
    number: int
    message_id: str
    sender: Sender
    segment: Picture | Record | File | Forward | None
    type: ClassVar[Literal["thing_named"]] = "thing_named"


class PictureDescribed(Struct, frozen=True, tag="picture_described"):
    """A model that sees has said what is in the picture of this SHA-256, for those that do not."""

    digest: str
    words: str
    type: ClassVar[Literal["picture_described"]] = "picture_described"


class UsageReserved(Struct, frozen=True, kw_only=True, tag="usage_reserved"):
    """A model is about to be asked on behalf of a turn, and will take about so much: a `usage` of
    that turn that was reserved under this `number` takes its place. `step` and `payer` as in
    UsageAdded.
    """

    turn_id: str
    number: int
    model: str
    usage: Usage
    at: float
    step: int = 1  # lines that older versions wrote ahead say none
    payer: tuple[Conversation, int] | None = None
    type: ClassVar[Literal["usage_reserved"]] = "usage_reserved"


class UsageReleased(Struct, frozen=True, kw_only=True, tag="usage_released"):
    """A request of a turn for which that was reserved took nothing."""

    turn_id: str
    number: int
    type: ClassVar[Literal["usage_released"]] = "usage_released"


class RequestPurpose(StrEnum):
    """The purpose of a request that is made for a turn, but not to answer it. LATER: it was made
    after the turn had closed, and nobody wrote down what for.
    """

    FACTS = "facts"
    SUMMARY = "summary"
    LATER = "later"


class RequestMade(Struct, frozen=True, kw_only=True, tag="request_made"):
    """A request for a turn ended that is no step of it: it failed, a subagent made it, or it was
    made on an errand.

    `outcome` is that of its `Attempt`, with the HTTP status where there was one (`overloaded:500`).
    `run` and `step` are the subagent's, empty and 0 where nobody knows whose it was; `run` is the
    `RequestPurpose` where it was one. `message` is a subagent's answer. `seconds` is how long it
    took, `at` when it ended, in seconds since 1970.
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
    """How a day stood before a reservation `at` that time for `who`: what all bots of a cluster had
    taken of it, in all and for them, in tokens and US dollars; nothing where nobody adds that up.
    """

    turn_id: str
    number: int
    who: int
    at: float
    all: tuple[float, float]
    theirs: tuple[float, float]


Found: TypeAlias = tuple[DayStanding, ...]


class DayKeeper(Protocol):
    """Keeps the limits of a day that the bots of a cluster share."""

    @property
    def counts(self) -> tuple[bool, bool]:
        """Whether all together have a limit, and whether people have any; asked in a thread."""
        ...

    def find(self, found: Found, /) -> None:
        """Hear what reservations found that are written down now."""
        ...


class Judged(Struct, frozen=True, kw_only=True, tag="judged"):
    """A message that was for the bot, what became of that and for which `reason`; the last one
    about a message counts. `wakes` is False where it is only heard, `until` then in seconds since
    1970, 0 where nobody knows; `weak` is a wake that may have been none.
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
    """A message was taken, `judged` where it was for the bot. `overheard` did not wake it: the next
    turn there will read it. It also opens the message's place in the de-duplication window.
    """

    message: MessageReceived
    overheard: bool
    judged: Judged | None = None
    type: ClassVar[Literal["message_observed"]] = "message_observed"


class MessageOverheard(Struct, frozen=True, tag="message_overheard"):
    """A message taken as a possible wake was for somebody else: the next turn will read it."""

    message: MessageReceived
    type: ClassVar[Literal["message_overheard"]] = "message_overheard"


class MessageTakenUp(Struct, frozen=True, tag="message_taken_up"):
    """An overheard message belongs to a question whose turn has not begun, or is `gone` with it."""

    message: MessageReceived
    gone: bool = False
    type: ClassVar[Literal["message_taken_up"]] = "message_taken_up"


class MessageErased(Struct, frozen=True, tag="message_erased"):
    """A message was recalled: its words are to be gone."""

    conversation: Conversation
    message_id: str
    type: ClassVar[Literal["message_erased"]] = "message_erased"


class TurnOpened(Struct, frozen=True, kw_only=True, tag="turn_opened"):
    """A turn begins: the question and all that was overheard are now its own, rendered as `user`.

    `lines` are what its asker said beside the question and what belongs to it, oldest first: they
    were not overheard, and no other turn reads them. Nobody asked for one that is `uncalled`.
    `retry_of` is the turn that was interrupted before anybody heard anything; such a turn has that
    one's words, reads nothing that was said since, and is never retried again.
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
    """A line of its asker is part of a turn that goes on, as `user`: the model reads it next.
    `step` is the one it was said after (at 0 it stands in the question), whose words are not said
    any more.
    """

    turn_id: str
    message: MessageReceived
    user: UserMessage
    step: int
    type: ClassVar[Literal["turn_steered"]] = "turn_steered"


class Undelivered(StrEnum):
    """Why an answer that a run gave is not known to have arrived. Stands in the place of `stop`
    wherever the outcome of a turn is told.

    NOT_DELIVERED: at least a part of it was refused or lost. UNCONFIRMED: QQ has not confirmed it
    yet, or never will; the rows of its sends say what became of it since.
    """

    NOT_DELIVERED = "not_delivered"
    UNCONFIRMED = "unconfirmed"


class Unfinished(StrEnum):
    """How a turn stands that has not ended. WAITING: its run waits for an owner's word."""

    RUNNING = "running"
    WAITING = "waiting"


Ending: TypeAlias = Stop | Undelivered | Unfinished
"""What became of a turn, as lists and counts tell it: each turn has exactly one."""

ENDINGS: tuple[Ending, ...] = (*Stop, *Undelivered, *Unfinished)


class TurnClosed(Struct, frozen=True, kw_only=True, tag="turn_closed"):
    """A turn ended: `round` is the user message and all that followed, as later prompts repeat it.
    `stop` is how its run ended, `undelivered` why its answer is not known to have arrived.

    An empty round is one that the history does not keep; what an `unread` turn, or the one it
    repeats, had overheard is for the next one.
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
    are not read.

    Of the rounds up to `light_to`'s, in the order in which they ended, long tool results are told
    shortened (of none where it is empty). `summary` stands for what was said before the first turn.
    """

    conversation: Conversation
    first_turn: str
    light_to: str = ""
    summary: str = ""
    type: ClassVar[Literal["window_moved"]] = "window_moved"


class ConversationReset(Struct, frozen=True, tag="conversation_reset"):
    """A conversation begins anew: nothing that was said in it until now is told again."""

    conversation: Conversation
    type: ClassVar[Literal["conversation_reset"]] = "conversation_reset"


class PersonaChosen(Struct, frozen=True, tag="persona_chosen"):
    """Who the bot is in a conversation, by a persona's key; empty: as the files say."""

    conversation: Conversation
    persona: str
    type: ClassVar[Literal["persona_chosen"]] = "persona_chosen"


class PlaceSet(Struct, frozen=True, tag="place_set"):
    """Somebody set something for a conversation by command, under a name; empty: as usual."""

    conversation: Conversation
    name: str
    value: str
    type: ClassVar[Literal["place_set"]] = "place_set"


class UsageAdded(Struct, frozen=True, kw_only=True, tag="usage_added"):
    """A model was asked for a turn beside its steps, or for a `step` that did not come of it:
    before the turn is open, for a `payer` (0: nobody) there.
    """

    turn_id: str
    model: str
    usage: Usage
    at: float
    step: int = 0
    payer: tuple[Conversation, int] | None = None
    type: ClassVar[Literal["usage_added"]] = "usage_added"


class MemberNumbered(Struct, frozen=True, kw_only=True, tag="member_numbered"):
    """A person has a number in a conversation, for good, and was last seen there by this name."""

    conversation: Conversation
    number: int
    user_id: int
    name: str = ""
    type: ClassVar[Literal["member_numbered"]] = "member_numbered"


class SendState(StrEnum):
    """The state of a send. QUEUED was never on the wire, nor was a DRAFT; SENDING may have been. A
    draft was PUBLISHED, or REWORDED first, by whom its reason says."""

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
    """Something is to be said. `final` is an answer to the question rather than a word in between.
    `state` is SENDING where it goes on the wire at once.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState = SendState.QUEUED
    type: ClassVar[Literal["send_queued"]] = "send_queued"


class SendChanged(Struct, frozen=True, kw_only=True, tag="send_changed"):
    """A send has another state now."""

    send_id: str
    state: SendState
    at: float
    message_id: str = ""
    reason: str = ""
    type: ClassVar[Literal["send_changed"]] = "send_changed"


class RunSuspended(Struct, frozen=True, kw_only=True, tag="run_suspended"):
    """A run waits for somebody's word: `state` is all it needs to go on, as JSON; after `expires`
    it is denied.
    """

    turn_id: str
    state: str
    expires: float
    type: ClassVar[Literal["run_suspended"]] = "run_suspended"


class RunResumed(Struct, frozen=True, tag="run_resumed"):
    """A suspended run goes on (or was denied, or has expired): it is not waiting any more."""

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
"""The kinds of entries."""


# --- what comes back ------------------------------------------------------------------------------


class Round(Struct, frozen=True):
    """A stored round and the turn it belongs to."""

    turn_id: str
    messages: tuple[Message, ...]


class KnownLine(Struct, frozen=True):
    """A message that was taken somewhere, or sent there. `time` is the server's, or of the bot's
    own words ours; `segments` are None once it was recalled or forgotten.
    """

    message_id: str
    sender: int
    time: float
    segments: tuple[Segment, ...] | None


class LogQuery(Struct, frozen=True, kw_only=True):
    """Asks for what was said there from `since` to `until` (seconds since 1970), by this `sender`
    (0: anybody), with all of these words in its segments; the latest of them, so many.
    """

    conversation: Conversation
    since: float = 0.0
    until: float = 1e12
    sender: int = 0
    words: tuple[str, ...] = ()
    limit: int = 400


class Remembered(Struct, frozen=True):
    """The memory of a conversation: its rounds from the window's first on, and what was overheard
    since the last.

    The first `light` of the rounds are told with shortened tool results; `summary` is of what came
    before them. `missed` is how many were overheard before those that are told. `members` are all
    who ever had a number there; of who was forgotten the person is 0. `things` are the latest that
    got a name there, oldest first.
    """

    rounds: tuple[Round, ...] = ()
    overheard: tuple[MessageReceived, ...] = ()
    missed: int = 0
    light: int = 0
    summary: str = ""
    members: tuple[MemberNumbered, ...] = ()
    things: tuple[AttachmentNamed, ...] = ()


class StoredSend(Struct, frozen=True, kw_only=True):
    """A send as it was left; not to be sent where its media were too large to keep it `whole`.
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
    are (calls under way have none) and by what steered it then; `user` has what did so before.
    `started` names the tools whose calls began, `sends` is what was said: in this turn or in
    another one of the same question, which may have been taken up more than once. `handled`: such
    another turn has ended. `recalled`: the question was taken back. `lines` are what its asker said
    beside it. `uncounted`: its first request may have been made, and no row says what that took.
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
    """The words of a turn so far, and for whom: its question, its sends as they stand. Once it has
    come to its end, its outcome for its asker as it was then (`ended`) and as its sends make it by
    now. Nobody asked for one that is `uncalled`.
    """

    question: MessageReceived
    sends: tuple[StoredSend, ...]
    is_over: bool
    ended: str = ""
    outcome: str = ""
    uncalled: bool = False


class Suspended(Struct, frozen=True):
    """A run that waits, as it was put down, with the question and the user message of its turn.

    `said` are the words of what the turn sent to its own conversation and that may have been read,
    in order (empty for a message of media alone). `own` are its messages anywhere that QQ has
    confirmed, by their ids; without those that were recalled.
    """

    turn_id: str
    state: str
    expires: float
    question: MessageReceived
    user: UserMessage
    said: tuple[str, ...] = ()
    own: tuple[tuple[Conversation, str, OwnWords], ...] = ()


class Recovery(Struct, frozen=True):
    """All that a store knows of the time before the start.

    `seen` are the identities of the de-duplication window with their times, `waking` the questions
    of the last minutes that were taken but whose turn had not begun (oldest first), `turns` those
    left open (suspended ones not among them), `sends` the unfinished ones whatever their turn
    (QUEUED, SENDING, and UNKNOWN for a day) and what was REFUSED in the last two minutes of turns
    that had ended before QQ confirmed their answers, `active` the conversations heard in the last
    day with the time of the last message (latest first). `whole` is False where an earlier journal
    was damaged and set aside within the window, or a backup restored: what was taken, and done, is
    not known then. `asked` are the questions of the last hour (oldest first): where, whose, and
    when each was taken; 0 if it called nobody. `restored` is when a backup was put back last
    (seconds, 1970; 0 if never): what became of that which is older nobody knows.
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
