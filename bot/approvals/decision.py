"""What every kind of decision has in common: who may decide, what an owner's reply says, and what a
kind has to know of its own (`DecisionHandler`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from bot.core.events import MessageReceived
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.segments import Mention
from bot.core.settlement import Settled, Settlement
from bot.policy.permissions import WAIT
from frostagent.types.speech import Quote, Text
from frostagent.types.suspension import ApprovalRequest, Deny, Pending

logger = logging.getLogger(__name__)

Say: TypeAlias = Callable[[str], None]

NO_OWNER = "the bot has no owner who could be asked (BOT_OWNERS is empty)"


@dataclass(frozen=True, slots=True)
class Approvers:
    """Who may decide: the owners, or, in a terminal chat, the person at the terminal. They are told
    in their `tongue`.
    """

    owners: frozenset[int] = frozenset()
    terminal: Say | None = None
    tongue: Language = Language.CHINESE

    @property
    def are_there(self) -> bool:
        """Whether anybody can be asked at all."""
        return bool(self.owners) or self.terminal is not None

    async def approve(self, request: ApprovalRequest) -> Deny | Pending:
        """Suspend the run until somebody decides; deny the call if there is nobody to ask."""
        if not self.are_there:
            logger.warning(
                "run %s: %s must be allowed, but %s", request.run_id, request.name, NO_OWNER
            )
            return Deny(NO_OWNER)
        return Pending(WAIT)


# --- replies --------------------------------------------------------------------------------------

Choice: TypeAlias = Literal[
    "approve",  # a call or a join request
    "deny",
    "publish",  # a draft
    "edit",
    "discard",
    "live",  # a new group
    "shadow",
    "off",
]


@dataclass(frozen=True, slots=True)
class Reply:
    """An owner's decision, in a chat or on a page. `number` is None if the reply names none;
    `words` are the reason of a refusal, or those that a draft is to have.
    """

    choice: Choice
    number: int | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that waits, which a reply that names nothing may be about: its number and `name`,
    and an `example` of a reply that names it. Without `is_sure` the reply may as well be about
    something else, so the owner is asked even if nothing else waits.
    """

    number: int
    name: str
    example: str
    is_sure: bool = True


class DecisionHandler(Protocol):
    """Knows what is particular to one kind of decision. Nothing of this waits."""

    def read_reply(self, message: MessageReceived) -> Reply | None:
        """The reply to a decision of this kind that an owner's message is; None for any other."""
        ...

    def find_number(self, quoted: MessageReceived) -> int | None:
        """The number of the decision that this message of the bot's asks about."""
        ...

    def list_candidates(self, message: MessageReceived, reply: Reply, /) -> Sequence[Candidate]:
        """All that this reply without a number may be about, if it quotes nothing or what cannot be
        read.
        """
        ...

    def accept(self, message: MessageReceived, number: int, reply: Reply) -> bool:
        """Act on the reply about this number and tell the owner the outcome; False if it is none
        of ours.
        """
        ...


REPLY_QUEUE = 20  # requests and replies of one kind that wait to be handled

Work: TypeAlias = Callable[[], Coroutine[None, None, None]]


class ReplyQueue:
    """Handles one after another what the reading loop must not wait for. `what` names it in the
    log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._work: asyncio.Queue[Work] = asyncio.Queue(REPLY_QUEUE)

    def put(self, work: Work) -> bool:
        """Whether there was room."""
        try:
            self._work.put_nowait(work)
        except asyncio.QueueFull:
            logger.warning("too many %s at once: one is left alone", self._what)
            return False
        return True

    async def run(self) -> None:
        """Handle what comes, until cancelled."""
        while True:
            work = await self._work.get()
            await work()


def outcome(kind: Settlement, line: Phrase, tongue: Language, **values: object) -> Settled:
    """The outcome of a decision with the line that tells it."""
    return Settled(kind, line.format(tongue, **values))


# --- reading them: pure ---------------------------------------------------------------------------

MAX_REASON = 200
WHICH = Phrase(
    "这句话可能指 {names}，还没有算数。请带上编号再发一次，比如「{example}」。",
    'That may mean {names}, so nothing was decided. Please name one, as in "{example}".',
)
YES = Phrase("同意", "approve")
WORD_OF: dict[Choice, Phrase] = {"approve": YES, "deny": Phrase("拒绝", "deny")}
ALLOWED, DENIED = Phrase("已同意", "allowed"), Phrase("已拒绝", "denied")
CATALOGUE.register(__name__, globals())
NUMBER = r"[#＃]?\s*[aAａＡ]\s*(?P<number>[0-9０-９]{1,9})(?![0-9A-Za-z])"
ANSWER = re.compile(
    rf"\s*(?P<word>同意|拒绝|approve|deny)(?![0-9B-Zb-z])(?:\s*{NUMBER})?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
MARKS = " \t\r\n\u3000,，:：;；.。!！~～、"


def read_answer(text: str) -> Reply | None:
    """`同意 A3`, `拒绝 A3 理由`, `approve a3`, `deny A3 reason`, or the same without a number; None
    for anything else.

    A yes has nothing behind it: with a condition it is none.
    """
    match = ANSWER.fullmatch(text)
    if match is None:
        return None
    number, rest = match["number"], match["rest"]  # A0 is a number that no request has
    allows = match["word"].lower() in (YES.zh, YES.en)
    # 同意书, 拒绝的话 and denying are words of their own; behind a number anything may follow.
    joined = number is None and rest and rest[0] not in MARKS
    reason = " ".join(rest.strip(MARKS).split())
    if joined or (allows and reason):
        return None
    choice: Choice = "approve" if allows else "deny"
    return Reply(choice, None if number is None else int(number), reason[:MAX_REASON])


def words_in(message: MessageReceived) -> str | None:
    """The words of a message that is nothing else, but for a mention of the bot and a quote; None
    for any other.
    """
    words = []
    for segment in message.segments:
        match segment:
            case Text(text=text):
                words.append(text)
            case Mention(user_id=user_id) if user_id == message.self_id:
                pass
            case Quote():
                pass
            case _:
                return None
    return "".join(words)


def private_words(message: MessageReceived) -> str | None:
    """The same of a message in private; None in a group."""
    return None if message.conversation.is_group else words_in(message)


def mentions_the_bot(message: MessageReceived) -> bool:
    """Whether the message is addressed to the bot by a mention."""
    return any(
        isinstance(each, Mention) and each.user_id == message.self_id for each in message.segments
    )


def without_blanks(text: str) -> str:
    """The text as it can be compared, after a server has put its blanks in order."""
    return "".join(text.split())
