"""The corpora of our making show all that servers and vendors are known to do, so that a clone alone tests it.

`features.txt` beside each lists what; where the shared corpora lie beside the repository, the list has what they have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.adapters.fetching.replay import Sample, samples, shared_samples
from tests.adapters.onebot import corpus as frames
from tests.frostagent.openai import corpus as exchanges


def listed(*, of: str) -> set[str]:
    folder = frames.OURS if of == "onebot" else exchanges.OURS
    return set((folder / "features.txt").read_text("utf-8").splitlines())


def test_every_listed_feature_of_onebot_is_shown_by_a_frame_of_ours_and_no_other_is() -> None:
    shown = set().union(*map(frames.features_of, frames.ours().values()))
    assert sorted(shown ^ listed(of="onebot")) == []


def test_every_listed_feature_of_vendors_is_shown_by_an_exchange_of_ours_and_no_other_is() -> None:
    refusals = map(exchanges.features_of_refusal, exchanges.refusals())
    shown = set().union(*map(exchanges.features_of, exchanges.ours()), *refusals)
    assert sorted(shown ^ listed(of="providers")) == []


def test_the_lists_have_all_that_the_shared_corpora_show() -> None:
    for capture in frames.shared():
        assert sorted(frames.features_of(capture) - listed(of="onebot")) == [], capture.name
        assert capture.name in frames.ours()
    for record in exchanges.shared():
        assert sorted(exchanges.features_of(record) - listed(of="providers")) == [], record["id"]
    for refusal in exchanges.shared_refusals():
        assert exchanges.features_of_refusal(refusal) <= listed(of="providers")


def test_the_samples_of_sources_are_shaped_like_the_shared_ones() -> None:
    assert len(samples()) >= 57
    for name, theirs in shared_samples().items():
        if ours := samples().get(name):
            assert (ours.status, ours.content_type) == (theirs.status, theirs.content_type), name
            assert paths(ours) <= paths(theirs), name


def test_nothing_that_is_said_in_ours_was_recorded() -> None:
    theirs = {words for record in exchanges.shared() for words in said(record) if len(words) > 20}
    assert [words for record in exchanges.ours() for words in said(record) if words in theirs] == []


def said(record: exchanges.Record) -> Iterator[str]:
    """The words of an exchange, of both sides."""
    yield from (record["expect"][part] or "" for part in ("text", "reasoning", "refusal"))
    yield from (call["arguments"] or "" for call in record["expect"]["tool_calls"])
    for message in (record["request"]["json"] or {}).get("messages", ()):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        yield from (part.get("text") or "" for part in parts if isinstance(part, dict))


def paths(sample: Sample) -> set[str]:
    """Each field with the type of its value; how it begins, where it is no JSON."""
    try:
        content: Any = json.loads(sample.body)
    except ValueError:
        return {sample.body.decode()[:16]}
    return set(walk("", content))


def walk(where: str, value: object) -> Iterator[str]:
    yield f"{where}: {type(value).__name__}"
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from walk(f"{where}.{key}", inner)
    for inner in value if isinstance(value, list) else ():
        yield from walk(where, inner)
