from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.journal import ENTRIES, Entry, MessageObserved, RunResumed, Spoken, TurnClosed, TurnOpened, Undelivered
from bot.core.ports import JournalObserver, Store
from bot.core.segments import Picture
from bot.memory.journal_observers import ContentLog, ObservedStore, shown_first
from frostagent.types.messages import AssistantMessage, Message, Usage, UserMessage
from frostagent.types.runs import Stop
from frostagent.types.speech import Text
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore, said


class RecordingWitness:
    sees = ENTRIES

    def __init__(self) -> None:
        self.seen: list[Entry] = []

    def see(self, entry: Entry) -> None:
        self.seen.append(entry)


class NamedWitness:
    """Notes in a ledger that others note in, too, what it saw before the store had it."""

    sees = ENTRIES

    def __init__(self, name: str, ledger: list[tuple[str, Entry]], store: RecordingStore) -> None:
        self._name = name
        self._ledger = ledger
        self._store = store

    def see(self, entry: Entry) -> None:
        assert entry not in self._store.entries
        self._ledger.append((self._name, entry))


class BrokenWitness:
    sees = ENTRIES

    def see(self, entry: Entry) -> None:
        raise LookupError("a bug")


def opened(question: MessageReceived) -> TurnOpened:
    return TurnOpened(turn_id="t1", question=question, user=UserMessage("rendered"), at=0)


def closed(*answer: AssistantMessage) -> TurnClosed:
    round_: tuple[Message, ...] = (UserMessage("rendered"), *answer) if answer else ()
    return TurnClosed(turn_id="t1", stop=Stop.ANSWERED, round=round_, usage=Usage(), steps=1, at=0)


async def test_every_entry_is_seen_in_order_and_stored() -> None:
    store, witness = RecordingStore(), RecordingWitness()
    witnessed = ObservedStore(store, [witness])
    first, second, third = RunResumed("t1"), opened(said("hi")), RunResumed("t2")
    witnessed.put(first)
    assert await witnessed.commit(second, third)
    assert witness.seen == store.entries == [first, second, third]
    assert store.durable == 3


async def test_what_is_read_comes_from_the_store() -> None:
    message = said("hi", message_id="7")
    store = RecordingStore(known=[message])
    witnessed = ObservedStore(store, [])
    assert await witnessed.find(GROUP, "7") == message
    assert await witnessed.remember(GROUP) == await store.remember(GROUP)
    assert await witnessed.recover() == store.recovery
    witnessed.put(opened(message))
    assert await witnessed.spoken("t1") == Spoken(message, (), is_over=False)
    assert await witnessed.spoken("t2") is None
    assert await witnessed.heard(GROUP, ["7", "8"]) == {"7"}
    assert await witnessed.latest(GROUP) == await store.latest(GROUP) != ()


async def test_a_witness_that_breaks_stops_neither_the_others_nor_the_store(caplog: pytest.LogCaptureFixture) -> None:
    store, witness = RecordingStore(), RecordingWitness()
    ObservedStore(store, [BrokenWitness(), witness]).put(RunResumed("t1"))
    assert len(witness.seen) == len(store.entries) == 1
    assert "witness BrokenWitness broke on run_resumed" in caplog.text


class CountingStore(ObservedStore):
    """One that does more than show."""

    def __init__(self, store: Store, witnesses: Sequence[JournalObserver]) -> None:
        super().__init__(store, witnesses)
        self.taken = 0

    def put(self, *entries: Entry) -> None:
        self.taken += len(entries)
        super().put(*entries)


@each_case("kind", [ObservedStore, CountingStore])
async def test_who_is_shown_first_sees_each_entry_before_the_others_and_each_sees_it_once(
    kind: type[ObservedStore],
) -> None:
    store, ledger = RecordingStore(), list[tuple[str, Entry]]()
    new, one, other = (NamedWitness(name, ledger, store) for name in ("new", "one", "other"))
    witnessed = kind(store, [one, other])
    first, second = RunResumed("t1"), RunResumed("t2")
    shown = shown_first(witnessed, new)
    shown.put(first)
    assert await shown.commit(second)
    assert ledger == [(name, entry) for entry in (first, second) for name in ("new", "one", "other")]
    assert store.entries == [first, second]
    ledger.clear()
    witnessed.put(third := RunResumed("t3"))  # whoever has the store of before shows it as before
    assert ledger == [("one", third), ("other", third)]


def test_a_store_that_does_more_than_show_keeps_doing_it() -> None:
    counting, witness = CountingStore(RecordingStore(), []), RecordingWitness()
    shown_first(counting, witness).put(RunResumed("t1"), RunResumed("t2"))
    assert (counting.taken, len(witness.seen)) == (2, 2)


def test_a_store_that_shows_nobody_anything_shows_one_from_then_on() -> None:
    store, witness = RecordingStore(), RecordingWitness()
    shown_first(store, witness).put(entry := RunResumed("t1"))
    assert witness.seen == store.entries == [entry]


def test_stores_that_only_show_are_one_layer_however_many_see() -> None:
    store = RecordingStore()
    shown = shown_first(shown_first(shown_first(store, RecordingWitness()), RecordingWitness()), RecordingWitness())
    assert shown._store is store


def test_the_content_log_has_the_question_and_the_final_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ContentLog()
    for entry in (
        MessageObserved(said("overheard"), overheard=True),
        opened(said((Text(" what "), Picture(), Text("is it? ")))),
        closed(AssistantMessage("let me see"), AssistantMessage("a fox")),
        closed(),
        replace(closed(AssistantMessage("an owl")), undelivered=Undelivered.UNCONFIRMED),
        replace(closed(), stop=Stop.FAILED, error="content_filter: a fox"),
    ):
        log.see(entry)
    assert [record.getMessage() for record in caplog.records] == [
        "run t1 was asked by 777: what is it?",
        "run t1 answered: a fox",
        "run t1 unconfirmed: an owl",
        "run t1 failed: content_filter: a fox",
    ]
