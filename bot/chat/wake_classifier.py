"""Decides whether a message wakes the bot, and what holds the bot back.

`policy/wake` decides by the operator's rules whether a message is for the bot. A question is
checked twice against one table of vetoes (`WakeClassifier.vetoes`): on arrival, and at its turn in
its lane.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.chat.deduplicator import Past, SeenMessages
from bot.chat.group_probe import BotDetection
from bot.chat.mutes import Mutes
from bot.chat.tasks import Facts, Task
from bot.core.blocked_words import BlockedWords
from bot.core.command import Command
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, quote_in
from bot.core.language import CATALOGUE, Phrase
from bot.core.lru import DefaultLRU
from bot.core.segments import Mention, Segment
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.memory.modes import Mode, Modes
from bot.outbox.outbox import Outbox
from bot.outbox.owner_alerts import Owner
from bot.policy.blocked_words import words_said, words_shown
from bot.policy.wake import (
    Local,
    NeedsQuoted,
    Observe,
    Rules,
    Silence,
    Verdict,
    Wake,
    Why,
    judge,
    sender_veto,
)
from bot.prompt.render import MAX_NAME, label
from bot.quiet.quiet_hours import QuietHours
from frostagent.text.similarity import is_similar
from frostagent.types.ports import Clock, Ids
from frostagent.types.speech import Text
from frostagent.types.traits import Audience


class Occasion(Flag):
    """When a question is judged: on arrival, in its lane, in its lane once a look-up has shown that
    it is a question, or in a preview without effects.
    """

    ARRIVAL = auto()
    LANE = auto()
    LOOKED_UP = auto()
    PREVIEW = auto()


ARRIVAL, LANE, LOOKED_UP, PREVIEW = Occasion
IN_LANE: Final = LANE | LOOKED_UP
EVER: Final = ARRIVAL | IN_LANE | PREVIEW


class Question(Struct):
    """A question to judge, with all that vetoes need: all its lines are `said`; it came `at`
    (seconds since 1970), and has `waited` that many seconds.
    """

    message: MessageReceived
    said: tuple[MessageReceived, ...]
    wake: Wake
    facts: Facts
    at: float
    waited: float


Veto: TypeAlias = Callable[[Question], Why]
"""Returns the reason against an answer, or empty."""


class BlockedWordFilter:
    """Checks messages as a prompt shows them, with quoted lines of the same person: `known` finds
    remembered ones, `name_of` returns a person's last seen name. Without `words` nothing is
    blocked.
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
        """Whether these lines together contain blocked words, so that they are not answered."""
        if self._words is None:
            return False
        lines = [self._with_names(one) for line in said for one in self._with_its_quote(line)]
        written, shown = words_said(lines), words_shown(lines)
        # Text may go on after a picture, whose caption must not separate it.
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


WITHIN = 180.0  # seconds in which suspicious wakes are counted
FAST = 4.0  # seconds after a message of the bot: people need longer to read it
ALIKE = 90.0  # percent of similarity with the previous text
LONGEST = 400  # characters compared
HELD = 600.0  # seconds for which a sender in a loop is not answered


class Loop(Enum):
    """The state of a sender: free, held from now on, or still held."""

    NONE = "none"
    BEGINS = "begins"
    HOLDS = "holds"


@dataclass(slots=True)
class Waker:
    """A sender who wakes the bot in one conversation."""

    _wakes: deque[float] = field(default_factory=deque)
    _text: str = ""
    _latest: float = -math.inf
    until: float = -math.inf

    def add_wake(self, text: str, most: int, *, spoke: float, now: float) -> Loop:
        """Count a wake with this text. The `most`-th suspicious one in WITHIN seconds begins a
        loop. `spoke` is when the bot last spoke there, -inf if never.
        """
        if now < self.until:
            return Loop.HOLDS
        short = text.strip().casefold()[:LONGEST]
        is_alike = bool(short) and is_similar(short, self._text, least=ALIKE)
        is_answer = self._latest <= spoke  # else they have read nothing of the bot since
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


COOLDOWN = 120.0  # seconds between two chances in one group
A_DAY = 20  # per group
DAY = 86_400.0


class Chances:
    """Limits uncalled messages of the bot in one group."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque(maxlen=A_DAY)

    def take_chance(self, chance: float, *, draw: float, now: float) -> bool:
        """Whether to speak now; `chance` is from 0 to 1, `draw` in [0, 1)."""
        taken = self._taken
        if draw >= chance or (taken and now - taken[-1] < COOLDOWN):
            return False
        if len(taken) == A_DAY and now - taken[0] < DAY:
            return False
        taken.append(now)
        return True


MAX_PLACES = 2000
MAX_WAKERS = 5000

TOLD = Phrase(
    "{who} 在 {where} 和我一直互相回复，可能也是机器人：10 分钟内不再回应 TA。"
    "如果 TA 是机器人，可以把这个号码写进 BOT_ROBOTS。",
    "{who} and I answer each other for ever in {where}; it may be a bot, too: I let it be for "
    "ten minutes. If it is one, its number belongs into BOT_ROBOTS.",
)
CATALOGUE.register(__name__, globals())


class WakeClassifier:
    """Classifies messages, and says what holds the bot back; alerts owners once to a loop and to an
    unreachable conversation. `accounts` are all of the bot's, as they become known.
    """

    def __init__(
        self,
        *,
        rules: Rules,
        history: History,
        seen: SeenMessages,
        server_clock: ServerClock,
        mutes: Mutes,
        modes: Modes,
        quiet_hours: QuietHours,
        outbox: Outbox,
        owner: Owner,
        blocked_words: BlockedWordFilter,
        accounts: Collection[int],
        bot_detection: BotDetection,
        clock: Clock,
        ids: Ids,
        local: Local,
    ) -> None:
        """`local` makes the rules of a conversation from the general ones."""
        self._rules = rules
        self._local = local
        self._history = history
        self._seen = seen
        self._server_clock = server_clock
        self._mutes = mutes
        self._modes = modes
        self._quiet_hours = quiet_hours
        self._outbox = outbox
        self._owner = owner
        self._blocked_words = blocked_words
        self._accounts = accounts
        self._bot_detection = bot_detection
        self._clock = clock
        self._ids = ids
        self._chances = DefaultLRU[Conversation, Chances](MAX_PLACES, Chances)
        self._wakers = DefaultLRU[tuple[Conversation, int], Waker](MAX_WAKERS, Waker)
        # In this order: the first veto is the reason. Quiet hours and loops apply once, on arrival
        # or after the look-up: questions from before the quiet are still answered.
        self.vetoes: tuple[tuple[Veto, Occasion], ...] = (
            (self._veto_muted, EVER),
            (self._veto_unreachable, EVER),
            (self._veto_blocked_words, ARRIVAL),
            (self._veto_silence, LANE),
            (self._veto_quiet, ARRIVAL | LOOKED_UP | PREVIEW),
            (self._veto_stale, ARRIVAL),
            (self._veto_loop, ARRIVAL | LOOKED_UP),
            (self._veto_blocked_words, IN_LANE),  # of all lines that joined it
            (self._veto_stale, IN_LANE),
        )
        self._on_arrival = self._vetoes_on(ARRIVAL)
        self._in_lane = self._vetoes_on(LANE)
        self._looked_up = self._vetoes_on(LOOKED_UP)
        self._preview = self._vetoes_on(PREVIEW)

    # --- verdicts -----------------------------------------------------------------------------

    def gather_facts(self, message: MessageReceived) -> Facts:
        is_missed = self._server_clock.is_missed(message)
        return Facts(
            self._clock.now(),
            self._local(message.conversation, self._rules),
            is_missed=is_missed,
            is_earlier=self._seen.is_earlier(message),
            is_lost=self._seen.past_of(message, told=not is_missed) is Past.LOST,
        )

    def judge_arrival(
        self, message: MessageReceived, facts: Facts, *, answer: bool = True
    ) -> Verdict:
        """The verdict; if a veto applies, or it is not to `answer`, nothing wakes the bot."""
        match self._judge(message, facts.rules):
            case Wake() as wake:
                self._bot_detection.meet(message)
                if not answer:
                    return Observe(Silence.LATE)
                why = _first(self._on_arrival, self._arrived(message, wake, facts))
                return Observe(why) if why else wake
            case NeedsQuoted() as verdict:
                return verdict if answer else Observe()
            case Observe(may_join=True) if answer and self._joins(
                message.conversation, facts.rules
            ):
                return Wake("chance", weak=True)
            case verdict:
                return verdict

    def judge_in_lane(self, task: Task, facts: Facts) -> Why:
        """Why a question is not answered at its turn; empty if it is."""
        message, clock = task.message, self._server_clock
        if task.looked_up:
            self._bot_detection.meet(message)
        age = clock.age(message) if facts.is_missed else clock.least(message)
        waited = max(facts.at - task.since, age)
        question = Question(message, task.said, task.wake, facts, task.since, waited)
        return _first(self._looked_up if task.looked_up else self._in_lane, question)

    def judge_by_rules(self, message: MessageReceived) -> Verdict:
        """The verdict by the rules alone, without vetoes and chances."""
        return self._judge(message, self._local(message.conversation, self._rules))

    def calls(self, message: MessageReceived) -> bool:
        """Whether its sender addresses the bot, whether or not it may speak there."""
        wake = self.judge_by_rules(message)
        return isinstance(wake, Wake) and not wake.is_uncalled

    def would_answer(self, message: MessageReceived) -> bool:
        """Whether it wakes the bot and no veto applies; has no effects."""
        facts = self.gather_facts(message)
        wake = self._judge(message, facts.rules)
        return isinstance(wake, Wake) and not _first(
            self._preview, self._arrived(message, wake, facts)
        )

    def admits_command(self, message: MessageReceived, command: Command) -> bool:
        """Whether this command is accepted: its sender is allowed to ask anything there (not
        blocked, unlisted or a bot), and it is not too late.
        """
        if not command.lasts and self._is_stale(self._server_clock.least(message)):
            return False
        return self._admits_sender(message)

    def listens_to(self, message: MessageReceived) -> bool:
        """Whether its sender is answered at all; a new one is looked up meanwhile, as they may turn
        out to be a robot.
        """
        self._bot_detection.meet(message)
        return self._admits_sender(message)

    def _admits_sender(self, message: MessageReceived) -> bool:
        rules, robots = self._local(message.conversation, self._rules), self._bot_detection.known
        return not sender_veto(message, rules, accounts=self._accounts, robots=robots)

    def commanders(self, where: Conversation) -> Audience:
        if self._modes.of(where) is not Mode.LIVE:
            return Audience.OWNER
        if self._quiet_hours.leaves_to_admins(where):
            return Audience.GROUP_ADMIN
        return Audience.EVERYONE

    def may_begin(self, where: Conversation) -> bool:
        """Whether the bot may say something there that nobody asked for."""
        rules = self._local(where, self._rules)
        if rules.groups and where.session_id not in rules.groups:
            return False
        if self._mutes.holds_in(where) or self._modes.of(where) is not Mode.LIVE:
            return False
        is_unreachable = self._outbox.unreachable.holds_in(where)
        return not is_unreachable and not self._quiet_hours.holds_in(where, rules.quiet)

    def is_in_shadow(self, where: Conversation) -> bool:
        """Whether lines of the service are dropped there."""
        return self._modes.of(where) is Mode.SHADOW

    def may_be_muted(self, where: Conversation) -> bool:
        """Whether the bot may be muted there, possibly since before the connection."""
        return self._mutes.may_hold_in(where)

    def stops(self, said: Iterable[MessageReceived]) -> bool:
        """Whether these lines together contain blocked words, so that they are not answered."""
        return self._blocked_words.stops(said)

    def end(self, message: MessageReceived, why: str) -> float:
        """When the reason that now holds the bot back ends, in seconds since 1970; 0 if unknown."""
        where = message.conversation
        match why:
            case Silence.MUTED:
                return self._mutes.end(where)
            case Silence.QUIET:
                return self._quiet_hours.end(where)
            case Silence.LOOP:
                return max(0.0, self._wakers[where, message.sender.user_id].until)
            case _:
                return 0.0

    def _judge(self, message: MessageReceived, rules: Rules) -> Verdict:
        """A quote of a message in memory is decided at once, so that talk among people fills no
        lane.
        """
        robots = self._bot_detection.known
        verdict = judge(message, rules, accounts=self._accounts, robots=robots)
        if isinstance(verdict, NeedsQuoted):
            quoted = self._history.known(message.conversation, verdict.message_id)
            if quoted is None and not verdict.against:
                return verdict
            if quoted is None or not quoted.is_own:
                return verdict.otherwise
            return Observe(verdict.against) if verdict.against else Wake("quote")
        return verdict

    def _joins(self, where: Conversation, rules: Rules) -> bool:
        if self._mutes.holds_in(where) or self._modes.is_held(where):
            return False
        if self._quiet_hours.holds_in(where, rules.quiet):
            return False
        chances, now = self._chances.use(where), self._clock.now()
        return chances.take_chance(rules.chance, draw=self._ids.jitter(), now=now)

    # --- vetoes -------------------------------------------------------------------------------

    def _arrived(self, message: MessageReceived, wake: Wake, facts: Facts) -> Question:
        waited = self._server_clock.least(message)
        return Question(message, (message,), wake, facts, facts.at, waited)

    def _vetoes_on(self, occasion: Occasion) -> tuple[Veto, ...]:
        return tuple(veto for veto, occasions in self.vetoes if occasion in occasions)

    def _veto_muted(self, question: Question) -> Why:
        return Silence.MUTED if self._mutes.holds_in(question.message.conversation) else ""

    def _veto_unreachable(self, question: Question) -> Why:
        """QQ would refuse an answer there; an owner's question may test it."""
        message, unreachable = question.message, self._outbox.unreachable
        where = message.conversation
        if not unreachable.holds_in(where):
            return ""
        if message.sender.user_id in self._rules.owners:
            unreachable.end(where)
            return ""
        unreachable.tell(where)
        return Silence.CLOSED

    def _veto_blocked_words(self, question: Question) -> Why:
        return Silence.WORDS if self._blocked_words.stops(question.said) else ""

    def _veto_silence(self, question: Question) -> Why:
        where = question.message.conversation
        if self._modes.is_held(where):
            return Silence.HELD
        return Silence.SILENCED if self._quiet_hours.is_muted(where) else ""

    def _veto_quiet(self, question: Question) -> Why:
        if why := self._veto_silence(question):
            return why
        message, wake, rules = question.message, question.wake, question.facts.rules
        is_quiet = self._quiet_hours.keeps_from(
            message.conversation,
            is_owner=message.sender.user_id in self._rules.owners,
            is_weak=wake.weak,
            is_uncalled=wake.is_uncalled,
            rule=rules.quiet,
        )
        return Silence.QUIET if is_quiet else ""

    def _veto_stale(self, question: Question) -> Why:
        return Silence.STALE if self._is_stale(question.waited) else ""

    def _is_stale(self, waited: float) -> bool:
        return 0 < self._rules.stale < waited

    def _veto_loop(self, question: Question) -> Why:
        message = question.message
        where, sender = message.conversation, message.sender
        if not self._rules.loop or sender.user_id in self._rules.owners:
            return ""
        waker = self._wakers.use((where, sender.user_id))
        text = "".join(part.text for part in message.segments if isinstance(part, Text))
        spoke = self._outbox.spoke(where)
        loop = waker.add_wake(text, self._rules.loop, spoke=spoke, now=question.at)
        if loop is Loop.BEGINS:
            who = f"{label(sender.name, MAX_NAME)}({sender.user_id})"
            line = TOLD.format(self._owner.language, who=who, where=where)
            self._owner.tell(f"loop in {where}", line)
        return "" if loop is Loop.NONE else Silence.LOOP


def _first(vetoes: Iterable[Veto], question: Question) -> Why:
    for veto in vetoes:
        if why := veto(question):
            return why
    return ""
