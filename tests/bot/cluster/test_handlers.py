"""What another bot of a cluster tells reaches who is to know, and what cannot be used stops nobody."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.broker.partitions import ClusterPartition
from adapters.broker.queries import ClusterQuery, ClusterReply, ContextQuery, ContextReply, DecisionResult, StatusQuery
from bot.build import App
from bot.cluster import handlers
from bot.cluster.handlers import announcement_handler
from bot.core.console_views import BotStatus, OwnerDecision, State
from bot.core.conversation import NOWHERE, Conversation
from bot.core.erasure import SubjectErased
from bot.core.journal import PlaceSet
from bot.core.other_bots import (
    EVERY_ACCOUNT,
    AccountScope,
    AlarmRaised,
    Announcement,
    PlaceChanged,
    RowChanged,
    UsageTaken,
)
from bot.core.settlement import Settled
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore

TAKEN = UsageTaken(GROUP, 777, 5.0, 0.0, 1.0, 1.0)


class Heard:
    """Somebody who notes what he was told."""

    def __init__(self, name: str, ledger: list[tuple[str, Any]]) -> None:
        self.name = name
        self.ledger = ledger

    def hear(self, what: Any) -> None:
        if what == "broken":
            raise ValueError(what)
        self.ledger.append((self.name, what))

    async def reread(self) -> None:
        self.ledger.append((self.name, None))

    async def elsewhere(self, note: SubjectErased) -> None:
        self.hear(note)


class Settings(Heard):
    """The same, of what is set by command."""

    def apply(self, note: Any) -> None:
        self.hear("broken" if note.value == "broken" else note)

    async def reload(self) -> None:
        await self.reread()


def told_by(ledger: list[tuple[str, Any]]) -> Any:
    return SimpleNamespace(
        spending=Heard("spending", ledger),
        settings_store=Settings("settings", ledger),
        forgetting=Heard("forgetting", ledger),
        owner=Heard("owner", ledger),
        history=Heard("history", ledger),
    )


@each_case(
    ("note", "who"),
    [
        (TAKEN, [("spending", TAKEN)]),
        (AlarmRaised("disk"), [("owner", AlarmRaised("disk"))]),
        (RowChanged("limits", "{}"), [("settings", RowChanged("limits", "{}"))]),
        (RowChanged("limits", "broken"), []),
        (PlaceChanged(GROUP, "hush", "mute"), [("settings", PlaceChanged(GROUP, "hush", "mute"))]),
        (SubjectErased(user=7), [("forgetting", SubjectErased(user=7))]),
        (None, [(name, None) for name in ("settings", "spending", "history")]),
    ],
)
async def test_each_note_reaches_who_is_to_know(note: Announcement | None, who: list[tuple[str, Any]]) -> None:
    ledger: list[tuple[str, Any]] = []
    hear = announcement_handler(told_by(ledger))
    await hear(note)
    assert ledger == who
    await hear(TAKEN)
    assert ledger == [*who, ("spending", TAKEN)]


def app_with(store: RecordingStore, scope: AccountScope = EVERY_ACCOUNT) -> App:
    """A bot with no more than its handlers are made of."""
    return cast("App", SimpleNamespace(store=store, journal=SimpleNamespace(scope=scope, books=store)))


async def test_what_a_worker_suspects_is_in_the_journal_by_its_partition() -> None:
    async def at_work() -> None: ...

    store = RecordingStore()
    ears = handlers.build_handlers(app_with(store, ClusterPartition(3, 8)), at_work)
    assert await ears.begin_event("one") == 0
    assert store.entries == [PlaceSet(NOWHERE, "begun 3", '{"one":1}')]
    assert ears.at_work is at_work


async def test_nothing_is_answered_before_a_bot_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, opened = list[ClusterQuery](), asyncio.Event()

    async def answer(_: App, ask: ClusterQuery) -> ClusterReply:
        asked.append(ask)
        return ContextReply(("all of it",))

    async def at_work() -> None:
        await opened.wait()

    async def told(ask: ClusterQuery) -> ClusterReply:
        return await ears.answer(ask)

    monkeypatch.setattr(handlers, "answer_query", answer)
    ears = handlers.build_handlers(app_with(RecordingStore()), at_work)
    monkeypatch.setattr(handlers, "AT_WORK_WITHIN", 0.01)
    word = OwnerDecision(10001, "D", 1, allows=True)
    assert await ears.answer(word) == DecisionResult(Settled("away", ""))
    assert asked == []
    monkeypatch.setattr(handlers, "AT_WORK_WITHIN", 60.0)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(told(word))
        await asyncio.sleep(0)
        assert asked == []
        opened.set()
    assert (waiting.result(), asked) == (ContextReply(("all of it",)), [word])


async def test_another_bots_questions_are_answered_as_the_pages_own_are(monkeypatch: pytest.MonkeyPatch) -> None:
    own, done = BotStatus(0, State(), 2), list[object]()

    async def read_status(_: App, *, with_drafts: bool) -> BotStatus:
        done.append(with_drafts)
        return own

    async def decide(_: App, decision: OwnerDecision) -> Settled:
        done.append(decision)
        return Settled("done", "here")

    def render_context(_: App, where: Conversation) -> tuple[str, ...]:
        done.append(where)
        return ("here",)

    for name, answer in (("read_status", read_status), ("decide", decide), ("render_context", render_context)):
        monkeypatch.setattr(handlers, name, answer)
    bot, word, where = app_with(RecordingStore()), OwnerDecision(10001, "D", 1, allows=False), NOWHERE
    assert await handlers.answer_query(bot, StatusQuery(with_drafts=True)) == own
    assert await handlers.answer_query(bot, word) == DecisionResult(Settled("done", "here"))
    assert await handlers.answer_query(bot, ContextQuery(where)) == ContextReply(("here",))
    assert done == [True, word, where]
