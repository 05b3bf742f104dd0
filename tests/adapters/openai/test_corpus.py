"""The exchanges of our making show all that vendors are known to do, and nothing of theirs is in them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.adapters.openai.corpus import (
    OURS,
    Record,
    features_of,
    features_of_refusal,
    ours,
    refusals,
    shared,
    shared_refusals,
)

LISTED = frozenset((OURS / "features.txt").read_text("utf-8").splitlines())


def test_every_feature_of_the_list_is_shown_by_an_exchange_of_ours_and_no_other() -> None:
    shown = set().union(*map(features_of, ours()), *map(features_of_refusal, refusals()))
    assert sorted(shown ^ LISTED) == []


def test_the_list_has_all_that_the_shared_exchanges_show() -> None:
    missing = {record["id"]: more for record in shared() if (more := features_of(record) - LISTED)}
    assert missing == {}
    assert set().union(*map(features_of_refusal, shared_refusals())) <= LISTED


def test_no_answer_of_ours_is_a_recorded_one() -> None:
    theirs = {words for record in shared() for words in said(record) if len(words) > 20}
    assert [(record["id"], words) for record in ours() for words in said(record) if words in theirs] == []


def said(record: Record) -> Iterator[str]:
    """The words of an exchange, of both sides."""
    yield from (record["expect"][part] or "" for part in ("text", "reasoning", "refusal"))
    yield from (call["arguments"] or "" for call in record["expect"]["tool_calls"])
    for message in (record["request"]["json"] or {}).get("messages", ()):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        yield from (part.get("text") or "" for part in parts if isinstance(part, dict))
