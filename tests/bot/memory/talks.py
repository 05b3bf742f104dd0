"""A group whose talks are looked through for facts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.journal import Entry, MessageObserved, TurnClosed, TurnOpened
from bot.core.memories import Memories
from bot.core.ports import Store
from bot.memory.extraction import LEAST, PICKED_WITHIN, Extraction, OpenTalks
from bot.memory.remembering import Remembering
from bot.memory.speakers import Speakers
from frostagent.types.messages import Completion, Usage, UserMessage
from frostagent.types.runs import Stop
from tests.bot.memory.facts import KeptFacts
from tests.fakes import BOT, GROUP, CountingIds, RecordingStore, ScriptedModel, Step, SteppedClock, said, words
from tests.settings import kept_settings

MING, HONG = 777, 888
ROUNDS, QUIET = 8, 1200.0  # as they are specified: eight rounds, or twenty minutes in seconds
NAMES = {MING: "小明", HONG: "小红", BOT: "小霜"}


class Room:
    """A group in which the bot has had rounds, and a model that is asked for facts."""

    def __init__(
        self,
        *answers: Step,
        store: Store | None = None,
        facts: Memories | None = None,
        patience: float = PICKED_WITHIN,
        before: RecordingStore | None = None,
    ) -> None:
        self.store, self.clock = before or RecordingStore(), SteppedClock()
        self.spent: set[str] = set()
        self.model = ScriptedModel(*answers)
        self.quiet = asyncio.Event()
        self.quiet.set()
        speakers = Speakers(store=self.store)
        speakers.learn(GROUP, ())
        self.facts = KeptFacts(self.store)
        book = Remembering(
            memories=facts or self.facts,
            speakers=speakers,
            store=store or self.store,
            clock=self.clock,
            ids=CountingIds(),
        )
        self.extraction = Extraction(
            model=self.model,
            remembering=book,
            speakers=speakers,
            store=self.store,
            clock=self.clock,
            open_talks=OpenTalks(settings=kept_settings(self.store), clock=self.clock),
            is_spent=self.spent.__contains__,
            patience=patience,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        with self.model:
            async with self.extraction.open(self.quiet.wait):
                yield

    def see(self, entry: Entry) -> None:
        """Something is written down."""
        self.extraction.see(entry)

    def hear(self, text: str, *, user: int = MING, message_id: str | None = None, where: Conversation = GROUP) -> None:
        message = said(text, at=False, user=user, name=NAMES[user], message_id=message_id, where=where)
        self.see(MessageObserved(message, overheard=True))

    def rounds(self, number: int = ROUNDS, *, where: Conversation = GROUP) -> None:
        for _ in range(number):
            question = said("在吗", user=HONG, where=where)
            opened = TurnOpened(turn_id=f"t{question.message_id}", question=question, user=UserMessage("x"), at=0.0)
            self.see(opened)
            self.last = opened.turn_id
            self.see(TurnClosed(turn_id=opened.turn_id, stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=0.0))

    def due(self, where: Conversation = GROUP) -> None:
        """Enough is said there, and answered."""
        for _ in range(LEAST):
            self.hear("我对花生过敏", where=where)
        self.rounds(where=where)

    def told(self) -> str:
        """What the model was shown the last time."""
        last = self.model.requests[-1].messages[-1]
        assert isinstance(last, UserMessage)
        return last.text


def answer(*facts: tuple[str, str, int]) -> Completion:
    rows = [{"about": about, "fact": fact, "lines": [line]} for about, fact, line in facts]
    return replace(words(json.dumps(rows, ensure_ascii=False)), usage=Usage(100, 10), endpoint="cheap@x.test")
