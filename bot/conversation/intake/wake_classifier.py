"""Whether a message wakes the bot: by the rules, by what is remembered, by where the bot may speak,
and now and then by chance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from bot.conversation.intake.group_probe import BotDetection
from bot.conversation.intake.quiet_hours import QuietHours
from bot.conversation.intake.vetoes import Vetoes
from bot.conversation.tasks import Task
from bot.domain.command import Command
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock, Ids
from bot.memory.history import History
from bot.memory.lru import DefaultLRU
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

COOLDOWN = 120.0  # seconds between two of them in one group
A_DAY = 20  # in one group
DAY = 86_400.0


class Chances:
    """Takes a chance now and then, in one group, no more often than people bear."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque(maxlen=A_DAY)

    def take(self, chance: float, *, draw: float, now: float) -> bool:
        """Whether to speak up; `chance` is from 0 to 1, `draw` in [0, 1)."""
        taken = self._taken
        if draw >= chance or (taken and now - taken[-1] < COOLDOWN):
            return False
        if len(taken) == A_DAY and now - taken[0] < DAY:
            return False
        taken.append(now)
        return True


MAX_PLACES = 2000


class WakeClassifier:
    """Classifies messages; `accounts` are all the bot has, as they become known."""

    def __init__(
        self,
        *,
        rules: Rules,
        history: History,
        vetoes: Vetoes,
        accounts: Collection[int],
        bot_detection: BotDetection,
        clock: Clock,
        ids: Ids,
        local: Local,
    ) -> None:
        """`local` are the rules of one place, made of those of all."""
        self._rules = rules
        self._local = local
        self._history = history
        self._vetoes = vetoes
        self._accounts = accounts
        self._bot_detection = bot_detection
        self._clock = clock
        self._ids = ids
        self._chances = DefaultLRU[Conversation, Chances](MAX_PLACES, Chances)

    def on(self, message: MessageReceived, *, answer: bool = True) -> Verdict:
        """The verdict. Where something holds the bot back, or it is not to `answer`, nothing wakes
        it.
        """
        match self.whoever_may_speak(message):
            case Wake() as wake:
                self._bot_detection.meet(message)
                return self._vetoes.on(message, wake) if answer else Observe(Silence.LATE)
            case NeedsQuoted() as verdict:
                return verdict if answer else Observe()
            case Observe(may_join=True) if answer and self._joins(message.conversation):
                return Wake("chance", weak=True)
            case verdict:
                return verdict

    def whoever_may_speak(self, message: MessageReceived) -> Verdict:
        """The same without a look at what holds it back, or at chances.

        A quote of a message in memory is decided at once, so that talk among people fills no lane.
        """
        verdict = self._judge(message)
        if isinstance(verdict, NeedsQuoted):
            quoted = self._history.known(message.conversation, verdict.message_id)
            if quoted is None and not verdict.against:
                return verdict
            if quoted is None or not quoted.is_own:
                return verdict.otherwise
            return Observe(verdict.against) if verdict.against else Wake("quote")
        return verdict

    def calls(self, message: MessageReceived) -> bool:
        """Whether its sender means the bot, wherever that may speak."""
        wake = self.whoever_may_speak(message)
        return isinstance(wake, Wake) and not wake.is_uncalled

    def would_answer(self, message: MessageReceived) -> bool:
        """Whether it wakes the bot, and nothing holds that back; asking changes nothing."""
        wake = self.whoever_may_speak(message)
        return isinstance(wake, Wake) and not self._vetoes.is_silenced(message, wake)

    @property
    def quiet_hours(self) -> QuietHours:
        """Where people want it to be quiet."""
        return self._vetoes.quiet_hours

    def hears(self, message: MessageReceived, command: Command) -> bool:
        """Whether this command is heard: its sender may ask anything there at all, neither blocked,
        unlisted nor a robot, and it is not too late for it.
        """
        if not command.lasts and self._vetoes.is_told_late(message):
            return False
        rules, robots = self._local(message.conversation, self._rules), self._bot_detection.known
        return not sender_veto(message, rules, accounts=self._accounts, robots=robots)

    def may_be_muted(self, where: Conversation) -> bool:
        """Whether nobody would hear the bot there, or nobody knows whether they would again."""
        return self._vetoes.may_be_muted(where)

    def stops(self, said: Iterable[MessageReceived]) -> bool:
        """Whether the operator's list has words of these lines."""
        return self._vetoes.stops(said)

    def against(self, task: Task, *, looked_up: bool) -> Why:
        """Why a question is not answered when its turn comes, see `Vetoes.against`."""
        if looked_up:
            self._bot_detection.meet(task.message)
        return self._vetoes.against(task, looked_up=looked_up)

    def end(self, message: MessageReceived, why: str) -> float:
        """When what holds it back ends, see `Vetoes.end`."""
        return self._vetoes.end(message, why)

    def _judge(self, message: MessageReceived) -> Verdict:
        rules = self._local(message.conversation, self._rules)
        return judge(message, rules, accounts=self._accounts, robots=self._bot_detection.known)

    def _joins(self, where: Conversation) -> bool:
        if self._vetoes.is_muted(where) or self.quiet_hours.holds_in(where):
            return False
        chances = self._chances.use(where)
        chance = self._local(where, self._rules).chance
        return chances.take(chance, draw=self._ids.jitter(), now=self._clock.now())
