"""What must hold of all that is kept for long, once the last life has ended: it is as before or as after, and what was
forgotten is nowhere. Pure, but for reading the database.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from bot.core.journal import Entry, UsageAdded, UsageReleased, UsageReserved, WindowMoved
from bot.core.memories import MemoriesForgotten, MemoryKept, StoredFact
from bot.policy.memory_rules import terms
from bot.quiet.quiet_hours import QUIET as QUIET_SETTING
from frostagent.types.runs import StepFinished
from tests.torture.evidence import Evidence
from tests.torture.keepsakes import (
    DROPPED,
    MARKS,
    MENDED,
    QUIET,
    SEAL,
    SUMMED,
    TAKEN,
    TOKEN,
    WRITTEN,
    Deed,
)
from tests.torture.stage import ACCOUNT, ANN, ONE

OMITTED = re.compile(r"更早的 (\d+) 轮从略")
ROLLED = f"{ACCOUNT}:group:{ONE}", f"{ACCOUNT}:private:{ANN}"
"""Where summaries are made, and nobody is forgotten."""


@dataclass(slots=True)
class Keepsakes:
    """The rows of what is kept, all texts of all tables, and the bytes of the files beside each other."""

    memories: list[dict[str, Any]] = field(default_factory=list)
    terms: dict[str, set[str]] = field(default_factory=dict)
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=dict)
    wishes: dict[str, str] = field(default_factory=dict)
    usage: list[dict[str, Any]] = field(default_factory=list)
    turns: list[dict[str, Any]] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)
    text: str = ""
    raw: bytes = b""


def read_keepsakes(file: Path) -> Keepsakes:
    """Everything that is kept in this database."""
    kept = Keepsakes()
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row

        def rows(table: str) -> list[dict[str, Any]]:
            return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]  # our own names

        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        every = {name: rows(name) for name in names}
    kept.memories, kept.usage = every["memories"], every["usage"]
    for row in every["memory_terms"]:
        kept.terms.setdefault(row["memory_id"], set()).add(row["term"])
    kept.windows = {row["conversation"]: row for row in every["windows"]}
    kept.choices = {row["conversation"]: row["persona"] for row in every["choices"]}
    kept.wishes = {
        row["conversation"]: row["value"] for row in every["place_settings"] if row["name"] == QUIET_SETTING.name
    }
    kept.turns = sorted(every["turns"], key=lambda row: (row["closed"] or 0.0, row["id"]))
    kept.erased = {row["message_id"] for row in every["messages"] if row["erased"]}
    kept.text = json.dumps(every, ensure_ascii=False)
    kept.raw = b"".join(one.read_bytes() for one in file.parent.iterdir())
    return kept


def judge_kept(evidence: Evidence, deeds: Sequence[Deed], kept: Keepsakes) -> Iterator[str]:
    """Everything that can be said about it."""
    yield from _facts(evidence, kept)
    yield from _told_facts(evidence, kept)
    yield from _personas(evidence, deeds, kept)
    for deed in deeds:
        match deed.name:
            case "重来":
                yield from _reset(evidence, deed)
            case "忘记 我":
                yield from _forgotten(evidence, deed, kept)
            case command if command == QUIET:
                yield from _wished(evidence, deed, kept)
            case _:
                pass
    for where in ROLLED:
        yield from _rolled(evidence, where, kept)
    yield from _counted(evidence, kept)


def gone_places(deeds: Sequence[Deed], kept: Keepsakes) -> frozenset[str]:
    """The conversations in which somebody was forgotten: of what was promised there nothing may be left."""
    return frozenset(deed.where for deed in deeds if deed.where in MARKS and MARKS[deed.where] not in kept.text)


# --- facts ----------------------------------------------------------------------------------------


def _facts(evidence: Evidence, kept: Keepsakes) -> Iterator[str]:
    """Each promised fact is there, whole, in its last words; none that was promised to be forgotten."""
    found = {row["memory_id"]: row for row in kept.memories}
    for memory_id in kept.terms.keys() - found.keys():
        yield f"the words of a fact that is gone are left: {memory_id}"
    for memory_id, row in found.items():
        if kept.terms.get(memory_id, set()) != set(terms(row["text"])):
            yield f"the fact {row['text']!r} is found by other words: {kept.terms.get(memory_id)}"
        if left := kept.erased.intersection(json.loads(row["sources"])):
            yield f"the fact {row['text']!r} is left of what was taken back: {left}"
    last: dict[str, StoredFact | None] = {}
    for entry in evidence.kept:  # but of who was forgotten
        last |= _said_of(entry)
    for memory_id, memory in last.items():
        if memory is None:
            if memory_id in found:
                yield f"the fact {found[memory_id]['text']!r} was forgotten, and is there"
        elif kept.erased.isdisjoint(memory.sources) and found.get(memory_id, {}).get("text") not in _versions(memory):
            yield f"the fact {memory.text!r} is lost: {found.get(memory_id)}"


def _said_of(entry: Entry) -> dict[str, StoredFact | None]:
    match entry:
        case MemoryKept(memory=memory):
            return {memory.memory_id: memory}
        case MemoriesForgotten(memory_ids=ids):
            return dict.fromkeys(ids)
        case _:
            return {}


def _versions(memory: StoredFact) -> tuple[str, ...]:
    """How the fact may read: what came after it may not have been promised."""
    return (memory.text, MENDED) if memory.text == WRITTEN else (memory.text,)


def _told_facts(evidence: Evidence, kept: Keepsakes) -> Iterator[str]:
    """Whoever was answered has the facts he wanted, and no others."""
    said = {message.text for message in evidence.delivered}
    wanted = {"note": {WRITTEN}, "mend": {MENDED}, "drop": set[str]()}
    for question in evidence.questions:
        if question.kind in wanted and f"F:{question.token}" in said:
            own = {row["text"] for row in kept.memories if row["subject"] == question.asker} - {TAKEN}
            if own != wanted[question.kind]:
                yield f"{question} was answered, and its asker has the facts {own}"
    for asked in evidence.asked:
        if DROPPED in asked.messages[0]["content"]:
            yield f"a dropped fact is in the stable part of {asked.kind}#{asked.token}"


# --- commands -------------------------------------------------------------------------------------


def _requests(evidence: Evidence, where: str) -> list[tuple[int, int, str]]:
    """Each first request of a run there: its place among all, its life, all of its text."""
    return [
        (place, life, json.dumps(asked.messages, ensure_ascii=False))
        for place, (asked, life) in enumerate(zip(evidence.asked, evidence.asked_in, strict=True))
        if asked.conversation == where and asked.step == 0
    ]


def _told_in(evidence: Evidence, deed: Deed) -> int | None:
    """The life in which its answer arrived; None where it never did."""
    delivered = zip(evidence.delivered, evidence.delivered_in, strict=True)
    return next((life for message, life in delivered if life >= deed.life and deed.is_done([message])), None)


def _personas(evidence: Evidence, deeds: Sequence[Deed], kept: Keepsakes) -> Iterator[str]:
    """Who was chosen stays chosen, and is chosen once somebody was told so."""
    for deed in deeds:
        if deed.name != "人设 mars":
            continue
        told = _told_in(evidence, deed)
        requests = _requests(evidence, deed.where)
        yield from _once(
            deed, [(life, SEAL not in text) for place, life, text in requests if place >= deed.asked], told
        )
        chosen = kept.choices.get(deed.where) == "mars"
        if requests and chosen != (SEAL in requests[-1][-1]):
            yield f"the persona of {deed.where} is {kept.choices.get(deed.where)!r}, the last prompt says otherwise"


def _wished(evidence: Evidence, deed: Deed, kept: Keepsakes) -> Iterator[str]:
    """A wish of which somebody was told is there, with its end; of another, all or nothing."""
    wish = kept.wishes.get(deed.where, "")
    if not wish.isdecimal() and (wish or _told_in(evidence, deed) is not None):
        yield f"what /{deed.name} promised in {deed.where} is {wish!r}"


def _reset(evidence: Evidence, deed: Deed) -> Iterator[str]:
    """All that was told before it is told, or nothing of it."""
    requests = _requests(evidence, deed.where)
    before: set[str] = set().union(
        *[set(TOKEN.findall(text)) for place, _, text in requests if place < deed.asked][-1:]
    )
    before &= set(deed.before)
    shown = [(life, before.intersection(TOKEN.findall(text))) for place, life, text in requests if place >= deed.asked]
    for _, left in shown:
        if left and left != before:
            yield f"the reset of {deed.where} left {left} of {before}"
    yield from _once(deed, [(life, bool(left)) for life, left in shown], _told_in(evidence, deed))


def _forgotten(evidence: Evidence, deed: Deed, kept: Keepsakes) -> Iterator[str]:
    """It is all there, or nowhere: in no table, no file and no later prompt."""
    mark, told = MARKS[deed.where], _told_in(evidence, deed)
    if mark in kept.text:
        if told is not None:
            places = sorted(set(re.findall(rf'"[a-z_]+": "[^"]*{mark}', kept.text)))
            yield f"{mark} was to be forgotten, and is stored: {places[:5]}"
    elif mark.encode() in kept.raw:
        yield f"{mark} is in no table, and in the files"
    requests = _requests(evidence, deed.where)
    yield from _once(deed, [(life, mark in text) for place, life, text in requests if place >= deed.asked], told)
    if mark not in kept.text and requests and mark in requests[-1][-1]:
        yield f"{mark} was forgotten, and told at the end"


def _once(deed: Deed, shown: Sequence[tuple[int, bool]], told: int | None) -> Iterator[str]:
    """What it ended does not come back, and is over in the lives after somebody was told so."""
    over = False
    for life, is_there in shown:
        if is_there and (over or (told is not None and life > told)):
            yield f"what /{deed.name} ended in {deed.where} came back in life {life + 1}"
            return
        over |= not is_there


# --- summaries and counters -----------------------------------------------------------------------


def _rolled(evidence: Evidence, where: str, kept: Keepsakes) -> Iterator[str]:
    """Each round there is told or summarised, never neither, never both."""
    window = kept.windows.get(where, {"first_turn": 0, "summary": ""})
    rounds = [row for row in kept.turns if row["conversation"] == where and row["round"]]
    first = next((place for place, row in enumerate(rounds) if row["id"] >= window["first_turn"]), len(rounds))
    before, told = _tokens_of(rounds[:first]), _tokens_of(rounds[first:])
    summary: str = window["summary"]
    omitted = sum(map(int, OMITTED.findall(summary)))
    if len(missing := before - set(TOKEN.findall(summary))) > omitted:
        yield f"rounds of {where} are neither told nor summarised: {missing}, {summary!r}"
    if both := (told - before).intersection(TOKEN.findall(summary)):
        yield f"rounds of {where} are told and summarised: {both}"
    moved = [entry for entry in evidence.kept if isinstance(entry, WindowMoved) and str(entry.conversation) == where]
    if moved and (lost := _summed(moved[-1].summary) - _summed(summary)):
        yield f"the summary of {where} that was promised is lost: {lost}, {summary!r}"
    if requests := _requests(evidence, where):
        shown = set(TOKEN.findall(requests[-1][-1]))
        if len(missing := (before | told) - shown) > omitted:
            yield f"the last prompt of {where} has neither {missing} nor a summary of it"


def _tokens_of(rounds: Sequence[dict[str, Any]]) -> set[str]:
    return {token for row in rounds for token in TOKEN.findall(json.loads(row["round"])[0]["text"])[-1:]}


def _summed(summary: str) -> set[str]:
    return set(chain.from_iterable(TOKEN.findall(line) for line in summary.splitlines() if line.startswith(SUMMED)))


def _counted(evidence: Evidence, kept: Keepsakes) -> Iterator[str]:
    """What was spent is counted, once."""
    steps = Counter((row["turn_id"], row["step"]) for row in kept.usage if row["step"] and not row["reserved"])
    for (turn_id, step), times in steps.items():
        if times > 1:
            yield f"step {step} of turn {turn_id} is counted {times} times"
    beside = Counter((row["turn_id"], row["step"], row["at"]) for row in kept.usage)
    for entry in evidence.kept:
        if isinstance(entry, UsageAdded) and (times := beside[entry.turn_id, entry.step, entry.at]) != 1:
            yield f"{entry} is counted {times} times"
    yield from _reserved(evidence, kept)


def _reserved(evidence: Evidence, kept: Keepsakes) -> Iterator[str]:
    """Each request that was reserved is a row: what was reserved, or what it took in its place."""
    promised = {_settled(entry) for entry in evidence.kept} - {None}
    for row in kept.usage:
        if (row["turn_id"], row["reserved"]) in promised:
            yield f"a request of turn {row['turn_id']} is counted beside what was reserved for it"
    rows = Counter(row["turn_id"] for row in kept.usage)
    rows.update(entry.turn_id for entry in evidence.kept if isinstance(entry, UsageReleased))
    made = Counter(entry.turn_id for entry in evidence.kept if isinstance(entry, UsageReserved))
    for turn_id, number in made.items():
        if rows[turn_id] < number:
            yield f"of {number} requests of turn {turn_id} only {rows[turn_id]} are counted"


def _settled(entry: Entry) -> tuple[str, int] | None:
    """The turn and the number of the reservation whose place this takes."""
    match entry:
        case StepFinished(run_id=turn_id, completion=completion) if completion.usage and completion.usage.reserved:
            return turn_id, completion.usage.reserved
        case UsageAdded(turn_id=turn_id, usage=usage) if usage.reserved:
            return turn_id, usage.reserved
        case UsageReleased(turn_id=turn_id, number=number):
            return turn_id, number
        case _:
            return None
