"""What lanes do, and what waits for its account before a lane may do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import OpenTurn
from bot.domain.suspension import Decision
from bot.policy.wake import NeedsQuoted, Wake


@dataclass(frozen=True, slots=True)
class Resume:
    """What a lane does: go on with a suspended turn; `question` is the turn's, None where no such turn waits."""

    turn_id: str
    decisions: Mapping[str, Decision]
    question: MessageReceived | None


@dataclass(frozen=True, slots=True)
class Task:
    """What a lane does: answer the message, or first find out whether it is for us.

    It was taken at `since`, by our clock: the server's may be another. `retry` is its interrupted turn. `lost`: nobody
    knows what was done for it already, so its asker is asked to ask again.
    """

    message: MessageReceived
    verdict: Wake | NeedsQuoted
    since: float
    retry: OpenTurn | None = None
    lost: bool = False


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
        return self._part(lambda message: (message.conversation, message.message_id) == (where, message_id))

    def _part(self, meant: Callable[[MessageReceived], bool]) -> list[Task]:
        taken = [task for task in self._tasks if meant(task.message)]
        self._tasks = [task for task in self._tasks if not meant(task.message)]
        return taken
