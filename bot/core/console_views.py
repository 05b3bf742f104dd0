"""What the operator's console shows: the journal, tools, the doctor's findings, live news; and the
ports it reads them from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from bot.core.journal import RequestPurpose, Round
from bot.core.query_results import DayCounts, Ignored, Story, UsageSum
from frostagent.types.conversation import Conversation
from frostagent.types.messages import Usage
from frostagent.types.runs import Led


class News(Struct, frozen=True):
    """Something happened to the turn or message of that name; numbers rise."""

    number: int
    name: str


class Feed(Protocol):
    """Tells what is new, as it happens."""

    @property
    def number(self) -> int:
        """That of the latest."""
        ...

    async def after(self, number: int, *, within: float) -> tuple[News, ...]:
        """All that is newer than that, waited for so many seconds; nothing where nothing came."""
        ...


TELLING = 3  # calls that say how a tool is


class ToolState(Struct, frozen=True, kw_only=True):
    """A tool now: the `reason` it cannot be used for (empty where it can), whether its calls run,
    for whom it is, and for whom in the groups where that is another; at most how many calls in how
    many seconds, where there is such a quota. `unfit` is why a page may not call it (a word for
    `tools.unfit`), empty where it may; then `parameters` are the schema of its arguments.
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
    """An MCP server now: why it is away (empty if it is connected), what went wrong last, how many
    tools it offers and about how many tokens they take in a request, and a line for each tool that
    is left out.
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


class ToolAnswer(Struct, frozen=True):
    """The result of a call from a page, as a model would read it: its `code` is `ok` or that of its
    failure; how many seconds it took, and how many pictures came with it.
    """

    text: str
    code: str
    seconds: float
    pictures: int = 0


class ToolUse(Struct, frozen=True):
    """The latest calls of a tool: how many, how many failed, and the code of the last failure, with
    the `error` that the model read; `slow` is the time that nearly all of them keep within, in
    seconds. `lately` is how many failed of the last few that were made to their end.

    Invariant: `calls` are those that were `fine`, `failed` or are `going_on`.
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
        """How many gave a result."""
        return self.calls - self.failed - self.going_on

    @property
    def health(self) -> Literal["good", "warn", "bad"]:
        """`bad` where the last few all failed, `warn` where half of them did; two calls say little
        of a tool.
        """
        failed, made = self.lately
        if made < TELLING or 2 * failed < made:
            return "good"
        return "bad" if failed == made else "warn"


class Finding(Struct, frozen=True):
    """The doctor's finding about one thing: its `verdict` is `ok`, `warning` or `problem`; the mend
    is empty where all is well. Both in English, and in Chinese where there is any.
    """

    check: str
    verdict: str
    said: str
    mend: str
    said_zh: str = ""
    mend_zh: str = ""

    def told(self, chinese: bool) -> str:
        """The words about it, in one of the two languages."""
        return (chinese and self.said_zh) or self.said

    def advice(self, chinese: bool) -> str:
        """The mend, in one of the two languages."""
        return (chinese and self.mend_zh) or self.mend


Doctor: TypeAlias = Callable[[Callable[[str, Usage], None]], Awaitable[Sequence[Finding]]]
"""Looks at all that a running bot needs, by its settings alone; the function it is given is told
which model took what.
"""


UNANSWERED = "unanswered"
"""The outcome of a message for the bot that no model was asked about."""

ROWS = 50


class TurnQuery(Struct, frozen=True, kw_only=True):
    """Asks for the latest turns, and messages nobody answered; empty and 0 are any.

    `outcome` is an `Ending` or UNANSWERED, times are in seconds since 1970, `cost` is
    what a turn took at least, in US dollars. Only what came before the turn and the verdict of
    these ids is told.
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
    """A question and what became of it. `turn_id` is empty where no model was asked; then `reason`
    says why. `outcome` is an `Ending`, or UNANSWERED. Times in seconds (since 1970); `seconds` is
    None while it goes on. `refusal` is the outcome of the last failed request of a failed turn, as
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
    """Rows, the latest first; a turn and a verdict are where the next ones begin, None at the end.
    They may be few where more are further down.
    """

    rows: tuple[TurnRow, ...]
    next: tuple[int, int] | None


class Span(Struct, frozen=True, kw_only=True):
    """Something a turn did, from `begin` (seconds since 1970) for so many seconds.

    `kind` is `wait`, `model`, `failed` (a request), `tool` or `send`; `run` is the subagent's or
    the `RequestPurpose`, empty for the turn's own. `outcome` is how it ended, `text` what was said,
    `asked` a call's arguments.
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
    """A turn in full: its row, how `/why` tells it, its own part of the prompt, what it did."""

    row: TurnRow
    story: Story
    prompt: str
    spans: tuple[Span, ...]


class ChatRow(Struct, frozen=True, kw_only=True):
    """A conversation, and the last that was said in it; no `text` where that was taken back."""

    where: Conversation
    group: str
    name: str
    text: str
    at: float


class ChatRows(Struct, frozen=True):
    """Conversations, the last spoken in first; `next` is where the next ones begin, if any."""

    rows: tuple[ChatRow, ...]
    next: int | None


class ChatLine(Struct, frozen=True, kw_only=True):
    """A message, and why it woke the bot or did not. `state` is that of a send of ours whose end is
    not known or not good; the prompt `begins` with this question.
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
    """A message that nobody answered: how it fared, and the `line` itself, None where that is kept
    no more.
    """

    story: Story
    line: ChatLine | None = None


class Fact(Struct, frozen=True):
    """A fact remembered of a person (0: the conversation), since `made`."""

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


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation: messages, oldest first, older ones from `next` on; how many `rounds` its
    prompt repeats, and which are `told`, `light` of them with shortened results (none where they
    are very many, or older messages were asked for); what stands for those that are told no more,
    and what is remembered.
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
    """A persona, its text, and the chats where it is now by choice or by the files; the usual one
    has no `key`. `filed` is what its file says, where that was changed on a page.
    """

    key: str
    name: str
    text: str
    chats: tuple[str, ...] = ()
    filed: str | None = None


class CostSum(Struct, frozen=True):
    """The sum that something took: a day (its midnight, in seconds since 1970), a model, a
    conversation, a person or a tool, by its name, and as people call it. The last may stand for all
    `others`, of which there are so many, without a name.
    """

    name: str
    usage: UsageSum
    called: str = ""
    others: int = 0


class AccountState(Struct, frozen=True):
    """An account of the bot that is connected, and whether QQ has it online."""

    account: int
    online: bool
    server: str = ""


class ModelState(Struct, frozen=True):
    """A model, for how many more seconds it is left alone (0 where it is asked), and whether what
    it costs is known.
    """

    name: str
    cooldown: float = field(default=0.0, name="rests")  # as other versions of a cluster call it
    is_priced: bool = False


class WaitingCall(Struct, frozen=True):
    """A call that waits for an owner's word, until then (seconds since 1970): `text` is all of it,
    `asked` the words of whoever asked, `led` the others whose words led there, `group` the name of
    the group, where it is one and that is known. `action` is what is to be done, with `arguments`
    by name; without those only the text says all.
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
    """A friend request, or an invite into that group, which waits until then (seconds since 1970).
    `said` is what its asker wrote to the bot's `account`.
    """

    number: int
    asker: int
    group: int
    said: str
    expires: float
    account: int = 0


class WaitingDraft(Struct, frozen=True):
    """The words `text` that the bot would have said there to a question; an owner may publish it
    until then (seconds since 1970). `group` is the name of the group, where that is known.
    """

    number: int
    where: Conversation
    asker: str
    asked: str
    text: str
    expires: float
    group: str = ""


class Failure(Struct, frozen=True):
    """A run that failed: when (seconds since 1970), its turn, and the error for owners."""

    at: float
    turn_id: str
    error: str


class LimitState(Struct, frozen=True):
    """A limit: the setting (or command) that sets it, for whom where that is one person or group,
    and what it is; empty where there is none.
    """

    setting: str
    value: str
    whose: str = ""


class OutboxState(Struct, frozen=True):
    """Messages to a chat of which nobody knows yet that QQ has them: how many wait or are on the
    wire, of how many QQ said nothing, and since when the oldest is there (seconds since 1970).
    """

    where: Conversation
    waiting: int
    unsure: int
    since: float


class State(Struct, frozen=True, kw_only=True):
    """How the bot is at this moment. `place` is where the journal is, `unwritten` how many of its
    entries wait in memory where it is `in_trouble`; `absent` how many other bots of a cluster said
    nothing: what is theirs is not told.
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
"""Calls, requests of people, drafts: each bot numbers its own."""


class OwnerDecision(Struct, frozen=True, tag="word"):
    """An owner's decision, made on a page, on what waits by this number at this account; for a
    draft the reason is its new text.
    """

    account: int
    kind: DecisionKind
    number: int
    allows: bool
    reason: str = ""


class BotStatus(Struct, frozen=True, tag="glance"):
    """The status of a bot, or of all bots of the service: `waiting` is the number of decisions that
    can be made on a page, `more` the number of drafts beyond those shown, `personas` the chats of
    each by its key, `waits` the number of decisions of each kind that wait anywhere.
    """

    number: int = field(name="partition")  # the bot's, for other versions of a cluster
    state: State
    waiting: int = 0
    drafts: tuple[WaitingDraft, ...] = ()
    more: int = 0
    personas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waits: Mapping[str, int] = field(default_factory=dict)


class WakeExplainer(Protocol):
    """Tells in words why the bot answered or not, as `/why` does."""

    def story(self, story: Story, *, chinese: bool) -> list[str]:
        """How a message fared, in a few lines."""
        ...

    def reason(self, reason: str, *, chinese: bool) -> str:
        """The reason that woke the bot, or kept it silent."""
        ...

    def ending(self, stop: str, *, chinese: bool) -> str:
        """How a run ended."""
        ...

    def setting(self, reason: str, *, chinese: bool) -> str:
        """The setting or command that decides that."""
        ...


class ConsoleQueries(Protocol):
    """Reads the journal for the console; None where it cannot be read now."""

    async def rows(self, query: TurnQuery) -> TurnRows | None:
        """The latest that the query is about."""
        ...

    async def trace(self, turn_id: str) -> tuple[Trace, ...] | None:
        """The turn of this id; nothing where there is none."""
        ...

    async def silence(self, where: Conversation, message_id: str) -> Unanswered | None:
        """A message that was not answered, and why."""
        ...

    async def chats(self, before: int) -> ChatRows | None:
        """The conversations before that message; 0: from the latest on."""
        ...

    async def chat(self, where: Conversation, before: int) -> Chat | None:
        """The messages of one, before that message."""
        ...

    async def tools(self) -> tuple[ToolUse, ...] | None:
        """How the latest calls of tools went."""
        ...

    async def day(self, *, since: float, until: float) -> DayCounts | None:
        """The sums of the time from then on, before `until`."""
        ...

    async def ends(self, *, since: float) -> tuple[int, int] | None:
        """How many runs ended of the turns since then, and how many of them failed."""
        ...

    async def costs(self, *, since: float, by: str) -> tuple[CostSum, ...] | None:
        """The sums taken since then, by `day`, `model`, `conversation`, `asker` or `tool`, the
        dearest first, days in their order. The tool without a name stands for all that counts for
        none.
        """
        ...
