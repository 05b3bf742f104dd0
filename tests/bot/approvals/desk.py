"""Approvals with fakes around them, and runs that wait for a word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.approvals.decision import Approvers, Candidate, DecisionHandler, Say
from bot.approvals.drafts import DraftApprovals
from bot.approvals.join_requests import JoinRequests, JoinRequestStore
from bot.approvals.new_groups import NewGroups
from bot.approvals.registry import LookUp, PendingDecisions
from bot.approvals.tool_calls import ToolApprovals
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, quote_in
from bot.core.language import Language
from bot.core.server_clock import ServerClock
from bot.memory.drafts import Drafts
from bot.memory.history import History
from bot.memory.modes import Modes
from bot.outbox.delivery import Postbox
from bot.outbox.outbox import Outbox
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
from tests.settings import kept_settings

OWNER = Conversation(BOT, "private", 999)
QUESTION = said("wipe it", message_id="q1")


async def lost(_message: MessageReceived) -> MessageReceived | None:
    """No server knows what is quoted."""
    return None


def build_decisions(
    calls: ToolApprovals,
    *,
    approvers: Approvers,
    store: RecordingStore,
    history: History,
    outbox: Outbox,
    server_clock: ServerClock,
    clock: ManualClock,
    look_up: LookUp = lost,
    is_finishing: Callable[[], bool] = lambda: False,
    drafts: Drafts | None = None,
    modes: Modes | None = None,
    transport: RecordingTransport | None = None,
) -> PendingDecisions:
    """All kinds of decisions; `transport` is told of those on join requests."""
    postbox = Postbox(outbox=outbox, history=history, clock=clock)
    return PendingDecisions(
        calls=calls,
        join_requests=JoinRequests(
            accept=lambda _: "ask",
            owners=approvers.owners,
            transport=transport or RecordingTransport(),
            request_store=JoinRequestStore(store=store, choices=store, clock=clock),
            postbox=postbox,
            server_clock=server_clock,
            clock=clock,
        ),
        drafts=DraftApprovals(
            drafts=drafts or Drafts(store=store, choices=store, clock=clock),
            outbox=outbox,
            store=store,
            history=history,
            postbox=postbox,
            server_clock=server_clock,
            clock=clock,
            language=approvers.language,
        ),
        groups=NewGroups(
            modes=modes or Modes(settings=kept_settings(store, clock=clock), choices=store),
            approvers=approvers,
            postbox=postbox,
            server_clock=server_clock,
            clock=clock,
        ),
        owners=approvers.owners,
        history=history,
        look_up=look_up,
        server_clock=server_clock,
        is_finishing=is_finishing,
        postbox=postbox,
        language=approvers.language,
    )


def take_named(handler: DecisionHandler, message: MessageReceived) -> bool:
    """Whether the handler has taken this reply, which names something itself."""
    reply = handler.read_reply(message)
    return reply is not None and reply.number is not None and handler.accept(message, reply.number, reply)


def candidates_for(handler: DecisionHandler, message: MessageReceived) -> Sequence[Candidate]:
    """What this message may be about, if it is a reply that names nothing."""
    reply = handler.read_reply(message)
    return () if reply is None or reply.number is not None else handler.list_candidates(message, reply)


@dataclass
class Desk:
    """Approvals with fakes around them; `resumed` is what was decided, `free` whether a run can go on now."""

    owners: frozenset[int] = frozenset({999})
    store: RecordingStore = field(default_factory=RecordingStore)
    resumed: list[tuple[str, Mapping[str, Decision]]] = field(default_factory=list)
    free: bool = True
    terminal: Say | None = None
    language: Language = Language.CHINESE
    at_server: dict[str, MessageReceived] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.transport, self.clock = RecordingTransport(), ManualClock()
        self.history = History(store=self.store)
        self.outbox, _ = build_outbox(self.transport, self.store, self.clock)
        self.ages = ServerClock(self.clock)
        approvers = Approvers(self.owners, self.terminal, self.language)
        postbox = Postbox(outbox=self.outbox, history=self.history, clock=self.clock)
        self.approvals = ToolApprovals(
            approvers=approvers,
            resume=self.resume,
            postbox=postbox,
            reply_postbox=postbox,
            server_clock=self.ages,
            clock=self.clock,
        )
        self.decisions = build_decisions(
            self.approvals,
            approvers=approvers,
            store=self.store,
            history=self.history,
            outbox=self.outbox,
            server_clock=self.ages,
            clock=self.clock,
            look_up=self.look_up,
        )

    async def look_up(self, message: MessageReceived) -> MessageReceived | None:
        return self.at_server.get(quote_in(message))

    def resume(
        self,
        _where: Conversation,
        run_id: str,
        decisions: Mapping[str, Decision],
        _question: MessageReceived,
        _at_latest: float,
    ) -> bool:
        if self.free:
            self.resumed.append((run_id, decisions))
        return self.free

    def wait(self, run: SuspendedRun, question: MessageReceived = QUESTION) -> SuspendedRun:
        """The run is suspended."""
        run = self.approvals.number(run)
        self.approvals.ask(run, question)
        return run

    def owner_says(self, text: str) -> bool:
        return self.decisions.take_reply(said(text, user=999, name="主人", where=OWNER))


@asynccontextmanager
async def desk(
    owners: frozenset[int] = frozenset({999}), *, terminal: Say | None = None, language: Language = Language.CHINESE
) -> AsyncIterator[Desk]:
    made = Desk(owners, terminal=terminal, language=language)
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
        conversation=str(GROUP),
        asker=Asker(str(asker), "小明"),
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
        conversation=str(GROUP),
        asker=Asker("777"),
        context=tool_context(),
    )
