"""The entries of turns in the journal."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from msgspec.structs import replace

from bot.budget.spending import Spending
from bot.core.conversation import Conversation
from bot.core.journal import Entry, OpenTurn, TurnClosed, TurnOpened, Undelivered
from bot.core.ports import Store
from bot.memory.history import History
from bot.prompt.compose import Question
from frostagent.engine.engine import RunState
from frostagent.types.messages import Message, UserMessage
from frostagent.types.ports import Clock
from frostagent.types.runs import Outcome, Stop

GIVEN_UP = "given_up: what was asked or read is gone, another turn has it, or it is not asked again"


class TurnJournal:
    """Makes the entries of turns, and closes those that leave no round. If `spending` has limits,
    first requests are reserved before they are made.
    """

    def __init__(
        self,
        store: Store,
        history: History,
        clock: Clock,
        *,
        spending: Spending,
    ) -> None:
        self._spending = spending
        self._store = store
        self._history = history
        self._clock = clock

    def opened(
        self,
        turn_id: str,
        question: Question,
        user: UserMessage,
        repeats: OpenTurn | None,
        *,
        uncalled: bool = False,
    ) -> tuple[Entry, ...]:
        """The entries of a new turn, which closes the one that it repeats, if any."""
        opened = TurnOpened(
            turn_id=turn_id,
            question=question.message,
            user=user,
            at=self._clock.now(),
            retry_of=repeats.turn_id if repeats else "",
            lines=question.lines,
            uncalled=uncalled,
        )
        if not repeats:
            return (opened,)
        interrupted = RunState().outcome(Stop.INTERRUPTED)
        return self.closed(repeats.turn_id, interrupted), opened

    def closed(
        self,
        turn_id: str,
        outcome: Outcome,
        round_: tuple[Message, ...] = (),
        undelivered: Undelivered | None = None,
    ) -> TurnClosed:
        """The entry of a turn that ends now; `round_` is its part of later prompts."""
        return TurnClosed(
            turn_id=turn_id,
            stop=outcome.stop,
            round=round_,
            usage=outcome.usage,
            steps=outcome.steps,
            at=self._clock.now(),
            error=outcome.error,
            undelivered=undelivered,
        )

    async def begin(self, *entries: Entry) -> None:
        """Write these before a model is asked. With limits, the commit of the first request's
        reservation includes them: one commit costs as much as the other.
        """
        if self._spending.has_limits:
            self._store.put(*entries)
        else:
            await self._store.commit(*entries)

    def commit(self, *entries: Entry) -> Coroutine[Any, Any, bool]:
        """Write these; False if their durability cannot be promised."""
        return self._store.commit(*entries)

    def give_up(
        self, where: Conversation, turn_id: str, *entries: Entry, state: RunState | None = None
    ) -> None:
        """Close a turn that does not go on, after these entries. It leaves no round, and the next
        turn reads what it had overheard.
        """
        outcome = (state or RunState()).outcome(Stop.STOPPED, error=GIVEN_UP)
        closed = self.closed(turn_id, outcome)
        self._store.put(*entries, replace(closed, unread=True))
        self._history.doubt(where)
