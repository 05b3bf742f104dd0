"""What an earlier process left unfinished, once its requests to models that were cut off are
counted.

Where a day has no limit nothing is reserved for the first request of a question, which would cost
every message; that it may have been under way is told by its turn, which was left open with no row
for it. It counts then as much as would have been reserved. All other requests are reserved
(`bot/budget/meter.py`), so that a process that ends left a row for each.

A process may have ended before the model was asked (pictures were looked at) or, where a first
attempt took nothing, while it waited to ask once more: that counts, too, as nobody knows. Of a
turn that was forgotten under way nothing is left to estimate: that first request is in no sum.
"""

from __future__ import annotations

from contextvars import copy_context
from itertools import islice

from bot.chat.context_builder import ContextBuilder
from bot.chat.perception import MAX_PICTURES
from bot.chat.suspended import SuspendedTurn
from bot.core.journal import OpenTurn, Recovery, UsageAdded
from bot.core.ports import Store
from bot.core.segments import Picture
from bot.memory.history import History
from bot.prompt.compose import PicturePlace, QuestionPicture, now_line, with_pictures
from frostagent.engine.registry import Registry
from frostagent.models.failover import Failover
from frostagent.types.messages import AssistantMessage, ModelRequest, Usage
from frostagent.types.ports import Clock
from frostagent.types.runs import Asker, SuspendedRun

FIRST = 1  # step


class Unfinished:
    """Reads the store's `Recovery`. `model` is asked where a persona names no other."""

    def __init__(
        self,
        *,
        store: Store,
        history: History,
        context_builder: ContextBuilder,
        model: Failover,
        toolset: Registry,
        clock: Clock,
    ) -> None:
        self._store = store
        self._history = history
        self._context_builder = context_builder
        self._model = model
        self._toolset = toolset
        self._clock = clock

    async def read(self) -> Recovery | None:
        """All that was left; None where it cannot be read. What closes a turn of it goes behind the
        row of its request, so that a process that ends in between finds both or the row alone, and
        counts nothing twice.
        """
        recovery = await self._store.recover()
        if recovery is None:
            return None
        taken = [await self._taken(turn) for turn in recovery.turns if turn.uncounted]
        if taken:
            recovery = await self._store.recover()  # a recall may have come meanwhile
        if recovery is not None:
            self._store.put(*taken)
        return recovery

    async def _taken(self, turn: OpenTurn) -> UsageAdded:
        where = turn.question.conversation
        await self._history.load(where)
        model, usage = copy_context().run(self._estimate, turn)  # it is not this task's run
        self._history.doubt(where)  # the turn is not closed yet
        now = self._clock.now()  # not then: the sums of that day may have been made
        return UsageAdded(turn_id=turn.turn_id, model=model, usage=usage, at=now, step=FIRST)

    def _estimate(self, turn: OpenTurn) -> tuple[str, Usage]:
        begun = self._context_builder.go_on(turn.turn_id, _as_it_began(turn))
        run = begun.run.as_allowed_now()
        now = now_line(begun.now, begun.words)
        pictures = _pictures_of(turn) if begun.sees else ()
        shown = with_pictures(run.transcript, pictures, words=begun.words, now=now)
        model = run.model if isinstance(run.model, Failover) else self._model
        return model.estimate(ModelRequest(shown, self._toolset.definitions(run.ports, run.terms)))


def _as_it_began(turn: OpenTurn) -> SuspendedTurn:
    """The turn before its first step."""
    run = SuspendedRun(
        run_id=turn.turn_id,
        conversation=turn.question.conversation,
        asker=Asker(turn.question.sender.user_id),
        messages=(),
        message=AssistantMessage(""),
        answers=(),
        usage=Usage(),
        steps=0,
    )
    return SuspendedTurn(turn.question, turn.user, run)


def _pictures_of(turn: OpenTurn) -> tuple[QuestionPicture, ...]:
    """As many as its model was shown of its own; what they show adds nothing to their price."""
    said = (segment for line in (*turn.lines, turn.question) for segment in line.segments)
    own = (segment for segment in said if isinstance(segment, Picture))
    return tuple(
        QuestionPicture(PicturePlace.QUESTION, "picture", one.handle)
        for one in islice(own, MAX_PICTURES)
    )
