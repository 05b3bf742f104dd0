"""A group in which the bot is a shadow, with fakes around: what it would say in turn `t1` are drafts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.approvals.decision import Approvers
from bot.approvals.drafts import read_draft_reply
from bot.approvals.tool_calls import ToolApprovals
from bot.chat.lanes import Lanes, Order
from bot.chat.mutes import Mutes
from bot.chat.tasks import Resume, Work, due_of, person_of
from bot.core.actions import SendMessage, SentSegment
from bot.core.conversation import Conversation
from bot.core.journal import SendChanged, TurnOpened
from bot.core.server_clock import ServerClock
from bot.core.settlement import Settled
from bot.memory.history import History
from bot.memory.modes import Mode
from bot.outbox.delivery import Postbox
from bot.outbox.outbox import Outbox
from bot.outbox.sender import Sender
from bot.outbox.sends import SendJournal
from frostagent.types.messages import UserMessage
from frostagent.types.speech import Receipt, Text
from tests.bot.approvals.desk import build_decisions
from tests.bot.outbox.post import build_shadow, nobody
from tests.fakes import BOT, GROUP, CountingIds, ManualClock, RecordingStore, RecordingTransport, said

OWNER = Conversation(BOT, "private", 999)
QUESTION = said("什么时候去？", message_id="q1")


class Studio:
    """All of it; a second one with the same store is the life after."""

    def __init__(self, store: RecordingStore | None = None, transport: RecordingTransport | None = None) -> None:
        self.store, self.transport = store or RecordingStore(), transport or RecordingTransport()
        self.clock, self.history = ManualClock(QUESTION.time), History(store=self.store)
        journal = SendJournal(store=self.store, clock=self.clock, ids=CountingIds())
        mutes = Mutes(clock=self.clock)
        sender = Sender(transport=self.transport, journal=journal, clock=self.clock, ids=CountingIds(), mutes=mutes)
        self.shadow = build_shadow(self.store, sender, self.clock, question=QUESTION)
        self.shadow._modes.put(GROUP, Mode.SHADOW)
        self.outbox = Outbox(journal=journal, sender=sender, report_loss=nobody, shadow=self.shadow)
        self.server_clock = ServerClock(self.clock)
        runs = Lanes[Work](clock=self.clock, order=Order(person_of, due_of))
        approvers = Approvers(frozenset({999}))
        postbox = Postbox(outbox=self.outbox, history=self.history, clock=self.clock)
        self.decisions = build_decisions(
            ToolApprovals(
                approvers=approvers,
                resume=lambda where, *resume: runs.put(where, Resume(*resume)),
                postbox=postbox,
                reply_postbox=postbox,
                server_clock=self.server_clock,
                clock=self.clock,
            ),
            approvers=approvers,
            store=self.store,
            history=self.history,
            outbox=self.outbox,
            server_clock=self.server_clock,
            clock=self.clock,
            is_finishing=lambda: runs.finishing,
            drafts=self.shadow.drafts,
        )
        self.drafts = self.decisions.drafts
        opened = TurnOpened(turn_id="t1", question=QUESTION, user=UserMessage("q"), at=self.clock.now())
        self.store.put(opened)

    async def would_say(self, *segments: SentSegment, turn_id: str = "t1") -> Receipt:
        return await self.outbox.send(SendMessage(GROUP, segments), turn_id=turn_id, final=True)

    async def says(self, text: str) -> Settled:
        """The owner says something on a draft, which he names."""
        reply = read_draft_reply(text)
        assert reply is not None
        assert reply.number is not None
        return await self.drafts.settle(reply.number, reply, by="主人")

    @property
    def shown(self) -> list[str]:
        """What the owner was told."""
        return [action.words for action in self.transport.sent if action.conversation == OWNER]

    @property
    def credits(self) -> list[tuple[str, str]]:
        """What became of drafts, and by whom."""
        changed = [entry for entry in self.store.entries if isinstance(entry, SendChanged)]
        return [(str(one.state), one.reason) for one in changed if one.send_id.startswith("draft-")]

    @property
    def heard(self) -> list[tuple[SentSegment, ...]]:
        """What the group was told."""
        return [action.segments for action in self.transport.sent if action.conversation == GROUP]

    @property
    def told(self) -> list[str]:
        """What the next prompt tells of it."""
        heard = self.history.take_overheard(GROUP)
        return ["".join(part.text for part in one.segments if isinstance(part, Text)) for one in heard]


@asynccontextmanager
async def studio(store: RecordingStore | None = None) -> AsyncIterator[Studio]:
    made = Studio(store)
    async with asyncio.timeout(30), made.outbox.open():
        await made.shadow.drafts.start()
        yield made
        await made.outbox.wait_idle()
