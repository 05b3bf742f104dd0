from __future__ import annotations

from msgspec.structs import replace

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.turns import trace
from bot.core.journal import SendChanged, SendState
from frostagent.types.messages import AssistantMessage, ToolMessage
from tests.adapters.storage.entries import (
    CALLING,
    NOW,
    began,
    beside,
    closing,
    ended,
    opening,
    put,
    read,
    sending,
    steering,
    step,
)
from tests.adapters.storage.test_books import QUESTION, whole, write


def test_a_turn_in_full_is_all_it_did_in_the_order_it_began(batches: EntryBatches, database: Database) -> None:
    opened = replace(opening("t9", QUESTION), at=NOW)
    sent = SendChanged(send_id="s", state=SendState.REFUSED, at=NOW + 7, reason="muted")
    result = ended("t9", ToolMessage("c1", "get_weather", "晴"), seconds=0.5)
    batches.write(put(opened, steering("t9"), at=NOW))
    batches.write(put(replace(beside("t9", outcome="timeout"), at=NOW + 1, run=""), at=NOW + 1))
    batches.write(put(step("t9", 1, CALLING), at=NOW + 3))
    batches.write(put(began("t9"), result, at=NOW + 4))
    batches.write(put(replace(beside("t9", AssistantMessage("hm")), at=NOW + 5), at=NOW + 5))
    batches.write(put(replace(sending("s", "t9"), at=NOW + 6), sent, at=NOW + 6))
    (found,) = read(database, trace, "t9")
    assert [(span.kind, span.name, span.outcome, span.begin - NOW) for span in found.spans] == [
        ("failed", "demo", "timeout", 0.5),
        ("model", "demo", "stop", 2.5),
        ("tool", "get_weather", "ok", 4.0),
        ("model", "demo", "ok", 4.5),
        ("send", "final", "refused", 6.0),
    ]
    _, first, call, inner, send = found.spans
    assert first.usage is not None
    assert (first.usage.prompt, first.usage.cached) == (10, 3)
    assert "get_weather(" in first.text
    assert (call.asked, call.text) == ('{"city": "北京"}', "晴")
    assert (inner.run, inner.text) == ("t9/1/c1", "hm")
    assert (send.text, send.asked) == ("你好！", "muted")
    assert "no, tomorrow" in found.prompt
    assert found.row.outcome == "running"
    assert read(database, trace, "none") == ()


def test_requests_on_errands_are_told_apart_from_those_that_answer_also_of_older_journals(
    batches: EntryBatches, database: Database
) -> None:
    opened = replace(opening("t9", QUESTION), at=NOW)
    write(batches, opened, step("t9"), closing(opened))  # closed a second later
    for run, outcome, at in (
        ("", "overloaded:500", 0.9),
        ("facts", "ok", 400.0),
        ("summary", "timeout", 0.8),
        ("", "timeout", 400.0),
        ("t9/1/c1", "timeout", 0.9),
    ):
        made = replace(beside("t9", outcome=outcome), run=run, at=NOW + at)
        batches.write(put(made, at=NOW + at))
    (found,) = read(database, trace, "t9")
    told = {(span.kind, span.run, span.outcome, span.is_errand) for span in found.spans if span.name == "demo"}
    assert told == {
        ("model", "", "stop", False),
        ("failed", "", "overloaded:500", False),
        ("model", "facts", "ok", True),
        ("failed", "summary", "timeout", True),
        ("failed", "later", "timeout", True),
        ("failed", "t9/1/c1", "timeout", False),
    }


def test_a_draft_takes_no_time_however_late_it_is_published(batches: EntryBatches, database: Database) -> None:
    published = SendChanged(send_id="draft-1-a", state=SendState.PUBLISHED, at=NOW + 3600, reason="主人(999)")
    write(batches, *whole(), replace(sending("draft-1-a", "t1"), state=SendState.DRAFT), published)
    (found,) = read(database, trace, "t1")
    told = [(span.outcome, span.seconds, span.asked) for span in found.spans if span.kind == "send"]
    assert told[-1] == ("published", 0.0, "主人(999)")


def test_its_story_is_the_one_that_why_tells(batches: EntryBatches, database: Database) -> None:
    write(batches, *whole())
    (found,) = read(database, trace, "t1")
    assert (found.story.reason, found.story.sends, found.story.failed) == ("mention", 1, 1)
    assert [span.seconds for span in found.spans if span.kind == "wait"] == [1.0]
