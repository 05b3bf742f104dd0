"""Messages as they come, and those that waited in a broker for longer than anybody waits for an
answer: when no worker was there, or too few were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bot.conversation.intake.seen import SeenMessages
from bot.conversation.intake.verdicts import Verdicts
from bot.conversation.queue.turnstile import Turnstile
from bot.conversation.recovery.late import Late
from bot.conversation.tasks import YOUNG
from bot.conversation.way import MessageWay
from bot.domain.events import MessageReceived, MessageWaited
from bot.speaking.owner_alerts import Owner

TOLD: Final = (
    (
        "有消息等了 {minutes:.0f} 分钟才轮到处理，这样的提问不再回答。"
        "请看看 worker 是否都在运行、够不够；分区多一些，能同时干活的就多一些。"
    ),
    (
        "Messages waited {minutes:.0f} min before anybody came to them: such questions are not"
        " answered any more. See that the workers run and are enough; more partitions let more of"
        " them work."
    ),
)


class Overdue:
    """Sends messages on their `way`. Of those that are too late, only heard, people see it once a
    minute in each place, as where too many wait in a lane, and the owners hear.
    """

    def __init__(
        self,
        *,
        way: MessageWay,
        late: Late,
        seen: SeenMessages,
        verdicts: Verdicts,
        turnstile: Turnstile,
        owner: Owner,
    ) -> None:
        self.take: Callable[[MessageReceived], None] = way.take
        self._late = late
        self._seen = seen
        self._verdicts = verdicts
        self._turnstile = turnstile
        self._owner = owner

    def take_waited(self, event: MessageWaited) -> None:
        """One that comes now, and has waited for so long."""
        message = event.message
        if event.seconds < YOUNG:
            self.take(message)
            return
        if not self._seen.knows(message) and self._verdicts.would_answer(message):
            self._turnstile.come_too_late(message)
            line = TOLD[self._owner.tongue].format(minutes=event.seconds / 60)
            self._owner.tell("messages waited", line)
        self._late.take_waited(message)

    def take_lost(self, message: MessageReceived) -> None:
        """One that never comes: what gateways lose the owners hear from elsewhere. A server may
        have told it twice, and the other one came.
        """
        if not self._seen.knows(message) and self._verdicts.would_answer(message):
            self._turnstile.come_too_late(message)
