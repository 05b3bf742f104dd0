"""How servers say that something failed, and what it means: `tests/data/refusals`, a file a server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adapters.onebot.protocol import ActionReply, read_frame
from bot.core.refusals import judge_refusal

FOLDER = Path(__file__).parents[2] / "data" / "refusals"
FORMS = 3  # in which each family is shown, at least


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(FOLDER.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            yield file.stem, json.loads(line)


def judged(row: dict[str, Any]) -> dict[str, Any]:
    """What the transport and the sender make of an answer, in the form of a row."""
    reply = read_frame(json.dumps({**row["answer"], "echo": "b-1"}))
    assert isinstance(reply, ActionReply)
    refusal = judge_refusal(reply.wording, reply.retcode, row["action"])
    if reply.ok or refusal.may_be_done is not reply.may_be_done(row["action"]):
        return {"ok": reply.ok}
    if refusal.may_be_done:
        return {"may_be_done": True}
    return {"kind": refusal.kind, "plainer": list(refusal.retry_without), "rests": refusal.blocks_place}


def test_each_answer_of_each_server_means_what_it_should() -> None:
    wrong = [
        f"{server}, {row['family']}: {row['answer']} is {got}"
        for server, row in rows()
        if (got := judged(row)) != row["means"]
    ]
    assert wrong == []


def test_every_listed_family_is_shown_in_three_forms_and_no_other_is() -> None:
    listed = (FOLDER / "features.txt").read_text("utf-8").splitlines()
    assert sorted({f"{server}: {row['family']}" for server, row in rows()}) == listed
    forms = Counter(row["family"] for _, row in rows())
    assert [family for family, number in forms.items() if number < FORMS] == []


def test_all_servers_are_there() -> None:
    assert {"napcat", "llbot", "lagrange", "go-cqhttp", "onebots"} <= {server for server, _ in rows()}


def test_the_reason_of_a_refusal_has_the_servers_own_words_in_it() -> None:
    lacking = []
    for _, row in rows():
        reply = read_frame(json.dumps({**row["answer"], "echo": "b-1"}))
        assert isinstance(reply, ActionReply)
        refusal = judge_refusal(reply.wording, reply.retcode, row["action"])
        own = refusal.words if reply.wording else f"refused with code {reply.retcode}"
        if own not in refusal.full_reason or (reply.wording and refusal.words not in " ".join(reply.wording.split())):
            lacking.append((row["answer"], refusal.full_reason))
    assert lacking == []
