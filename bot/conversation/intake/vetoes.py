"""Reasons not to answer a message that calls the bot: a mute, an unreachable place, a loop, a word
on the operator's list, a stale question.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from msgspec.structs import replace

from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.quiet_hours import QuietHours
from bot.conversation.intake.server_clock import ServerClock
from bot.conversation.tasks import Task
from bot.domain.blocked_words import BlockedWords
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock
from bot.domain.segments import Mention, Segment, Text
from bot.memory.lru import DefaultLRU
from bot.policy.approval import quote_in
from bot.policy.blocked_words import words_said, words_shown
from bot.policy.similarity import is_similar
from bot.policy.wake import Observe, Rules, Silence, Wake, Why
from bot.prompt.render import MAX_NAME, label
from bot.speaking.outbox import Outbox
from bot.speaking.owner_alerts import Owner


class BlockedWordFilter:
    """Looks through all that somebody says as a prompt shows it, and through their own lines that
    they quote: `known` finds those that are remembered, `name_of` the name by which a person was
    last seen. Without `words` nothing is listed.
    """

    def __init__(
        self,
        words: BlockedWords | None,
        known: Callable[[Conversation, str], MessageReceived | None],
        name_of: Callable[[Conversation, int], str],
    ) -> None:
        self._words = words
        self._known = known
        self._name_of = name_of

    def stops(self, said: Iterable[MessageReceived]) -> bool:
        """Whether these lines have words of it together, so that they are not answered."""
        if self._words is None:
            return False
        lines = [self._with_names(one) for line in said for one in self._with_its_quote(line)]
        written, shown = words_said(lines), words_shown(lines)
        # Written words may go on behind a picture: its caption must not keep them apart.
        return bool(self._words.stops(written)) or (
            shown != written and bool(self._words.stops(shown))
        )

    def _with_its_quote(self, line: MessageReceived) -> Iterator[MessageReceived]:
        if quote := quote_in(line):
            quoted = self._known(line.conversation, quote)
            if quoted is not None and quoted.sender.user_id == line.sender.user_id:
                yield quoted
        yield line

    def _with_names(self, line: MessageReceived) -> MessageReceived:
        def named(segment: Segment) -> Segment:
            if not isinstance(segment, Mention) or segment.user_id == line.self_id:
                return segment
            seen = self._name_of(line.conversation, segment.user_id)
            return replace(segment, name=seen) if seen else segment

        return replace(line, segments=tuple(map(named, line.segments)))


WITHIN = 180.0  # seconds for all that are too many
FAST = 4.0  # seconds after a message of ours: people read it first
ALIKE = 90.0  # percent of one text in the one before
LONGEST = 400  # characters that are compared
HELD = 600.0  # seconds somebody is observed only


class Loop(Enum):
    """The state of one who wakes us: free to, held from now on, or still held."""

    NONE = "none"
    BEGINS = "begins"
    HOLDS = "holds"


@dataclass(slots=True)
class Waker:
    """One who wakes us in one conversation."""

    _wakes: deque[float] = field(default_factory=deque)
    _text: str = ""
    _latest: float = -math.inf
    until: float = -math.inf

    def take(self, text: str, most: int, *, spoke: float, now: float) -> Loop:
        """A wake with these words, of which the last of so many at `most` is one too many; we last
        `spoke` there at that time, -inf for never.
        """
        if now < self.until:
            return Loop.HOLDS
        short = text.strip().casefold()[:LONGEST]
        is_alike = bool(short) and is_similar(short, self._text, least=ALIKE)
        is_answer = self._latest <= spoke  # else he has not read anything of ours since
        self._text, self._latest = short, now
        if is_alike or (is_answer and now - spoke <= FAST):
            self._wakes.append(now)
        elif is_answer:
            self._wakes.clear()
        while self._wakes and now - self._wakes[0] > WITHIN:
            self._wakes.popleft()
        if len(self._wakes) < most:
            return Loop.NONE
        self.until = now + HELD
        return Loop.BEGINS


logger = logging.getLogger(__name__)

MAX_WAKERS = 5000

TOLD = (
    (
        "{who} 在 {where} 和我一直互相回复，可能也是机器人：10 分钟内不再回应 TA。"
        "如果 TA 是机器人，可以把这个号码写进 BOT_ROBOTS。"
    ),
    (
        "{who} and I answer each other for ever in {where}; it may be a bot, too: I let it be for "
        "ten minutes. If it is one, its number belongs into BOT_ROBOTS."
    ),
)


class Vetoes:
    """Says why a wake is held back; tells the owner once of a loop and of an unreachable place."""

    def __init__(
        self,
        *,
        rules: Rules,
        server_clock: ServerClock,
        mutes: Mutes,
        quiet_hours: QuietHours,
        outbox: Outbox,
        owner: Owner,
        clock: Clock,
        blocked_words: BlockedWordFilter,
    ) -> None:
        self._rules = rules
        self._server_clock = server_clock
        self._mutes = mutes
        self.quiet_hours = quiet_hours
        self._outbox = outbox
        self._owner = owner
        self._clock = clock
        self._blocked_words = blocked_words
        self._wakers = DefaultLRU[tuple[Conversation, int], Waker](MAX_WAKERS, Waker)

    def is_muted(self, where: Conversation) -> bool:
        """Whether nobody would hear the bot there."""
        return self._mutes.holds_in(where)

    def may_be_muted(self, where: Conversation) -> bool:
        """Whether that is so, or was before the connection and nobody has lifted it since."""
        return self._mutes.may_hold_in(where)

    def is_silenced(self, message: MessageReceived, wake: Wake) -> bool:
        """Whether the bot may not, or is not to, answer that now; loops aside."""
        if self.is_muted(message.conversation) or self._rests(message):
            return True
        return bool(self.quiet_hours.against(message, wake))

    def on(self, message: MessageReceived, wake: Wake) -> Wake | Observe:
        """The wake, or why it is none, when the message has come."""
        if self.is_muted(message.conversation):
            return Observe(Silence.MUTED)
        if self._rests(message):
            return Observe(Silence.CLOSED)
        if self.stops((message,)):
            return Observe(Silence.WORDS)
        if why := self.quiet_hours.against(message, wake):
            return Observe(why)
        if self.is_told_late(message):
            return Observe(Silence.STALE)
        return Observe(Silence.LOOP) if self._loops(message, self._clock.now()) else wake

    def stops(self, said: Iterable[MessageReceived]) -> bool:
        """Whether the operator's list has words of these lines, so that they are not answered."""
        return self._blocked_words.stops(said)

    def is_told_late(self, message: MessageReceived) -> bool:
        """Whether it was said too long ago: a server tells it again, or late."""
        return self._is_stale(self._server_clock.least(message))

    def against(self, task: Task, *, looked_up: bool) -> Why:
        """Why a question whose turn has come is not answered after all; empty where it is.

        Of what had to be `looked_up` nobody knew before that it was a wake.
        """
        message, waited = task.message, self._clock.now() - task.since
        age = (
            self._server_clock.age
            if self._server_clock.is_missed(message)
            else self._server_clock.least
        )
        waited = max(waited, age(message))
        if self.is_muted(message.conversation):
            return Silence.MUTED
        if self._rests(message):
            return Silence.CLOSED
        if why := self.quiet_hours.silence(message.conversation):
            return why
        if looked_up and (why := self.quiet_hours.against(message, task.wake)):
            return why
        if looked_up and self._loops(message, task.since):
            return Silence.LOOP
        if self.stops(task.said):
            return Silence.WORDS
        return Silence.STALE if self._is_stale(waited) else ""

    def end(self, message: MessageReceived, why: str) -> float:
        """When that, which has just held it back, ends, in seconds since 1970; 0 where nobody
        knows.
        """
        where = message.conversation
        match why:
            case Silence.MUTED:
                return self._mutes.end(where)
            case Silence.QUIET:
                return self.quiet_hours.end(where)
            case Silence.LOOP:
                return max(0.0, self._wakers[where, message.sender.user_id].until)
            case _:
                return 0.0

    def _rests(self, message: MessageReceived) -> bool:
        """Whether QQ would take no answer to it; what an owner asks there may find out."""
        unreachable, where = self._outbox.unreachable, message.conversation
        if not unreachable.holds_in(where):
            return False
        if message.sender.user_id in self._rules.owners:
            unreachable.end(where)
            return False
        unreachable.tell(where)
        return True

    def _is_stale(self, waited: float) -> bool:
        return 0 < self._rules.stale < waited

    def _loops(self, message: MessageReceived, now: float) -> bool:
        where, sender = message.conversation, message.sender
        if not self._rules.loop or sender.user_id in self._rules.owners:
            return False
        waker = self._wakers.use((where, sender.user_id))
        text = "".join(part.text for part in message.segments if isinstance(part, Text))
        loop = waker.take(text, self._rules.loop, spoke=self._outbox.spoke(where), now=now)
        if loop is Loop.BEGINS:
            who = f"{label(sender.name, MAX_NAME)}({sender.user_id})"
            line = TOLD[self._owner.tongue].format(who=who, where=where)
            self._owner.tell(f"loop in {where}", line)
        return loop is not Loop.NONE
