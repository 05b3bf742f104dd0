"""An outbox between fakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import structs

from bot.chat.mutes import Mutes
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import SendChanged, SendQueued, SendState, StoredSend
from bot.core.language import Language
from bot.core.ports import Store, Transport
from bot.memory.drafts import FORGOTTEN, Drafts
from bot.memory.modes import Modes
from bot.outbox.outbox import Outbox, Screen
from bot.outbox.owner_alerts import Owner
from bot.outbox.sender import Sender
from bot.outbox.sends import LossReporter, SendJournal
from bot.outbox.shadow import Shadow
from frostagent.types.ports import Clock
from frostagent.types.speech import Quote, Text
from tests.fakes import BOT, GROUP, CountingIds, ManualClock, RecordingStore, RecordingTransport, said
from tests.settings import kept_settings


def nobody(_action: SendMessage, _state: SendState, _reason: str) -> None:
    """Hears of no message that got lost."""


def build_outbox(
    transport: Transport,
    store: Store,
    clock: Clock,
    *,
    rate: float = 0.0,
    report_loss: LossReporter = nobody,
    jitter: float = 0.5,
    mutes: Mutes | None = None,
) -> tuple[Outbox, Sender]:
    """The outbox, and its sender."""
    journal = SendJournal(store=store, clock=clock, ids=CountingIds())
    ids = CountingIds(jitter)
    mutes = mutes or Mutes(clock=clock)
    sender = Sender(transport=transport, journal=journal, clock=clock, ids=ids, rate=rate, mutes=mutes)
    return Outbox(journal=journal, sender=sender, report_loss=report_loss), sender


class Looking(Screen):
    """Withholds nothing; `earlier` is what each look was told of before."""

    def __init__(self) -> None:
        self.earlier: list[str] = []

    def __call__(self, actions: Sequence[SendMessage], earlier: str = "", /) -> tuple[SendMessage, ...]:
        self.earlier.append(earlier)
        return tuple(actions)


def build_shadow(
    store: RecordingStore, sender: Sender, clock: Clock, *, question: MessageReceived | None = None
) -> Shadow:
    """Who keeps back what is said where the bot is a shadow; of turns about this `question`."""
    return Shadow(
        modes=Modes(settings=kept_settings(store), choices=store),
        drafts=Drafts(store=store, choices=store, clock=clock, forgotten=FORGOTTEN.format(Language.CHINESE)),
        journal=SendJournal(store=store, clock=clock, ids=CountingIds()),
        sender=sender,
        owner=Owner(owners=frozenset({999}), sender=sender, clock=clock),
        asked=lambda _where, _turn: question,
        clock=clock,
    )


class Post:
    """An outbox between fakes."""

    def __init__(
        self, transport: RecordingTransport | None = None, rate: float = 0.0, clock: ManualClock | None = None
    ) -> None:
        self.transport = transport or RecordingTransport()
        self.store, self.clock = RecordingStore(), clock or ManualClock()
        self.told: list[tuple[str, SendState]] = []
        self.mutes = Mutes(clock=self.clock)
        self.outbox, self.sender = build_outbox(
            self.transport, self.store, self.clock, rate=rate, report_loss=self._report, mutes=self.mutes
        )

    def _report(self, action: SendMessage, state: SendState, reason: str) -> None:
        assert reason
        self.told.append(("".join(part.text for part in action.segments if isinstance(part, Text)), state))

    @property
    def states(self) -> list[str]:
        """The states of all sends, in the order they were written down."""
        return [str(e.state) for e in self.store.entries if isinstance(e, SendQueued | SendChanged)]

    @property
    def rows(self) -> dict[str, str]:
        """The latest state of each send, by its words."""
        ids, rows = dict[str, str](), dict[str, str]()
        for entry in self.store.entries:
            match entry:
                case SendQueued(send_id=send_id, action=SendMessage(segments=(Text(text=text),)), state=state):
                    ids[send_id], rows[text] = text, str(state)
                case SendChanged(send_id=send_id, state=state):
                    rows[ids[send_id]] = str(state)
                case _:
                    pass
        return rows


@asynccontextmanager
async def office(
    transport: RecordingTransport | None = None, rate: float = 0.0, clock: ManualClock | None = None
) -> AsyncIterator[Post]:
    post = Post(transport, rate, clock)
    async with asyncio.timeout(30), post.outbox.open():
        yield post


def hello(text: str = "hello", where: Conversation = GROUP) -> SendMessage:
    return SendMessage(where, (Text(text),))


def own(text: str, message_id: str, *, ago: float = 0.0, where: Conversation = GROUP) -> MessageReceived:
    message = said((Quote("1"), Text(text)), user=BOT, message_id=message_id, at=False, where=where)
    return structs.replace(message, time=message.time - ago)


class Slow(RecordingTransport):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.open: dict[Conversation, int] = {}
        self.most = 0

    async def send(self, action: SendMessage) -> str:
        where = action.conversation
        self.open[where] = self.open.get(where, 0) + 1
        self.most = max(self.most, *self.open.values())
        self.entered.set()
        await self.gate.wait()
        self.open[where] -= 1
        return await super().send(action)


def stored(state: SendState, text: str = "hello", at: float = 1_700_000_000.0) -> StoredSend:
    return StoredSend(send_id="old-1", turn_id="t0", action=hello(text), final=True, at=at, state=state)
