from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from bot.domain.chat import AssistantMessage, Message, Usage, UserMessage
from bot.domain.events import MessageReceived
from bot.domain.journal import Entry, MessageObserved, RunResumed, Spoken, TurnClosed, TurnOpened
from bot.domain.run import Stop
from bot.domain.segments import Picture, Text
from bot.memory.witnesses import ContentLog, WitnessedStore
from tests.fakes import GROUP, RecordingStore, said


class RecordingWitness:
    def __init__(self) -> None:
        self.seen: list[Entry] = []

    def see(self, entry: Entry) -> None:
        self.seen.append(entry)


class BrokenWitness:
    def see(self, entry: Entry) -> None:
        raise LookupError("a bug")


def opened(question: MessageReceived) -> TurnOpened:
    return TurnOpened(turn_id="t1", question=question, user=UserMessage("rendered"), at=0)


def closed(*answer: AssistantMessage) -> TurnClosed:
    round_: tuple[Message, ...] = (UserMessage("rendered"), *answer) if answer else ()
    return TurnClosed(turn_id="t1", stop=Stop.ANSWERED, round=round_, usage=Usage(), steps=1, at=0)


async def test_every_entry_is_seen_in_order_and_stored() -> None:
    store, witness = RecordingStore(), RecordingWitness()
    witnessed = WitnessedStore(store, [witness])
    first, second, third = RunResumed("t1"), opened(said("hi")), RunResumed("t2")
    witnessed.put(first)
    assert await witnessed.commit(second, third)
    assert witness.seen == store.entries == [first, second, third]
    assert store.durable == 3


async def test_what_is_read_comes_from_the_store() -> None:
    message = said("hi", message_id="7")
    store = RecordingStore(known=[message])
    witnessed = WitnessedStore(store, [])
    assert await witnessed.find(GROUP, "7") == message
    assert await witnessed.remember(GROUP) == await store.remember(GROUP)
    assert await witnessed.recover() == store.recovery
    witnessed.put(opened(message))
    assert await witnessed.spoken("t1") == Spoken(message, (), is_over=False)
    assert await witnessed.spoken("t2") is None
    assert await witnessed.heard(GROUP, ["7", "8"]) == {"7"}


async def test_a_witness_that_breaks_stops_neither_the_others_nor_the_store(caplog: pytest.LogCaptureFixture) -> None:
    store, witness = RecordingStore(), RecordingWitness()
    WitnessedStore(store, [BrokenWitness(), witness]).put(RunResumed("t1"))
    assert len(witness.seen) == len(store.entries) == 1
    assert "witness BrokenWitness broke on run_resumed" in caplog.text


def test_the_content_log_has_the_question_and_the_final_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ContentLog()
    for entry in (
        MessageObserved(said("overheard"), overheard=True),
        opened(said((Text(" what "), Picture(), Text("is it? ")))),
        closed(AssistantMessage("let me see"), AssistantMessage("a fox")),
        closed(),
        replace(closed(), stop=Stop.FAILED, error="content_filter: a fox"),
    ):
        log.see(entry)
    assert [record.getMessage() for record in caplog.records] == [
        "run t1 was asked by 777: what is it?",
        "run t1 answered: a fox",
        "run t1 failed: content_filter: a fox",
    ]
