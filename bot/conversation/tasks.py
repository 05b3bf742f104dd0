"""What lanes do, and what waits for its account and for what QQ shows before a lane may do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import OpenTurn
from bot.domain.suspension import Decision
from bot.policy.wake import NeedsQuoted, Wake


@dataclass(frozen=True, slots=True)
class Arrival:
    """An account has connected; `heard` is where it is in use, each with the time of the last
    message before that.

    Or it is there, and these places are to be looked at before anything new is begun in them.
    """

    account: int
    heard: tuple[tuple[Conversation, float], ...]


@dataclass(frozen=True, slots=True)
class Resume:
    """What a lane does: go on with a suspended turn; `question` is the turn's, None where no such
    turn waits.
    """

    turn_id: str
    decisions: Mapping[str, Decision]
    question: MessageReceived | None


@dataclass(frozen=True, slots=True)
class Task:
    """What a lane does: answer the message, or first find out whether it is for us.

    It was taken at `since`, by our clock: the server's may be another. `retry` is its interrupted
    turn. `told`: it is older than this process, and no journal knows of it. `lost`: nor is it known
    what was done for it already, so its asker is asked to ask again.
    """

    message: MessageReceived
    verdict: Wake | NeedsQuoted
    since: float
    retry: OpenTurn | None = None
    told: bool = False
    lost: bool = False

    @property
    def may_be_answered(self) -> bool:
        """Whether own words that nobody knows, and that quote nothing, count as its answer: in
        private none quotes.
        """
        return self.lost or (self.told and not self.message.conversation.is_group)


class PutOff:
    """Questions whose account is not there, in order."""

    def __init__(self) -> None:
        self._tasks: list[Task] = []

    def add(self, task: Task) -> None:
        """It waits."""
        self._tasks.append(task)

    def take(self, account: int) -> list[Task]:
        """Those of an account, which wait no more."""
        return self._part(lambda message: message.self_id == account)

    def drop(self, where: Conversation, message_id: str) -> list[Task]:
        """Those of a message, which wait no more."""
        return self._part(
            lambda message: (message.conversation, message.message_id) == (where, message_id)
        )

    def _part(self, meant: Callable[[MessageReceived], bool]) -> list[Task]:
        taken = [task for task in self._tasks if meant(task.message)]
        self._tasks = [task for task in self._tasks if not meant(task.message)]
        return taken
