"""Messages that come late: found in a history, delivered before the journal was read, left by an
earlier process, or kept by a broker for too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from bot.chat.active_conversations import ActiveConversations
from bot.chat.deduplicator import Past, SeenMessages
from bot.chat.question_queue import DeferredQuestions
from bot.chat.rate_limiter import RateLimiter
from bot.chat.tasks import YOUNG, Task
from bot.chat.wake_classifier import WakeClassifier
from bot.chat.way import MessageWay
from bot.core.events import Identity, MessageReceived, MessageWaited
from bot.core.journal import OpenTurn
from bot.core.language import CATALOGUE
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.outbox.owner_alerts import Owner
from bot.policy.wake import Wake
from frostagent.text.language import Phrase
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock


class LateMessages:
    """Sends questions on their way while they are young; the rest is only heard."""

    def __init__(
        self,
        *,
        seen: SeenMessages,
        server_clock: ServerClock,
        active_conversations: ActiveConversations,
        way: MessageWay,
        deferred: DeferredQuestions,
        history: History,
        clock: Clock,
    ) -> None:
        self._seen = seen
        self._server_clock = server_clock
        self._active_conversations = active_conversations
        self._way = way
        self._deferred = deferred
        self._history = history
        self._clock = clock

    def preload(
        self,
        seen: Iterable[tuple[Identity, float]],
        heard: Iterable[tuple[Conversation, float]],
        *,
        whole: bool = True,
    ) -> None:
        """Know again what an earlier process knew: messages taken (with their times), conversations
        in use.

        `whole` is False where that is not all.
        """
        earlier = self._seen.load_earlier((identity for identity, _ in seen), whole=whole)
        self._active_conversations.learn(
            (*heard, *((told.conversation, told.time) for told in earlier))
        )
        for message in earlier:
            self._take(message)

    def take_missed(self, message: MessageReceived, *, answered: bool = False) -> None:
        """A message found in the history: a young question without an answer is answered, the rest
        is heard.

        Known ones are nothing. One older than this process is left alone until the journal says
        what became of it.
        """
        if (
            message.has_identity
            and self._seen.past_of(message) is not Past.UNREAD
            and not self._seen.knows(message)
        ):
            self._seen.add_found(message)
            self._take(message, answer=not answered)

    def take_waited(self, message: MessageReceived) -> None:
        """A message that comes too late to be answered is heard, unless it is known."""
        self._take(message, answer=False)

    def ask_again(self, message: MessageReceived, *, retry: OpenTurn | None = None) -> None:
        """Answer a question that an earlier process took and did not come to, or whose turn it left
        open before anything came of it (`retry`), once its account is there: QQ may show that it
        was answered.

        Only the OneBot server may know what it quotes; until then it is in the store as one that
        nobody came to.
        """
        self._history.know(message)
        self._deferred.add(Task(message, Wake("retry"), self._clock.now(), retry))
        if message.self_id in self._active_conversations.accounts:
            self._deferred.enqueue_of(message.self_id)

    def _take(self, message: MessageReceived, *, answer: bool = True) -> None:
        self._server_clock.add_missed(message)
        self._way.receive(message, answer=answer and self._server_clock.age(message) < YOUNG)


TOLD: Final = Phrase(
    "有消息等了 {minutes:.0f} 分钟才轮到处理，这样的提问不再回答。"
    "请看看 worker 是否都在运行、够不够；分区多一些，能同时干活的就多一些。",
    "Messages waited {minutes:.0f} min before anybody came to them: such questions are not"
    " answered any more. See that the workers run and are enough; more partitions let more of"
    " them work.",
)
CATALOGUE.register(__name__, globals())


class ExpiredEvents:
    """Sends messages on their `way`. If some came too late and were only heard, people see that
    once a minute in each place, and the owners are told.
    """

    def __init__(
        self,
        *,
        way: MessageWay,
        late_messages: LateMessages,
        seen: SeenMessages,
        wake_classifier: WakeClassifier,
        rate_limiter: RateLimiter,
        owner: Owner,
    ) -> None:
        self.take: Callable[[MessageReceived], None] = way.receive
        self._late_messages = late_messages
        self._seen = seen
        self._wake_classifier = wake_classifier
        self._rate_limiter = rate_limiter
        self._owner = owner

    def take_waited(self, event: MessageWaited) -> None:
        """One that comes now, and has waited for so long."""
        message = event.message
        if event.seconds < YOUNG:
            self.take(message)
            return
        if not self._seen.knows(message) and self._wake_classifier.would_answer(message):
            self._rate_limiter.turn_away_late(message)
            line = TOLD.format(self._owner.tongue, minutes=event.seconds / 60)
            self._owner.tell("messages waited", line)
        self._late_messages.take_waited(message)

    def take_lost(self, message: MessageReceived) -> None:
        """One that never comes: what gateways lose the owners hear from elsewhere. A server may
        have told it twice, and the other one came.
        """
        if not self._seen.knows(message) and self._wake_classifier.would_answer(message):
            self._rate_limiter.turn_away_late(message)
