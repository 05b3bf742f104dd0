"""What all kinds of decisions share: the approvers, an owner's reply, and the interface of a kind
(`DecisionHandler`).
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
    """The owners, or in a terminal chat the person there. They read messages in `language`."""

    owners: frozenset[int] = frozenset()
    terminal: Say | None = None
    language: Language = Language.CHINESE

    @property
    def are_there(self) -> bool:
        return bool(self.owners) or self.terminal is not None

    async def approve(self, request: ApprovalRequest) -> Deny | Pending:
        """Suspend the run until an approver decides; deny the call if there is none."""
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
    `words` are the reason of a refusal, or the new words of a draft.
    """

    choice: Choice
    number: int | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pending decision that a reply without a number may mean: its number and `name`, and an
    `example` of a reply that names it. Unless it `is_sure`, the owner is asked even if it is the
    only candidate.
    """

    number: int
    name: str
    example: str
    is_sure: bool = True


class DecisionHandler(Protocol):
    """What is particular to one kind of decision. No method waits."""

    def read_reply(self, message: MessageReceived) -> Reply | None:
        """Read an owner's message as a reply of this kind; None if it is not one."""
        ...

    def find_number(self, quoted: MessageReceived) -> int | None:
        """The number of the decision that this message of the bot asks about, if any."""
        ...

    def list_candidates(self, message: MessageReceived, reply: Reply, /) -> Sequence[Candidate]:
        """The decisions that a reply without a number may mean, if it quotes nothing or an
        unreadable message.
        """
        ...

    def accept(self, message: MessageReceived, number: int, reply: Reply) -> bool:
        """Act on the reply and answer the owner; False if the number is not of this kind."""
        ...


REPLY_QUEUE = 20  # pending requests and replies of one kind

Work: TypeAlias = Callable[[], Coroutine[None, None, None]]


class ReplyQueue:
    """Runs one after another the work that the receive loop must not wait for. `what` is for the
    log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._work: asyncio.Queue[Work] = asyncio.Queue(REPLY_QUEUE)

    def put(self, work: Work) -> bool:
        """Returns False if the queue is full."""
        try:
            self._work.put_nowait(work)
        except asyncio.QueueFull:
            logger.warning("too many %s at once: one is left alone", self._what)
            return False
        return True

    async def run(self) -> None:
        while True:
            work = await self._work.get()
            await work()


def outcome(kind: Settlement, line: Phrase, language: Language, **values: object) -> Settled:
    return Settled(kind, line.format(language, **values))


# --- reading replies: pure ------------------------------------------------------------------------

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
    for anything else, also for an approval with more words: it may be conditional.
    """
    match = ANSWER.fullmatch(text)
    if match is None:
        return None
    number, rest = match["number"], match["rest"]  # no request has the number 0
    allows = match["word"].lower() in (YES.zh, YES.en)
    # 同意书, 拒绝的话 and denying are other words; after a number any text may follow.
    joined = number is None and rest and rest[0] not in MARKS
    reason = " ".join(rest.strip(MARKS).split())
    if joined or (allows and reason):
        return None
    choice: Choice = "approve" if allows else "deny"
    return Reply(choice, None if number is None else int(number), reason[:MAX_REASON])


def words_in(message: MessageReceived) -> str | None:
    """The text of a message with nothing else but a mention of the bot and a quote; else None."""
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
    """`words_in` of a private message; None in a group."""
    return None if message.conversation.is_group else words_in(message)


def mentions_the_bot(message: MessageReceived) -> bool:
    return any(
        isinstance(each, Mention) and each.user_id == message.self_id for each in message.segments
    )


def without_blanks(text: str) -> str:
    """For comparison: servers change blanks."""
    return "".join(text.split())
