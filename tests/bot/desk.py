"""Approvals with fakes around them, and runs that wait for a word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.conversation.approval.approval_replies import ApprovalReplies
from bot.conversation.approval.approvals import Approvals, Approvers, Say
from bot.conversation.approval.owner_replies import OwnerReplies
from bot.conversation.approval.requests import Requests
from bot.conversation.intake.server_clock import ServerClock
from bot.conversation.tasks import Resume
from bot.core.events import MessageReceived
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.policy.approval import quote_in
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.messages import AssistantMessage, ToolCall, Usage
from frostagent.types.runs import Asker, PendingCall, SuspendedRun
from frostagent.types.suspension import ApprovalRequest, Decision
from tests.bot.outbox.post import build_outbox
from tests.fakes import (
    BOT,
    GROUP,
    ManualClock,
    RecordingStore,
    RecordingTransport,
    said,
    tool_context,
)

OWNER = Conversation(BOT, "private", 999)
QUESTION = said("wipe it", message_id="q1")


@dataclass
class Desk:
    """Approvals with fakes around them; `resumed` is what was decided, `free` whether a run can go on now."""

    owners: frozenset[int] = frozenset({999})
    store: RecordingStore = field(default_factory=RecordingStore)
    resumed: list[tuple[str, Mapping[str, Decision]]] = field(default_factory=list)
    free: bool = True
    terminal: Say | None = None
    tongue: Language = Language.CHINESE
    at_server: dict[str, MessageReceived] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.transport, self.clock = RecordingTransport(), ManualClock()
        self.history = History(store=self.store)
        self.outbox, _ = build_outbox(self.transport, self.store, self.clock)
        self.ages = ServerClock(self.clock)
        approvers = Approvers(self.owners, self.terminal, self.tongue)
        postbox = Postbox(outbox=self.outbox, history=self.history, clock=self.clock)
        self.requests = Requests(resume=self.put, clock=self.clock, tongue=self.tongue)
        self.approvals = Approvals(approvers=approvers, requests=self.requests, postbox=postbox, clock=self.clock)
        self.word = ApprovalReplies(
            approvers=approvers,
            requests=self.requests,
            postbox=postbox,
            server_clock=self.ages,
            clock=self.clock,
        )
        self.owner_replies = OwnerReplies(
            self.word,
            owners=self.owners,
            history=self.history,
            look_up=self.look_up,
            server_clock=self.ages,
            is_finishing=lambda: False,
            postbox=postbox,
            tongue=self.tongue,
        )

    async def look_up(self, message: MessageReceived) -> MessageReceived | None:
        return self.at_server.get(quote_in(message))

    def put(self, _where: Conversation, run: Resume) -> bool:
        if self.free:
            self.resumed.append((run.turn_id, run.decisions))
        return self.free

    def wait(self, run: SuspendedRun, question: MessageReceived = QUESTION) -> SuspendedRun:
        """The run is suspended."""
        run = self.requests.number(run)
        self.approvals.ask(run, question)
        return run

    def owner_says(self, text: str) -> bool:
        return self.owner_replies.take(said(text, user=999, name="主人", where=OWNER))


@asynccontextmanager
async def desk(
    owners: frozenset[int] = frozenset({999}), *, terminal: Say | None = None, tongue: Language = Language.CHINESE
) -> AsyncIterator[Desk]:
    made = Desk(owners, terminal=terminal, tongue=tongue)
    async with asyncio.timeout(30), made.outbox.open():
        yield made
        await made.outbox.wait_idle()


def waiting(*names: str, run_id: str = "t1", asker: int = 777, text: str = "", since: float = 0.0) -> SuspendedRun:
    """A run in which calls of these tools wait."""
    arguments = json.dumps({"text": text}, ensure_ascii=False) if text else "{}"
    made = tuple(ToolCall(f"c{index}", name, arguments) for index, name in enumerate(names))
    expires = ManualClock().now() + 600
    return SuspendedRun(
        run_id=run_id,
        conversation=GROUP,
        asker=Asker(asker, "小明"),
        messages=(),
        message=AssistantMessage("", made),
        answers=tuple(PendingCall(call, f"{call.name} {arguments}", expires, "", since=since) for call in made),
        usage=Usage(),
        steps=1,
    )


def request() -> ApprovalRequest:
    return ApprovalRequest(
        run_id="t1",
        step=1,
        call_id="c0",
        name="mail",
        arguments={},
        asks="?",
        conversation=GROUP,
        asker=Asker(777),
        context=tool_context(),
    )
