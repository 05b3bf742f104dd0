"""The data that the operator's console shows, and the ports it reads them from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from bot.core.conversation import Conversation
from bot.core.day_tally import Tally
from bot.core.journal import RequestPurpose, Round
from bot.core.query_results import DayCounts, Ignored, Story, UsageSum
from frostagent.types.messages import Usage
from frostagent.types.runs import Led


class News(Struct, frozen=True):
    """A change of the turn or message of that name; numbers increase."""

    number: int
    name: str


class Feed(Protocol):
    @property
    def number(self) -> int:
        """The number of the latest change."""
        ...

    async def after(self, number: int, *, within: float) -> tuple[News, ...]:
        """Later changes; waits up to `within` seconds for one, and returns an empty tuple if there
        is none.
        """
        ...


TELLING = 3  # fewer calls say nothing of a tool's health


class ToolState(Struct, frozen=True, kw_only=True):
    """The current state of a tool: the `reason` it cannot be used (empty if it can), who may call
    it, and `elsewhere` who in groups that differ. `quota` is calls per seconds, if limited. `unfit`
    is the reason a page may not call it, a key of `tools.unfit`; if empty, `parameters` is the JSON
    schema of its arguments.
    """

    name: str
    about: str
    reason: str
    permission: str
    audience: str
    elsewhere: tuple[tuple[int, str], ...] = ()
    quota: tuple[int, float] | None = None
    unfit: str = "effects"
    parameters: Mapping[str, Any] = field(default_factory=dict)


class ServerState(Struct, frozen=True, kw_only=True):
    """The current state of an MCP server: the `reason` it is not connected (empty if it is), its
    last `error`, the number of its tools and their estimated tokens in a request, and a line for
    each `skipped` tool; `changed` are tools whose description
    is not the first one.
    """

    name: str
    trust: str
    audience: str
    groups: tuple[int, ...]
    reason: str
    error: str
    tools: int
    tokens: int
    skipped: tuple[str, ...]
    calls: int
    failures: int
    changed: tuple[str, ...] = ()


class WebState(Struct, frozen=True, kw_only=True):
    """Searching and reading today. `service` is the name of the search service; if `unsearched` is
    not empty, it says why there is no search. `price` is dollars for 1,000 searches, `rests` the
    seconds that the service is left alone after a refusal. `unread` says why no page can be read.
    """

    service: str
    unsearched: str
    unread: str
    price: float
    rests: float
    searches: Tally
    pages: Tally


class ToolAnswer(Struct, frozen=True):
    """The result of a call from a page, as a model would read it. `code` is `ok` or the code of the
    failure.
    """

    text: str
    code: str
    seconds: float
    pictures: int = 0


class ToolUse(Struct, frozen=True):
    """The recent calls of a tool: how many, how many `failed`, and the `code` and the `error` (as
    the model read it) of the last failure. `slow` is the time in seconds that nearly all calls
    keep. `lately` is how many of the last few completed calls failed, and their number. Invariant:
    `calls` = `fine` + `failed` + `going_on`.
    """

    name: str
    calls: int
    failed: int
    code: str
    slow: float
    going_on: int = 0
    lately: tuple[int, int] = (0, 0)
    error: str = ""

    @property
    def fine(self) -> int:
        return self.calls - self.failed - self.going_on

    @property
    def health(self) -> Literal["good", "warn", "bad"]:
        """`bad` if the last few calls all failed, `warn` if half of them did, from TELLING calls
        on.
        """
        failed, made = self.lately
        if made < TELLING or 2 * failed < made:
            return "good"
        return "bad" if failed == made else "warn"


class Finding(Struct, frozen=True):
    """A finding of the doctor. `verdict` is `ok`, `warning` or `problem`; `fix` says how to fix
    it, and is empty if all is well. In English, and in Chinese if available.
    """

    check: str
    verdict: str
    said: str
    fix: str
    said_zh: str = ""
    fix_zh: str = ""

    def told(self, chinese: bool) -> str:
        return (chinese and self.said_zh) or self.said

    def advice(self, chinese: bool) -> str:
        return (chinese and self.fix_zh) or self.fix


Doctor: TypeAlias = Callable[[Callable[[str, Usage], None]], Awaitable[Sequence[Finding]]]
"""Checks all that a running bot needs, by its settings alone; the callback receives the usage of
each model.
"""


UNANSWERED = "unanswered"
"""The outcome of a message for the bot that reached no model."""

ROWS = 50


class TurnQuery(Struct, frozen=True, kw_only=True):
    """A query for the latest turns and unanswered messages; empty and 0 match any. `outcome` is an
    `Ending` or UNANSWERED, times are in seconds since 1970, `cost` is the least cost of a turn in
    US dollars. Only rows before the ids `turn` and `verdict` are returned.
    """

    where: str = ""
    asker: int = 0
    outcome: str = ""
    tool: str = ""
    model: str = ""
    since: float = 0.0
    until: float = 0.0
    cost: float = 0.0
    turn: int = 0
    verdict: int = 0


class TurnRow(Struct, frozen=True, kw_only=True):
    """A question and its outcome, an `Ending` or UNANSWERED. `turn_id` is empty if no model was
    asked; `reason` says why. `at` is in seconds since 1970; `seconds` is the duration, None while
    it runs. `refusal` is the outcome of the last failed request of a failed turn, such as
    `overloaded:500`.
    """

    turn_id: str
    message_id: str
    where: Conversation
    group: str
    asker: int
    name: str
    text: str
    at: float
    outcome: str
    seconds: float | None = None
    reason: str = ""
    error: str = ""
    refusal: str = ""
    usage: UsageSum = UsageSum()


class TurnRows(Struct, frozen=True):
    """Rows, the latest first. `next` is the turn and verdict at which the next page begins, None at
    the end. A page may have few rows although more follow.
    """

    rows: tuple[TurnRow, ...]
    next: tuple[int, int] | None


class Span(Struct, frozen=True, kw_only=True):
    """An activity of a turn, from `begin` (seconds since 1970), for `seconds`. `kind` is `wait`,
    `model`, `failed` (a request), `tool` or `send`; `run` is the subagent's, or the
    `RequestPurpose`; empty for the turn's own. `outcome` is how it ended, `text` the words, `asked`
    the arguments of a call.
    """

    kind: str
    name: str
    begin: float
    seconds: float
    outcome: str = ""
    text: str = ""
    asked: str = ""
    thought: str = ""
    usage: UsageSum | None = None
    run: str = ""

    @property
    def is_errand(self) -> bool:
        """Whether it was done for the turn, but not to answer it."""
        return self.run in {*RequestPurpose}


class Trace(Struct, frozen=True, kw_only=True):
    """A turn in full: its row, its story as `/why` tells it, its own part of the prompt, its
    activities.
    """

    row: TurnRow
    story: Story
    prompt: str
    spans: tuple[Span, ...]


class ChatRow(Struct, frozen=True, kw_only=True):
    """A conversation and its last message; `text` is empty if that was recalled."""

    where: Conversation
    group: str
    name: str
    text: str
    at: float


class ChatRows(Struct, frozen=True):
    """Conversations, the most recent first; `next` is where the next page begins, if any."""

    rows: tuple[ChatRow, ...]
    next: int | None


class ChatLine(Struct, frozen=True, kw_only=True):
    """A message, and why it woke the bot or did not. `state` is that of a send of the bot with an
    unknown or bad outcome; `begins` marks the question at which the prompt begins.
    """

    message_id: str
    at: float
    sender: int
    name: str
    text: str
    is_own: bool = False
    is_gone: bool = False
    begins: bool = False
    reason: str = ""
    wakes: bool = False
    state: str = ""
    turn_id: str = ""


class Unanswered(Struct, frozen=True):
    """An unanswered message: its story, and the `line`, None if it is no longer stored."""

    story: Story
    line: ChatLine | None = None


class Fact(Struct, frozen=True):
    """A remembered fact about a person (0: the conversation), since `made`."""

    subject: int
    text: str
    visibility: str
    made: float


class ScheduledJob(Struct, frozen=True, kw_only=True):
    """A reminder, or a task, of a conversation: when it comes next (seconds since 1970) and how
    often, as people read it; its `state` is that of `bot/core/jobs.py`.
    """

    number: int
    maker: int
    words: str
    due: float
    rule: str
    kind: str
    state: str
    fired: int
    missed: int


JobMark: TypeAlias = tuple[float, int]
"""The `wake` and the row of a job: pages of jobs follow each other in this order."""

FIRST_JOB: Final[JobMark] = (0.0, 0)


class LastFiring(Struct, frozen=True, kw_only=True):
    """The latest message of a job and its `SendState`, or its latest turn and its `Ending`, without
    a text. `at` is in seconds since 1970.
    """

    at: float
    outcome: str
    text: str = ""
    turn_id: str = ""


class JobRow(Struct, frozen=True, kw_only=True):
    """A job that has not ended, with the fields of `Job`, the last known names of its group and its
    `maker`, and what came of it last, if that is still stored.
    """

    where: Conversation
    number: int
    maker: int
    words: str
    kind: str
    rule: str
    zone: str
    due: float
    state: str
    fired: int
    missed: int
    group: str = ""
    name: str = ""
    last: LastFiring | None = None


class JobRows(Struct, frozen=True):
    """Jobs, the next one first; `next` is where the next page begins, if any."""

    rows: tuple[JobRow, ...]
    next: JobMark | None = None


class GreetingState(Struct, frozen=True, kw_only=True):
    """What is said if someone `joined` or `left` a group: a template, `run` if the model writes it,
    empty if nothing. `source` is `set` for a command or a page, `file`, or empty; `at` (seconds
    since 1970) and `by` tell the last recorded change: a login, or the QQ number of who gave the
    command.
    """

    change: Literal["joined", "left"]
    words: str
    source: str
    at: float = 0.0
    by: str = ""


class ApplicantRule(Struct, frozen=True):
    """A rule for applicants as GROUPS_FILE has it."""

    match: str
    accepts: bool
    reason: str = ""


class GroupState(Struct, frozen=True, kw_only=True):
    """The greetings of a group, and the rules for people who want to join it; if none fits, owners
    are asked if `asks_owners`.
    """

    greetings: tuple[GreetingState, ...]
    rules: tuple[ApplicantRule, ...]
    asks_owners: bool


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation: messages, the oldest first, older ones from `next` on; the number of `rounds`
    in its prompt, and those that are `told`, the first `light` of them with shortened results
    (empty if there are very many, or if older messages were requested); the `summary` of earlier
    rounds; and facts.
    """

    where: Conversation
    group: str
    lines: tuple[ChatLine, ...]
    rounds: int = 0
    told: tuple[Round, ...] = ()
    light: int = 0
    summary: str = ""
    facts: tuple[Fact, ...] = ()
    next: int | None = None


class PersonaState(Struct, frozen=True, kw_only=True):
    """A persona, its text, and the chats that use it, by choice or by the files; the default has no
    `key`. `filed` is the text of its file if that was changed on a page.
    """

    key: str
    name: str
    text: str
    chats: tuple[str, ...] = ()
    filed: str | None = None


class CostSum(Struct, frozen=True):
    """The usage of a day (`name` is its midnight, in seconds since 1970), a model, a conversation,
    a person or a tool; `called` is its display name. The last may sum up `others`, that many,
    without a name.
    """

    name: str
    usage: UsageSum
    called: str = ""
    others: int = 0


class AccountState(Struct, frozen=True):
    """A connected account of the bot, and whether QQ has it online."""

    account: int
    online: bool
    server: str = ""


class ModelState(Struct, frozen=True):
    """A model, the seconds until it is asked again (0 if it may be), and whether its price is
    known.
    """

    name: str
    cooldown: float = field(default=0.0, name="rests")  # the name in other versions of a cluster
    is_priced: bool = False


class WaitingCall(Struct, frozen=True):
    """A call that waits for an owner's approval until `expires` (seconds since 1970). `text` is the
    whole request, `asked` the asker's words, `led` the others whose words influenced it, `group`
    the group's name, if any and known. `action` and the named `arguments` are for display; without
    arguments only `text` is complete.
    """

    number: int
    where: Conversation
    text: str
    expires: float
    asker: str = ""
    asked: str = ""
    led: Led | str = Led()
    group: str = ""
    action: str = ""
    arguments: tuple[tuple[str, str], ...] = ()


class WaitingJoinRequest(Struct, frozen=True):
    """A friend request, an invite into `group`, or, if its asker `applies`, somebody who wants to
    join it; it waits until `expires` (seconds since 1970).
    `said` is what its asker wrote to the bot's `account`.
    """

    number: int
    asker: int
    group: int
    said: str
    expires: float
    account: int = 0
    applies: bool = False


class WaitingDraft(Struct, frozen=True):
    """The words that the bot would have said there; owners may publish them until `expires`
    (seconds since 1970). `group` is the group's name, if known.
    """

    number: int
    where: Conversation
    asker: str
    asked: str
    text: str
    expires: float
    group: str = ""


class Failure(Struct, frozen=True):
    """A failed run: when (seconds since 1970), its turn, and the error for owners."""

    at: float
    turn_id: str
    error: str


class LimitState(Struct, frozen=True):
    """A limit: its setting or command, its value, and whose it is if it is one person's or group's;
    empty otherwise.
    """

    setting: str
    value: str
    whose: str = ""


class OutboxState(Struct, frozen=True):
    """The messages to a chat that QQ has not confirmed: how many wait or are on the wire, how many
    are unanswered, and since when the oldest is there (seconds since 1970).
    """

    where: Conversation
    waiting: int
    unsure: int
    since: float


class State(Struct, frozen=True, kw_only=True):
    """The current state of the bot. `place` is where the journal is, `unwritten` the entries in
    memory while it is `in_trouble`; `absent` the number of bots of a cluster that did not answer,
    whose state is missing.
    """

    accounts: tuple[AccountState, ...] = ()
    active: int = 0
    waiting: int = 0
    models: tuple[ModelState, ...] = ()
    place: str = ""
    in_trouble: bool = False
    unwritten: int = 0
    calls: tuple[WaitingCall, ...] = ()
    petitions: tuple[WaitingJoinRequest, ...] = ()
    failures: tuple[Failure, ...] = ()
    paused: tuple[Conversation, ...] = ()
    outbox: tuple[OutboxState, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    absent: int = 0


DecisionKind: TypeAlias = Literal["A", "R", "D"]
"""Tool calls, join requests, drafts; each bot numbers its own."""


class OwnerDecision(Struct, frozen=True, tag="word"):
    """An owner's decision on a page, about the item of this number at this account; for a draft
    `reason` is its new text.
    """

    account: int
    kind: DecisionKind
    number: int
    allows: bool
    reason: str = ""


class BotStatus(Struct, frozen=True, tag="glance"):
    """The status of a bot, or of all bots of the service. `waiting` is the number of decisions that
    can be made on a page, `more` the number of drafts beyond those shown, `personas` the chats of
    each by its key, `waits` the number of pending decisions of each kind anywhere.
    """

    number: int = field(name="partition")  # the bot's; the name in other versions of a cluster
    state: State
    waiting: int = 0
    drafts: tuple[WaitingDraft, ...] = ()
    more: int = 0
    personas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waits: Mapping[str, int] = field(default_factory=dict)


class WakeExplainer(Protocol):
    """Explains, as `/why` does, why the bot answered or not."""

    def story(self, story: Story, *, chinese: bool) -> list[str]:
        """The story of a message, in a few lines."""
        ...

    def reason(self, reason: str, *, chinese: bool) -> str:
        """The reason that woke the bot or kept it silent."""
        ...

    def ending(self, stop: str, *, chinese: bool) -> str: ...

    def setting(self, reason: str, *, chinese: bool) -> str:
        """The setting or command behind a reason."""
        ...


class ConsoleQueries(Protocol):
    """Reads the journal for the console. All methods return None if it cannot be read now."""

    async def rows(self, query: TurnQuery) -> TurnRows | None: ...

    async def trace(self, turn_id: str) -> tuple[Trace, ...] | None:
        """The turn of this id, empty if it is unknown."""
        ...

    async def silence(self, where: Conversation, message_id: str) -> Unanswered | None:
        """A message that was not answered, and why."""
        ...

    async def chats(self, before: int) -> ChatRows | None:
        """The conversations before that message id; 0: the latest."""
        ...

    async def chat(self, where: Conversation, before: int) -> Chat | None:
        """The messages of a conversation before that id; 0: the latest."""
        ...

    async def tools(self) -> tuple[ToolUse, ...] | None: ...

    async def day(self, *, since: float, until: float) -> DayCounts | None:
        """The counts from `since` to before `until`."""
        ...

    async def ends(self, *, since: float) -> tuple[int, int] | None:
        """The number of runs that ended, of turns since then, and how many of them failed."""
        ...

    async def costs(self, *, since: float, by: str) -> tuple[CostSum, ...] | None:
        """The usage since then by `day`, `model`, `conversation`, `asker` or `tool`, the most
        expensive first, days in order. The tool without a name is usage that belongs to no tool.
        """
        ...
