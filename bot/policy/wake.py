"""Decides whether a message wakes the bot. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Literal, TypeAlias
from unicodedata import category, normalize

from msgspec import Struct

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, account_of
from bot.core.segments import Mention
from bot.quiet.rule import NEVER_QUIET, QuietRule
from frostagent.types.speech import MentionAll, Quote, Text
from frostagent.types.traits import Rate

# QQ's official bots, inclusive (LLOneBot/LuckyLilliaBot src/onebot11/entities.ts): two bots that
# answer each other never stop.
OFFICIAL_BOTS = (
    (3328144510, 3328144510),
    (2854196301, 2854216399),
    (66600000, 66600000),
    (3889000000, 3889999999),
    (4010000000, 4019999999),
)

MARKS = "@,.!?:;~、。\N{VARIATION SELECTOR-16}"  # after NFKC, which maps ，！？：；… to ASCII
AROUND = (
    "Cc",
    "Cf",
    "Cs",
    "Pd",
    "Sk",
    "So",
    "Zl",
    "Zp",
    "Zs",
)  # dashes, emoji with joiners, spaces; no quotes
INSIDE_WORDS = ("-", "_", "'", "’")
EDGE = 256  # characters checked at each end, because folding may take quadratic time


@dataclass(frozen=True, slots=True)
class Rules:
    """The operator's rules: the bot's names, and whom and where it answers (empty: everyone,
    everywhere).

    What begins with one of the `prefixes` is for the bot, with `at_all` what is said to everybody,
    too. `robots` are numbers that nobody answers. `chance` is that of a line that is said to
    nobody; `chime_in` (0 to 1) replaces it: how readily the bot speaks after a batch of such lines.
    A question is `stale` after so many seconds, and so many quick wakes of one sender are a `loop`;
    never where that is 0. The rates are those of questions, None without limit.
    In `quiet` hours it answers fewer.
    """

    names: tuple[str, ...] = ()
    owners: frozenset[int] = field(default_factory=frozenset)
    groups: frozenset[int] = field(default_factory=frozenset)
    users: frozenset[int] = field(default_factory=frozenset)
    blocked: frozenset[int] = field(default_factory=frozenset)
    prefixes: tuple[str, ...] = ()
    at_all: bool = False
    robots: frozenset[int] = field(default_factory=frozenset)
    chance: float = 0.0
    chime_in: float = 0.0
    stale: float = 0.0
    loop: int = 0
    user_rate: Rate | None = None
    group_rate: Rate | None = None
    quiet: QuietRule = NEVER_QUIET


Called: TypeAlias = Literal[
    "private", "mention", "quote", "retry", "job", "name", "prefix", "all", "chance", "chime"
]
"""What wakes the bot."""


class Silence(StrEnum):
    """Why a message is not answered; stored by these texts."""

    BLOCKED = "the sender is blocked"
    NOT_IN_GROUPS = "the group is not on the list"
    NOT_LISTED = "the sender is not on the list"
    ROBOT = "the sender is a robot"
    MUTED = "the bot is muted there"
    CLOSED = "QQ takes no message of the bot there"
    LOOP = "the bot and the sender answer each other for ever"
    WORDS = "its words are on the operator's list"
    SILENCED = "somebody there told the bot to be silent"
    HELD = "no owner has let the bot speak there"
    QUIET = "it is quiet there now"
    STALE = "nobody came to it in time"
    LATE = "it was answered, or was old, when it was found"
    UNREAD = "its turn was stopped before anybody read it"
    STOPPED = "it was stopped before anybody came to it"
    NOT_HIS = "what goes on is not the sender's to stop"
    FULL = "too many questions were waiting"
    USER = "its sender asks too often"
    GROUP = "too many questions of that group"
    DAY = "what may be spent in a day is spent"


Why: TypeAlias = Silence | Literal[""]
"""Why a message is not answered; empty if nothing prevents it or it was not for the bot."""

Local: TypeAlias = Callable[[Conversation, Rules], Rules]
"""Adapts the general rules to one conversation."""


class Wake(Struct, frozen=True):
    """Answer it; the last five of the reasons are those of a weak one. `detail` is told with it.

    A `weak` wake may be talk about the bot, so silence is a valid answer. Weak are the last four
    reasons.
    """

    reason: Called
    weak: bool = False
    detail: str = ""

    @property
    def is_uncalled(self) -> bool:
        """Whether nobody meant the bot more than anybody else: then no failure is told either."""
        return self.reason in ("all", "chance", "chime")

    def payer(self, who: int) -> int:
        """Return the account that the cost of `who`'s question counts for; 0 is the group alone."""
        return 0 if self.is_uncalled else who


CALLED = Wake("mention")


class Observe(Struct, frozen=True):
    """Remember the message without answering; `reason` says why, if it was for the bot.

    With `may_join`, the bot may answer by chance.
    """

    reason: Why = ""
    may_join: bool = False


class Ignore(Struct, frozen=True):
    """Neither remember nor answer the message."""

    reason: Silence


class NeedsQuoted(Struct, frozen=True):
    """The message quotes another one. Wake if that is the bot's own (people delete the @ that
    clients insert), else do as `otherwise` says. `against` is why its sender is not answered: then
    the quoted message is looked up in memory only.
    """

    message_id: str
    otherwise: Wake | Observe = Observe()
    against: Why = ""


Verdict: TypeAlias = Wake | Observe | Ignore | NeedsQuoted


def judge(
    message: MessageReceived,
    rules: Rules,
    *,
    accounts: Collection[int] = (),
    robots: Collection[int] = (),
) -> Verdict:
    """Decide what to do with a message. `accounts` are all of the bot's own; `robots` are those
    found besides those of the rules.
    """
    against = sender_veto(message, rules, accounts=accounts, robots=robots)
    is_group = message.conversation.is_group
    if against and (not is_group or against in (Silence.BLOCKED, Silence.NOT_IN_GROUPS)):
        return Ignore(against)
    if not is_group:
        return Wake("private")
    verdict = _addressed(message, rules)
    if against:
        return _unanswered(verdict, against)
    if rules.chance and not rules.chime_in and verdict == Observe():
        return Observe(may_join=is_said_to_nobody(message))
    return verdict


def sender_veto(
    message: MessageReceived,
    rules: Rules,
    *,
    accounts: Collection[int] = (),
    robots: Collection[int] = (),
) -> Why:
    """Return why messages of this sender are never answered there, or an empty string."""
    sender, where = message.sender.user_id, message.conversation
    owner, account = sender in rules.owners, account_of(sender)
    if not owner and account in rules.blocked:
        return Silence.BLOCKED
    if where.is_group and rules.groups and where.session_id not in rules.groups:
        return Silence.NOT_IN_GROUPS
    if not owner and rules.users and account not in rules.users:
        return Silence.NOT_LISTED
    if is_official_bot(sender) or account in rules.robots or sender in accounts or sender in robots:
        return Silence.ROBOT
    return ""


def _unanswered(verdict: Wake | NeedsQuoted | Observe, against: Silence) -> NeedsQuoted | Observe:
    """The verdict for a message to the bot from a sender it does not answer."""
    match verdict:
        case Wake() | NeedsQuoted(otherwise=Wake()):
            return Observe(against)
        case NeedsQuoted():
            return NeedsQuoted(verdict.message_id, against=against)
        case Observe():
            return verdict


def _addressed(message: MessageReceived, rules: Rules) -> Wake | NeedsQuoted | Observe:
    """Whether a message in a group addresses the bot."""
    called: Wake | Observe = Observe()
    quote = None
    for segment in message.segments:
        match segment:
            case Mention(user_id=user_id) if user_id == message.self_id:
                return Wake("mention")
            case MentionAll() if rules.at_all:
                called = Wake("all", weak=True)
            case Quote():
                quote = segment
            case _:
                pass
    if is_called(message, rules.names):
        called = Wake("name", weak=True)
    elif has_prefix(message, rules.prefixes):
        called = Wake("prefix", weak=True)
    return called if quote is None else NeedsQuoted(quote.message_id, called)


def is_said_to_nobody(message: MessageReceived) -> bool:
    """Whether it has text, and neither mentions nor quotes anyone."""
    segments = message.segments
    return any(
        isinstance(segment, Text) and segment.text.strip() for segment in segments
    ) and not any(isinstance(segment, Mention | MentionAll | Quote) for segment in segments)


@lru_cache(maxsize=4096)  # few people send most messages
def is_official_bot(user_id: int) -> bool:
    return any(first <= user_id <= last for first, last in OFFICIAL_BOTS)


def is_called(message: MessageReceived, names: tuple[str, ...]) -> bool:
    """Whether the message begins or ends with one of the names, as in "小霜，在吗" or "thanks,
    Frost!".

    Spaces, punctuation and emoji around it are ignored. A name in mid-sentence, in quotes or inside
    a longer word is talk about the bot.
    """
    text = _text(message)
    begin, end = without_marks(text[:EDGE]), without_marks(text[-EDGE:])
    return any(_calls(begin, end, without_marks(name)) for name in names)


def has_prefix(message: MessageReceived, prefixes: tuple[str, ...]) -> bool:
    """Whether the message begins with one of the prefixes. One that ends in a letter must be a word
    of its own: "/ai", "!".
    """
    if not prefixes:
        return False
    text = fold_text(_text(message)[:EDGE]).lstrip()
    return any(
        text.startswith(prefix) and not _joins(prefix[-1], text[len(prefix) : len(prefix) + 2])
        for prefix in map(fold_text, prefixes)
        if prefix
    )


def _text(message: MessageReceived) -> str:
    return "".join(segment.text for segment in message.segments if isinstance(segment, Text))


def _calls(begin: str, end: str, name: str) -> bool:
    if not name:
        return False
    if begin.startswith(name) and not _joins(name[-1], begin[len(name) : len(name) + 2]):
        return True
    return end.endswith(name) and not _joins(name[0], end[: -len(name)][-2:][::-1])


def _joins(letter: str, neighbours: str) -> bool:
    """Whether the letter and the two characters after it form one word: "frosty", "frost-bite",
    "frost's".

    This applies to ASCII only: Chinese has no spaces and may follow any name ("AI画个猫").
    """
    word = neighbours[1:] if neighbours[:1] in INSIDE_WORDS else neighbours[:1]
    return letter.isascii() and letter.isalnum() and word.isascii() and word.isalnum()


def without_marks(text: str) -> str:
    """The folded text without the punctuation, emoji and spaces around it."""
    one_form = fold_text(text)
    return one_form.strip("".join(char for char in set(one_form) if _is_around(char)))


def fold_text(text: str) -> str:
    """NFKC-normalized, case-folded text."""
    return normalize("NFKC", text).casefold()


def _is_around(char: str) -> bool:
    return char in MARKS or category(char) in AROUND
