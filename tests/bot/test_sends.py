from __future__ import annotations

import pytest

from bot.domain.actions import SendMessage
from bot.domain.journal import SendChanged, SendQueued, SendState, StoredSend
from bot.domain.segments import Text
from bot.sends import MAX_REASON, Rows, Send
from tests.fakes import GROUP, ManualClock, RecordingStore

ACTION = SendMessage(GROUP, (Text("hello"),))
NOW = ManualClock().now()


@pytest.fixture
def store() -> RecordingStore:
    return RecordingStore()


@pytest.fixture
def rows(store: RecordingStore) -> Rows:
    return Rows(store=store, clock=ManualClock())


async def test_a_send_that_leaves_at_once_is_one_durable_row_that_says_sending(
    rows: Rows, store: RecordingStore
) -> None:
    await rows.sending(Send("s1", "t1", ACTION, True, NOW))
    row = SendQueued(send_id="s1", turn_id="t1", action=ACTION, final=True, at=NOW, state=SendState.SENDING)
    assert store.entries == [row]
    assert store.durable == 1


async def test_a_send_that_waited_is_one_row_and_its_changes(rows: Rows, store: RecordingStore) -> None:
    send = Send("s1", "t1", ACTION, True, NOW)
    rows.queued(send)
    rows.queued(send)
    await rows.sending(send)
    rows.changed(send, SendState.CONFIRMED, message_id="5")
    assert store.entries == [
        SendQueued(send_id="s1", turn_id="t1", action=ACTION, final=True, at=NOW),
        SendChanged(send_id="s1", state=SendState.SENDING, at=NOW),
        SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW, message_id="5"),
    ]
    assert (send.state, store.durable) == (SendState.CONFIRMED, 2)


async def test_a_change_makes_the_row_it_needs_and_keeps_its_reason_short(rows: Rows, store: RecordingStore) -> None:
    rows.changed(Send("s1", "", ACTION, False, NOW), SendState.DROPPED, reason="x" * 9999)
    assert [entry.type for entry in store.entries] == ["send_queued", "send_changed"]
    assert store.entries[1] == SendChanged(send_id="s1", state=SendState.DROPPED, at=NOW, reason="x" * MAX_REASON)


async def test_what_an_earlier_process_wrote_down_is_not_written_down_again(rows: Rows, store: RecordingStore) -> None:
    stored = StoredSend(send_id="s0", turn_id="t0", action=ACTION, final=True, at=NOW, state=SendState.QUEUED)
    send = Send.of(stored, SendState.QUEUED)
    rows.queued(send)
    assert store.entries == []
    assert (send.send_id, send.turn_id, send.action, send.final, send.at) == ("s0", "t0", ACTION, True, NOW)
